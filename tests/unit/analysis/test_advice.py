"""What to switch on: planted cases with a known answer, and the shipped campaign."""

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import yaml

from specmoe.analysis import advice
from specmoe.analysis.advice import Answer, Controls, Measured, Standing, advise
from specmoe.analysis.advice_text import advice_values, describe_advice
from specmoe.analysis.build import usual_runs
from specmoe.analysis.controls import with_controls
from specmoe.analysis.drafts import list_drafts
from specmoe.analysis.spread import spread_of_cells
from specmoe.analysis.summaries import summarise_cells, with_speedups
from specmoe.audit.checks import CHECKS
from specmoe.audit.finding import CheckVerdict, Level
from specmoe.config.load import load
from specmoe.config.schema import Config
from specmoe.models.card import load_cards
from specmoe.paper.tables import render_table
from specmoe.runs.schema import read_runs

from ...conftest import merge
from ..made_card import made_card
from ..paper_analyses import baseline_runs, full, speculative_runs

PROMPTS = ["code", "passage-64"]
CARDS = {
    model: made_card(sha256=model, size_bytes=size)
    for model, size in [("moe_q4", 20_000), ("dense_4b", 4_000), ("draft_0.8b", 800)]
}


@pytest.fixture
def config(study, root):
    return load(study, root)


def setting(gamma, rates, *, target="moe_q4", draft="draft_0.8b", suite="B"):
    """Return a setting's runs of two prompts; the baselines run at 50 tok/s."""
    return [
        run
        for prompt in PROMPTS
        for run in speculative_runs(suite, target, draft, gamma, rates, prompt)
    ]


def campaign(*settings, repeats=3, target="moe_q4"):
    """Return the runs of settings and of their baselines."""
    runs = pd.DataFrame(
        [*baseline_runs([target], PROMPTS, repeats), *(run for one in settings for run in one)]
    )
    parameters = {"p_min": 0.0, "n_min": 0, "n_match": None, "min_hits": None, "ngram_gamma": None}
    rss = np.where(runs["draft"] == "none", 5_000, 5_900)
    return runs.assign(**parameters, peak_rss_bytes=rss)


def audit(runs, *, failed=(), check="draft_time", controls=()):
    """Return an audit in which all pass but the runs named; `controls` are verdicts of that one."""
    rows = [
        {
            "run": run,
            "target": target,
            "check": check,
            "level": CHECKS[check].level,
            "verdict": CheckVerdict.FAIL if run in failed else CheckVerdict.PASS,
        }
        for run, target in zip(runs["run"], runs["target"], strict=True)
    ]
    rows += [
        {
            **{"run": f"k{n}", "target": "moe_q4", "check": "controls", "verdict": verdict},
            "level": Level.IMPOSSIBLE,
        }
        for n, verdict in enumerate(controls)
    ]
    return pd.DataFrame(rows)


def advised(runs, config, audited, cards=CARDS):
    """Return the advice for runs, all of them usual."""
    compared = with_speedups(runs)
    cells = summarise_cells(compared, config.statistics)
    cells = with_controls(cells, config.audit.unrelated_drafts, cards)
    spread = spread_of_cells(compared, config.statistics)
    return advise(Measured(runs, compared, cells, spread, audited), config, cards)


def advice_of(runs, config, **audits):
    advice = advised(runs, config, audit(runs, **audits))
    [row] = advice.targets.to_dict("records")
    return row, advice.settings


def standings(settings):
    return dict(zip(settings["gamma"], settings["standing"], strict=True))


def test_a_free_draft_is_switched_on_at_its_fastest(config):
    # All is accepted and drafting costs nothing: a round gives γ + 1 tokens in one pass.
    runs = campaign(
        *(setting(g, [50 * (g + 1) * wobble for wobble in (0.99, 1, 1.01)]) for g in (2, 4, 8))
    )
    row, settings = advice_of(runs, config)
    assert (row["answer"], row["draft"], row["gamma"]) == (Answer.ON, "draft_0.8b", 8)
    assert row["speedup"] == pytest.approx(9, rel=1e-3)
    assert row["joint_low"] > 8.5
    assert (row["settings"], row["equal"], row["set_aside"]) == (3, 0, 0)
    assert (row["draft_bytes"], row["added_rss_bytes"]) == (800, 900)
    assert settings["gamma"].tolist() == [8, 4, 2]


