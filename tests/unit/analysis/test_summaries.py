"""Summaries by hand, and what must hold of any."""

from math import exp, nan

import numpy as np
import pandas as pd
import pytest

from specmoe.analysis import summaries
from specmoe.analysis.summaries import SETTING, make_pairs, summarise, with_controls, with_speedups
from specmoe.analysis.terminal import text_of_suite
from specmoe.config.block import Template
from specmoe.config.load import load
from specmoe.config.schema import Statistics
from specmoe.config.workloads import FileWorkload
from specmoe.models.info import Thinking

from ...recipes import made_info
from ..paper_analyses import _row as row_of
from ..paper_analyses import loads, with_loads, workload_runs

SETTINGS = Statistics()


def run(name, rate, *, draft="none", gamma=0, prompt="passage-64", repeat=0, baseline=None, **more):
    counts = {"rounds": 10, "drafted": 40, "accepted": 20, "replays": 5, "replays_rejected": 1}
    times = {"n_prompt": 64, "prompt_ms": 32.0, "decode_ms": 63_000 / rate}
    names = {"run": name, "block": f"{draft}/g{gamma}/r{repeat}", "baseline": baseline}
    row = row_of("A" if draft == "none" else "B", "t", draft, gamma, prompt, repeat, rate)
    return row | counts | times | names | dict.fromkeys(["generated", "common_prefix"], 64) | more


@pytest.fixture
def runs():
    return pd.DataFrame(
        [
            run("a0", 10.0, repeat=0),
            run("a1", 20.0, repeat=1),
            run("s0", 20.0, draft="d", gamma=4, repeat=0, baseline="a0"),
            run("s1", 10.0, draft="d", gamma=4, repeat=1, baseline="a1", accepted=10),
        ]
    )


def settings_of(runs):
    """Return the settings as records."""
    return summarise(make_pairs(runs, [], {}), SETTING, SETTINGS).to_dict("records")


def test_a_run_without_baseline_beside_others_that_have_one_has_no_speedup(runs):
    runs.loc[3, "baseline"] = None
    assert with_speedups(runs)["run"].tolist() == ["s0"]


def test_a_suite_without_any_baseline_is_compared_with_the_targets_mean(runs):
    runs["baseline"] = None
    compared = with_speedups(runs)
    assert compared["speedup"].tolist() == [20 / 15, 10 / 15]
    assert not compared["paired"].any()
    runs.loc[[0, 1], "prompt"] = "code"
    assert with_speedups(runs).empty  # the target has no baseline of exact length


def test_suites_with_and_without_baselines_can_be_mixed(runs):
    other = run("u0", 30.0, draft="d", gamma=4, suite="D")
    compared = with_speedups(pd.concat([runs, pd.DataFrame([other])]))
    assert compared["run"].tolist() == ["s0", "s1", "u0"]
    assert compared["paired"].tolist() == [True, True, False]
    assert compared["speedup"].tolist() == [2.0, 0.5, 2.0]


@pytest.mark.parametrize(
    ("columns", "nulls"),
    [
        ({"rounds": pd.NA}, ["tokens_per_round", "round_ms"]),
        ({"prompt_ms": None}, ["first_token_ratio", "end_to_end", "end_to_end_low"]),
        # A method that never drafts.
        (
            dict.fromkeys(["rounds", "drafted", "accepted", "replays", "replays_rejected"], 0),
            ["acceptance_rate", "tokens_per_round", "replays_per_round", "round_ms"],
        ),
    ],
)
def test_what_is_not_known_of_all_runs_is_null(runs, columns, nulls):
    runs = runs.assign(**{name: runs[name].astype(object) for name in columns})
    runs.loc[runs["draft"] == "d", list(columns)] = list(columns.values())
    [setting] = settings_of(runs)
    assert np.isnan([setting[name] for name in nulls]).all()
    assert setting["speedup"] == pytest.approx(1.0)