def test_a_useless_draft_is_left_off_since_every_interval_lies_below_one(config):
    # Nothing is accepted: a round gives the one token that a pass gives anyway.
    runs = campaign(
        *(setting(g, [50 / (1 + 0.1 * g) * w for w in (0.99, 1, 1.01)]) for g in (2, 4, 8))
    )
    row, _ = advice_of(runs, config)
    assert row["answer"] == Answer.OFF
    assert row["reason"] == "the interval of every setting is below 1"
    assert row["gamma"] == 2  # the one that loses least is named


def test_a_draft_that_neither_gains_nor_loses_stays_undecided_though_all_is_accepted(config):
    # γ drafted at the target's own pace and a pass to verify, for γ + 1 tokens: no gain at all.
    runs = campaign(*(setting(g, [49, 50, 51]) for g in (2, 4, 8)))
    row, _ = advice_of(runs, config)
    assert row["answer"] == Answer.UNDECIDED
    assert row["reason"] == "no interval is above 1, and not every one is below"
    assert pd.isna(row["repeats_to_decide"])  # a gain of exactly nothing is never decided
    assert row["command"] is None


def test_an_answer_comes_with_its_command_line(config):
    model = "results/models/study/{}.gguf"
    on, _ = advice_of(campaign(setting(8, [59, 60, 61])), config)
    assert on["command"] == (
        f"llama-server -m {model.format('moe_q4')} --spec-type draft-simple"
        f" --model-draft {model.format('draft_0.8b')}"
        " --spec-draft-n-max 8 --spec-draft-n-min 0 --spec-draft-p-min 0"
    )
    off, _ = advice_of(campaign(setting(8, [39, 40, 41])), config)
    assert off["command"] == f"llama-server -m {model.format('moe_q4')}"
    unknown, _ = advice_of(campaign(setting(4, [100]), repeats=1), config)
    assert unknown["command"] is None


def test_a_target_has_an_answer_for_each_set_of_options(study, root):
    options = {"engine_options": [{}, {"n-cpu-moe": 2}]}
    config = load(merge(study, {"suites": {"B": options}}), root)
    kept = "moe_q4+n-cpu-moe=2"
    own = campaign(setting(8, [39, 40, 41], target=kept), target=kept)
    runs = pd.concat([own.assign(target_model="moe_q4"), campaign(setting(8, [59, 60, 61]))])
    on, off = advised(runs, config, audit(runs)).targets.to_dict("records")
    assert (on["target"], on["answer"]) == ("moe_q4", Answer.ON)
    assert (off["target"], off["answer"]) == (kept, Answer.OFF)
    assert off["command"] == "llama-server -m results/models/study/moe_q4.gguf --n-cpu-moe 2"
    assert "--n-cpu-moe" not in on["command"]


def test_an_undecided_answer_comes_with_the_repeats_that_would_decide_and_their_command(config):
    row, _ = advice_of(campaign(setting(4, [50, 52, 54]), setting(8, [29, 30, 31])), config)
    assert (row["answer"], row["gamma"]) == (Answer.UNDECIDED, 4)
    repeats = row["repeats_to_decide"]
    assert 3 < repeats < 15
    assert row["command"] == (
        "snakemake --cores 1 advise --configfile <those of this campaign> --config"
        " 'measurement={more_repeats: {"
        f"B/moe_q4/draft_0.8b/4: {repeats}, B/moe_q4/draft_0.8b/8: {repeats}"
        "}}'"
    )