def test_a_setting_is_summarised_as_by_hand(runs):
    [setting] = settings_of(runs)
    assert setting["runs"] == setting["blocks"] == 2
    assert setting["tokens_per_second"] == 15.0
    assert setting["tokens_per_second_sd"] == pytest.approx(np.sqrt(50))
    assert setting["paired"]
    assert setting["acceptance_rate"] == 30 / 80
    assert setting["tokens_per_round"] == 1 + 30 / 20 + 8 / 20
    assert setting["rounds_per_run"] == 10
    assert setting["round_ms"] == pytest.approx((63_000 / 20 + 63_000 / 10) / 20)
    assert setting["baseline_tokens_per_second"] == 15.0
    assert setting["speedup"] == pytest.approx(1.0)  # twice and half
    assert setting["speedup_unpaired"] == 1.0  # 15 / 15


def test_the_studys_acceptance_rate_is_the_mean_over_runs_whatever_they_drafted(runs):
    runs.loc[3, ["accepted", "drafted"]] = 20
    [setting] = settings_of(runs)
    assert (setting["acceptance_rate_mean"], setting["acceptance_rate"]) == (0.75, 40 / 60)


def test_the_studys_baseline_is_the_mean_over_prompt_lengths_and_repeats(runs):
    [baseline] = summaries.summarise_baselines(runs, SETTINGS).to_dict("records")
    assert baseline["tokens_per_second"] == 15.0
    assert baseline["prompt_tokens_per_second"] == 2000.0
    assert baseline["runs"] == 2
    with_text = runs.assign(prompt=["passage-64", "code", "code", "code"])
    of_lengths = summaries.summarise_baselines(with_text, SETTINGS)
    assert of_lengths["tokens_per_second"].tolist() == [10.0]


def test_baselines_of_a_sweep_are_in_the_studys_denominator_and_not_in_its_table(runs):
    sweep = pd.DataFrame([run("f0", 30.0, suite="F"), run("f1", 30.0, suite="F", draft="d")])
    runs = pd.concat([runs, sweep])
    assert summaries.summarise_baselines(runs, SETTINGS)["tokens_per_second"].tolist() == [15.0]
    assert set(with_speedups(runs)["mean_baseline_tokens_per_second"]) == {20.0}


def test_a_drafts_reading_of_the_prompt_delays_the_first_token_and_the_whole_answer(runs):
    # Of 3.15 s and 6.3 s a baseline decodes; its prompt takes 1 s, the run's 1.5 s.
    times = {"a0": 1000.0, "a1": 1000.0, "s0": 1500.0, "s1": 1500.0}
    runs["prompt_ms"] = runs["run"].map(times)
    compared = with_speedups(runs)
    assert compared["first_token_ratio"].tolist() == [1.5, 1.5]
    assert compared["end_to_end"].tolist() == pytest.approx([7.3 / 4.65, 4.15 / 7.8])
    [setting] = settings_of(runs)
    assert setting["first_token_ratio"] == setting["first_token_ratio_low"] == pytest.approx(1.5)
    assert setting["end_to_end"] == pytest.approx(np.sqrt(7.3 / 4.65 * 4.15 / 7.8))
    assert setting["end_to_end_low"] < setting["end_to_end"] < setting["end_to_end_high"]


def test_the_interval_of_a_rate_without_a_draft_is_over_its_blocks(runs):
    runs = pd.concat([runs, pd.DataFrame([run("o", 5.0) | {"target": "once"}])])
    rows = summaries.summarise_baselines(runs, SETTINGS).set_index("target")
    ends = ["tokens_per_second_low", "tokens_per_second_high"]
    # The logarithms of 10 and 20 differ by log 2; t with one degree of freedom is 12.706.
    reach = 12.7062 * np.log(2) / 2
    assert rows.loc["t", ends].tolist() == pytest.approx(
        [15 / np.exp(reach), 15 * np.exp(reach)], rel=1e-3
    )
    assert rows.loc["once", ends].isna().all()  # one block


def test_a_disturbed_pair_is_counted_and_changes_no_number(runs):
    lost = run("s2", 90.0, draft="d", gamma=4, repeat=2, baseline="a0", prompt="poem")
    lost |= {"disturbed_reason": "why", "wait_share": 0.5}
    quiet = runs.assign(wait_share=0.01)
    more = pd.concat([quiet, pd.DataFrame([lost])], ignore_index=True)
    [setting], [usual_one] = settings_of(more), settings_of(runs)
    assert (setting["excluded"], setting["pairs"], setting["runs"]) == (1, 3, 2)
    assert setting["prompt_set"] == "passage-64, poem"
    assert setting["speedup"] == usual_one["speedup"]
    assert pd.isna(usual_one["excluded"])