def test_the_repeats_that_would_decide_do(config):
    """Repeat the same blocks: mean and spread stay."""
    few, rates = [50, 52, 54], {}
    row, _ = advice_of(campaign(setting(4, few)), config)
    for count in (row["repeats_to_decide"] - 1, row["repeats_to_decide"]):
        logs = np.tile(np.log(few), 10)[:count]
        # Of the same mean and standard deviation as the few.
        logs = (logs - logs.mean()) / logs.std(ddof=1)
        rates[count] = np.exp(np.log(few).mean() + logs * np.log(few).std(ddof=1))
    answers = [
        advice_of(campaign(setting(4, own), repeats=count), config)[0]["answer"]
        for count, own in rates.items()
    ]
    assert answers == [Answer.UNDECIDED, Answer.ON]


def test_a_loss_of_one_setting_and_a_single_block_of_another_decide_nothing(config):
    row, _ = advice_of(campaign(setting(4, [39, 40, 41]), setting(8, [70])), config)
    assert row["answer"] == Answer.UNDECIDED


def test_a_cached_campaign_cannot_be_measured_on(config):
    cached = config.model_copy(
        update={"campaign": config.campaign.model_copy(update={"source": "cached"})}
    )
    row, _ = advice_of(campaign(setting(4, [50, 52, 54])), cached)
    assert row["answer"] == Answer.UNDECIDED
    assert row["repeats_to_decide"] > 3
    assert row["command"] is None


def test_settings_are_ranked_among_those_on_the_same_prompts_and_texts_answer(config):
    lengths = [
        run for run in setting(4, [149, 150, 151], suite="F") if run["prompt"] == "passage-64"
    ]
    runs = campaign(setting(4, [59, 60, 61]), setting(8, [69, 70, 71]), lengths)
    row, settings = advice_of(runs, config)
    assert (row["answer"], row["suite"], row["gamma"]) == (Answer.ON, "B", 8)
    assert (row["settings"], row["elsewhere"]) == (2, 1)
    assert row["prompt_set"] == "code, passage-64"
    alone = settings.set_index("suite").loc["F"]
    assert (alone["standing"], alone["prompt_set"]) == (Standing.BEST, "passage-64")
    # With one setting on its prompts there is no choice to allow for.
    own = [alone["speedup_low"], alone["speedup_high"]]
    assert [alone["joint_low"], alone["joint_high"]] == pytest.approx(own)


def test_a_setting_is_slower_if_every_block_says_so_however_much_blocks_differ(config):
    machine = np.array([0.8, 1.0, 1.25])
    runs = campaign(setting(4, 100 * machine), setting(8, 90 * machine * [1.01, 1, 0.99]))
    shared = runs["block"].str.replace(r"/[48]/(\d)$", r"/\1", regex=True)
    apart, together = (
        standings(advice_of(own, config)[1]) for own in (runs, runs.assign(block=shared))
    )
    assert apart == {4: Standing.BEST, 8: Standing.EQUAL}
    assert together == {4: Standing.BEST, 8: Standing.SLOWER}


def test_settings_whose_intervals_overlap_are_equally_good(config):
    runs = campaign(setting(2, [66, 70, 74]), setting(4, [67, 71, 75]), setting(8, [52, 53, 54]))
    row, settings = advice_of(runs, config)
    assert (row["answer"], row["gamma"], row["equal"]) == (Answer.ON, 4, 1)
    assert standings(settings) == {4: Standing.BEST, 2: Standing.EQUAL, 8: Standing.SLOWER}


def test_a_single_block_has_no_interval_and_is_never_advised(config):
    row, _ = advice_of(campaign(setting(4, [100]), repeats=1), config)
    assert row["answer"] == Answer.UNKNOWN
    assert row["reason"] == "every setting was measured once, so no interval is known"
    assert row["speedup"] == pytest.approx(2)
    assert np.isnan(row["joint_low"])


def test_a_faster_setting_of_one_block_does_not_hide_a_sure_gain(config):
    runs = campaign(setting(4, [100]), setting(8, [59, 60, 61]))
    row, settings = advice_of(runs, config)
    assert (row["answer"], row["gamma"]) == (Answer.ON, 8)
    assert standings(settings)[4] == Standing.EQUAL