def test_a_table_by_level_has_a_row_for_each_and_the_usual_settings_have_none_of_them():
    common = {"suite": "V", "draft": "d", "gamma": 4, "baseline": "a"}
    forced = [
        run("a", 10.0, suite="V"),
        run("s0", 5.0, **common, forced_acceptance=0.0, level="0"),
        run("s1", 20.0, **common, forced_acceptance=0.5, level="0.5"),
    ]
    pairs = make_pairs(pd.DataFrame(forced), [], {})
    settings = summarise(pairs, [*SETTING, "level"], SETTINGS)
    assert settings.set_index("level")["speedup"].to_dict() == {"0": 0.5, "0.5": 2.0}
    assert summaries.usual(pairs).empty


@pytest.mark.parametrize("level", ["64", "first", "later"])
def test_levels_of_prompts_are_one_setting_at_the_usual_conditions(runs, level):
    runs = runs.assign(level=level)
    pairs = make_pairs(runs, [], {})
    assert len(summaries.usual(pairs)) == len(pairs) == 2
    assert pairs["level"].unique().tolist() == [level]


def test_the_speedup_of_loads_is_that_of_their_throughput_and_a_users_own_is_beside_it():
    rows = pd.DataFrame(loads({1: 1.3, 4: 0.9}))
    slow = rows["gamma"].eq(4) & rows["concurrency"].eq(4)
    rows["tokens_per_second"] *= 1 - 0.5 * slow
    settings = summarise(make_pairs(rows, [], {}), [*SETTING, "level"], SETTINGS)
    assert settings["level"].tolist() == ["1", "4"]
    assert settings["baseline_tokens_per_second"].tolist() == pytest.approx([50, 200])
    assert settings["tokens_per_second"].tolist() == pytest.approx([65, 180])
    assert settings["speedup"].tolist() == pytest.approx([1.3, 0.9])
    assert settings["user_speedup"].tolist() == pytest.approx([1.3, 0.45])
    found = with_loads().levels
    assert found["factor_label"].unique().tolist() == ["Requests at once"]
    assert found["level"].tolist() == ["1", "2", "4"] * 2


def test_each_position_counts_the_rounds_that_reached_it():
    tried, accepted = [4, 3, 2, 1], [3, 2, 1, 1]
    row = run("s", 50.0, draft="d", gamma=4) | {"accepted_per_position": accepted}
    logged = [row | {"drafted_per_position": tried}] * 2
    unlogged = run("u", 50.0, draft="d", gamma=8) | {"drafted_per_position": None}
    found = summaries.acceptance_by_position(pd.DataFrame([*logged, unlogged]))
    assert found["position"].tolist() == [1, 2, 3, 4]
    assert found["tried"].tolist() == [8, 6, 4, 2]
    assert found["conditional"].tolist() == pytest.approx([3 / 4, 2 / 3, 1 / 2, 1])
    assert found["cumulative"].tolist() == pytest.approx([3 / 4, 1 / 2, 1 / 4, 1 / 4])


def test_the_interval_of_a_category_is_that_over_its_prompts():
    gains = {"code": np.exp([0.1, 0.3, 0.5]), "prose": [0.8, 0.9]}
    runs = make_pairs(pd.DataFrame(workload_runs(gains)), [], {})
    settings = summaries.summarise_categories(runs, SETTINGS).set_index("category")
    assert settings["prompts"].to_dict() == {"code": 3, "prose": 2}
    # Three prompts that differ by 0.2 are a small sample: t is 4.3027.
    code, reach = settings.loc["code"], 4.3027 * 0.2 / np.sqrt(3)
    ends = exp(0.3 - reach) * 1.01, exp(0.3 + reach) * 1.01
    assert (code["speedup_low"], code["speedup_high"]) == pytest.approx(ends, rel=2e-3)
    assert code["speedup"] == pytest.approx(exp(0.3) * 1.01)