def test_a_gain_that_is_due_to_the_choice_of_the_best_is_not_advised(config):
    wide = [setting(gamma, [44, 50, 56]) for gamma in (1, 2, 8, 16, 32)]
    row, _ = advice_of(campaign(setting(4, [50.8, 51, 51.2]), *wide), config)
    assert row["answer"] == Answer.UNDECIDED
    assert row["reason"].endswith("after allowing for the choice among settings")


def test_settings_with_marked_runs_are_set_aside(config):
    runs = campaign(setting(4, [99, 100, 101]), setting(8, [59, 60, 61]))
    fastest = runs.loc[(runs["gamma"] == 4), "run"].iloc[0]
    row, settings = advice_of(runs, config, failed=[fastest])
    assert (row["answer"], row["gamma"]) == (Answer.ON, 8)
    assert (row["settings"], row["set_aside"], row["marked"]) == (1, 1, 0)
    assert standings(settings)[4] == Standing.MARKED
    assert np.isnan(settings.set_index("gamma").loc[4, "joint_low"])


def test_a_marked_baseline_sets_aside_every_setting_compared_with_it(config):
    runs = campaign(setting(4, [99, 100, 101]))
    row, _ = advice_of(runs, config, failed=[runs["run"].iloc[0]])
    assert (row["answer"], row["set_aside"]) == (Answer.UNKNOWN, 1)
    assert row["reason"] == "the audit marks runs of every setting"


def test_runs_that_fail_determinism_alone_are_not_set_aside(config):
    runs = campaign(setting(4, [99, 100, 101]))
    row, _ = advice_of(runs, config, failed=set(runs["run"]), check="determinism")
    assert row["answer"] == Answer.ON


@pytest.mark.parametrize(
    "verdicts, controls, answer",
    [
        ([CheckVerdict.NOT_APPLICABLE], Controls.NONE, Answer.ON),
        ([CheckVerdict.PASS, CheckVerdict.NOT_APPLICABLE], Controls.PASSED, Answer.ON),
        ([CheckVerdict.PASS, CheckVerdict.FAIL], Controls.FAILED, Answer.UNKNOWN),
    ],
)
def test_failed_controls_leave_nothing_to_advise(config, verdicts, controls, answer):
    row, _ = advice_of(campaign(setting(4, [99, 100, 101])), config, controls=verdicts)
    assert (row["controls"], row["answer"]) == (controls, answer)


def test_controls_and_the_studys_commands_are_no_settings(config):
    itself = setting(4, [99, 100, 101], draft="moe_q4")
    tools = [run | {"protocol": "published"} for run in setting(8, [99, 100, 101])]
    row, settings = advice_of(campaign(itself, tools), config)
    assert settings.empty
    assert row["answer"] == Answer.UNKNOWN
    assert row["reason"] == "no run with a draft was measured against baselines of its own"


def shown(runs, config, **audits):
    advice = advised(runs, config, audit(runs, **audits))
    return replace(full(), advice=advice.targets, advice_settings=advice.settings)


def test_the_text_names_setting_rivals_costs_and_what_it_rests_on(config):
    runs = campaign(setting(2, [66, 70, 74]), setting(4, [67, 71, 75]))
    text = " ".join(describe_advice(shown(runs, config)).split())
    assert "MoE Q4 (moe_q4): switch it on Draft 0.8B, γ = 4 (suite B): speedup 1.42 [" in text
    assert "Not shown to be slower: Draft 0.8B, γ = 2 (suite B): speedup 1.40 [" in text
    assert "no controls were measured (suite K)" in text
    assert "How sure: 3 blocks of 2 runs" in text
    assert "its models are synthetic" in text.lower()


def drafting_with(runs, draft, method):
    """Return runs whose draft model is replaced by a method that loads no file."""
    drafts = runs["draft"] != "none"
    columns = {"draft": draft, "method": method, "draft_model": None}
    return runs.assign(**{key: runs[key].where(~drafts, value) for key, value in columns.items()})


def shown_methods(runs, config, **audits):
    """Return the analysis of runs of several methods."""
    drafts = list_drafts(runs, {"draft_0.8b": "Draft 0.8B"}.__getitem__)
    return replace(shown(runs, config, **audits), drafts=drafts)


def test_the_text_names_a_method_by_its_label_and_says_that_it_loads_no_file(config):
    runs = drafting_with(campaign(setting(2, [66, 70, 74])), "mtp", "draft-mtp")
    text = " ".join(describe_advice(shown_methods(runs, config)).split())
    assert "MoE Q4 (moe_q4): switch it on MTP, γ = 2 (suite B): speedup 1.40 [" in text
    assert "the draft's file" not in text
    assert "Costs: nothing on the disk, as it loads no file besides the target's;" in text
    assert "peak memory grew by 0.0 MB" in text
    assert "With the prompt, which the draft reads too:" in text
    [target] = advice_values(shown_methods(runs, config))["targets"]
    assert target["draft_bytes"] is None


def test_n_grams_read_no_prompt_and_need_no_memory(config):
    runs = drafting_with(campaign(setting(2, [66, 70, 74])), "ngram-simple-n3", "ngram-simple")
    text = " ".join(
        describe_advice(shown_methods(runs.assign(peak_rss_bytes=5_000), config)).split()
    )
    assert "the process's peak memory did not grow" in text
    assert "With the prompt: speedup" in text


def test_settings_of_several_methods_that_cannot_be_told_apart_are_listed(config):
    own = campaign(setting(4, [67, 71, 75]))
    mtp = drafting_with(pd.DataFrame(setting(2, [66, 70, 74])), "mtp", "draft-mtp")
    mtp = mtp.assign(run=mtp["run"] + "/mtp", block=mtp["block"] + "/mtp", peak_rss_bytes=5_100)
    runs = pd.concat([own, mtp], ignore_index=True)
    text = " ".join(describe_advice(shown_methods(runs, config)).split())
    assert "switch it on Draft 0.8B, γ = 4 (suite B): speedup 1.42 [" in text
    assert "Costs: the draft's file, 0.0 MB" in text
    assert "Not shown to be slower: MTP, γ = 2 (suite B): speedup 1.40 [" in text


def test_the_text_has_the_line_to_paste_on_one_line(config):
    runs = campaign(setting(2, [66, 70, 74]), setting(4, [67, 71, 75]))
    lines = describe_advice(shown(runs, config)).splitlines()
    [line] = [line for line in lines if line.startswith("  llama-server -m ")]
    assert " --spec-draft-n-max 4 " in line


def test_the_text_of_an_undecided_answer_ends_with_what_would_decide_it(config):
    near = shown(campaign(setting(4, [50, 52, 54]), setting(8, [29, 30, 31])), config)
    said, command = describe_advice(near).split("\n\n")[1].splitlines()[-2:]
    assert said.endswith("repeats would decide it if speedups and spread stay as they are:")
    assert command.startswith("  snakemake --cores 1 advise --configfile <those of this campaign>")
    same = " ".join(describe_advice(shown(campaign(setting(4, [49, 50, 51])), config)).split())
    assert "More than statistics.repeats_limit = 30 repeats would be needed" in same


def test_the_text_and_the_values_have_the_whole_answer_and_the_first_token(config):
    # Prompts of 25 ms and 80 ms; the drafts read them too, in half as much time again.
    runs = campaign(setting(4, [99, 100, 101]))
    slower = np.where(runs["draft"] == "none", 1, 1.5)
    analysis = shown(runs.assign(prompt_ms=runs["prompt_ms"] * slower), config)
    text = " ".join(describe_advice(analysis).split())
    assert "of the whole answer; the time to the first token is 1.50 [1.50, 1.50] times" in text
    [target] = advice_values(analysis)["targets"]
    assert target["first_token_ratio"] == pytest.approx(1.5)
    assert 1 < target["end_to_end_low"] < target["end_to_end"] < target["speedup"]


def test_the_text_says_that_a_single_block_has_no_interval(config):
    text = describe_advice(shown(campaign(setting(4, [100]), repeats=1), config))
    assert "MoE Q4 (moe_q4): not known" in text
    assert "speedup 2.00 in one block, without an interval" in " ".join(text.split())