def test_runs_that_were_cut_are_counted_and_what_they_generated_is_split():
    info = made_info(thinking=Thinking(True, (False, True), begin=3, end=4))
    texts = [
        ("mine", "length", [9] * 64),  # its template opens thinking, and it thinks to the end
        ("mine", "eos", [9] * 15 + [4] + [9] * 48),
        ("mine", "length", [4] + [9] * 63),
        ("raw", "length", [9] * 64),
    ]
    rows = [
        run(f"{text}/{draft}", 10.0, prompt=f"p{text}", workload=workload, stop="eos")
        | {"stopped_by": end, "tokens": tokens, "draft": draft, "gamma": 4 * (draft == "d")}
        | {"baseline": f"{text}/none" if draft == "d" else None, "suite": "B"}
        for text, (workload, end, tokens) in enumerate(texts)
        for draft in ("none", "d")
    ]
    workloads = {
        "mine": FileWorkload(kind="file", file="a.jsonl", template=Template.CHAT),
        "raw": FileWorkload(kind="file", file="a.txt"),
    }
    for infos, thinking in (({"t": info}, (1, (64 + 16 + 1) / (4 * 64))), ({}, (0, nan))):
        pairs = make_pairs(pd.DataFrame(rows), [], infos, workloads)
        [row] = summarise(pairs, SETTING, SETTINGS, summaries.describe_texts).to_dict("records")
        assert (row["runs"], row["cut"]) == (4, 3)
        assert (row["cut_thinking"], row["thinking"]) == pytest.approx(thinking, nan_ok=True)


def test_a_run_without_a_rate_has_no_speedup_and_spoils_none():
    runs = pd.DataFrame(workload_runs({"code": [1.1, 1.2]}))
    unrated = ["W/moe_q4/draft_0.8b/4/0/code0", "P/moe_q4/none/0/1/code1"]
    runs.loc[runs["run"].isin(unrated), "tokens_per_second"] = nan
    assert runs["tokens_per_second"].isna().sum() == 2
    found = make_pairs(runs, [], {})
    assert len(found) == 4
    assert found["speedup"].notna().all()


def test_a_suite_of_several_temperatures_has_lines_for_each(study, root):
    runs = [
        run(f"{name}{warm}", rate, suite="temperature", temperature=warm, level=f"{warm:g}",
            block=f"temperature/t/{setting}/{warm:g}/r0", **more)
        for warm in (0.0, 0.7)
        for name, setting, rate, more in [
            ("a", "none/g0", 10.0 + warm, {}),
            ("s", "d/g4", 12.0, {"draft": "d", "gamma": 4, "baseline": f"a{warm}"}),
        ]
    ]  # fmt: skip
    head, rates, speedups = text_of_suite(
        pd.DataFrame(runs), "temperature", load(study, root)
    ).split("\n\n")
    assert head.endswith(", 4 runs")
    assert [line.split()[2:4] for line in rates.splitlines()[1:]] == [
        ["0.00", "10.00"], ["0.70", "10.70"]
    ]  # fmt: skip
    found = [line.split() for line in speedups.splitlines()]
    assert found[0][3:] == ["condition", "tokens_per_second", "acceptance_rate", "speedup"]
    assert [(row[3], row[6]) for row in found[1:]] == [("0", "1.20"), ("0.7", "1.12")]


@pytest.mark.parametrize(
    ("method", "digests", "kinds"),
    [
        ("draft-simple", ["1", "1", "2", "3"], ["self", "self", "unrelated", ""]),
        ("draft-simple", [None] * 4, ["self", "", "unrelated", ""]),
        ("draft-mtp", ["1", "1", "2", "3"], [""] * 4),
    ],
)
def test_a_target_its_known_copy_and_unrelated_draft_models_are_controls(method, digests, kinds):
    models = ["t", "copy", "stranger", "d"]
    infos = {model: made_info(sha256=digest) for model, digest in zip(models, digests, strict=True)}
    drafts = pd.DataFrame({"draft_model": models}).assign(target="t", method=method)
    assert with_controls(drafts, ["stranger"], infos)["control"].tolist() == kinds