def test_the_values_are_json_without_nan(config):
    runs = campaign(setting(4, [99, 100, 101]), setting(8, [60]))
    failed = [runs.loc[runs["gamma"] == 8, "run"].iloc[0]]
    values = advice_values(shown(runs, config, failed=failed))
    [target] = json.loads(json.dumps(values, allow_nan=False))["targets"]
    assert (target["answer"], target["gamma"], len(target["measured"])) == ("switch on", 4, 2)
    assert target["measured"][1]["joint_low"] is None


def test_the_table_has_the_answer_and_the_reason_to_leave_it_off(config, root):
    runs = pd.concat(
        [
            campaign(setting(4, [99, 100, 101])),
            campaign(setting(4, [39, 40, 41], target="dense_4b"), target="dense_4b"),
        ]
    )
    text = render_table("advice", shown(runs, config), root / "paper")
    lines = [line for line in text.splitlines() if line.endswith(r"\\")]
    assert r"MoE Q4 & \textbf{switch on} & Draft 0.8B & 4 & 2.00 & [" in lines[1]
    assert r"Dense 4B & leave off & Draft 0.8B & 4 & 0.80" in lines[2]
    assert "the interval of every setting is below 1" in lines[3]


def test_the_shipped_demo_gets_the_answer_of_the_exhaustive_grid(root):
    folder = root / "resources/campaigns/demo"
    config = Config.model_validate(yaml.safe_load((folder / "campaign.yaml").read_text()))
    good = usual_runs(read_runs(folder / "runs.parquet"), config)
    cards = load_cards(folder / "models.json")
    advice = advised(good, config, audit(good), cards).targets.set_index("target")
    # From the rows alone: the log ratio of each run to its baseline, by cell and repeat.
    rates = {row["run"]: row["tokens_per_second"] for row in good.to_dict("records")}
    grid, prompts = {}, {}
    for row in good.to_dict("records"):
        if row["draft"] not in ("none", row["target"], *config.audit.unrelated_drafts):
            cell = (row["target"], row["suite"], row["draft"], row["gamma"])
            prompts.setdefault(cell, set()).add(row["prompt"])
            log = np.log(row["tokens_per_second"] / rates[row["baseline"]])
            grid.setdefault(cell, {}).setdefault(row["repeat"], []).append(log)
    speedups = {cell: np.exp(np.mean([*blocks.values()])) for cell, blocks in grid.items()}
    # An interval can be above 1 only if every block is.
    gains = {
        cell for cell, blocks in grid.items() if all(np.mean(logs) > 0 for logs in blocks.values())
    }
    assert set(advice.index[advice["settings"] > 0]) == {cell[0] for cell in grid}
    for target in {cell[0] for cell in grid}:
        row = advice.loc[target]
        best = (target, row["suite"], row["draft"], row["gamma"])
        assert row["speedup"] == pytest.approx(speedups[best])
        own = [cell for cell in grid if cell[0] == target and prompts[cell] == prompts[best]]
        if row["answer"] == Answer.ON:
            assert best == max(gains & set(own), key=speedups.get)
        else:
            assert best == max(own, key=speedups.get)


def test_of_equal_sets_of_prompts_the_one_whose_texts_may_end_answers(config):
    stated = campaign(setting(4, [80.0, 81.0, 82.0], suite="A"))
    ending = campaign(setting(4, [60.0, 61.0, 62.0], suite="E")).assign(stop="eos")
    for column in ("run", "block", "prompt", "baseline"):
        ending[column] = ending[column].map(lambda name: name and f"{name}-to-its-end")
    runs = pd.concat([stated, ending])
    target, _ = advice_of(runs, config)
    assert (target["suite"], target["elsewhere"]) == ("E", 1)


def test_every_setting_is_compared_with_each_but_read_once(config, monkeypatch):
    read = []
    known = advice.log_speedups
    monkeypatch.setattr(advice, "log_speedups", lambda cell: read.append(1) or known(cell))
    settings = (setting(gamma, [50.0 + gamma, 51.0, 52.0]) for gamma in range(1, 9))
    advice_of(campaign(*settings), config)
    assert len(read) == 8
