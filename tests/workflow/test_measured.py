"""One campaign of models from everywhere, whose suites vary what may vary, from hub to analysis.

Its models are of the hub, of a wheel and made of both, an MoE among them; its forward passes are
timed and its drafts scored.
"""

import json
from collections import Counter
from functools import partial
from pathlib import Path

import gguf
import pandas as pd
import pytest
import yaml

from specmoe.runs.schema import read_runs

from ..dense_model import write_dense
from ..hub_standin import StandIn, environment
from ..recipes import DENSE, split_model, varied, write_models
from ..small_campaign import run_campaign
from ..wheels import MEMBER, from_folder, write_wheel

PARTS = ["split-00001-of-00002.gguf", "split-00002-of-00002.gguf"]
TEXT = "--cache-type-k q8_0 --n-cpu-moe 2"
GIVEN = yaml.safe_load(Path(__file__).with_name("measured.yaml").read_text())
GAMMAS, CHANCES = GIVEN["suites"]["scored"]["gammas"], [0, 0.2]


@pytest.fixture(scope="module")
def measured(snakemake, built_from_source, module_folder):
    """The results of the campaign, and how to run snakemake on it."""
    config = built_from_source
    q8 = write_dense(module_folder / "q8.gguf", kind=gguf.GGMLQuantizationType.Q8_0)
    models = {"draft": config["model_sets"]["tiny"]["draft"]} | GIVEN["models"]
    models["q8"] = write_wheel(module_folder / "wheels", q8.read_bytes())
    config |= {name: GIVEN[name] for name in ("campaign", "measurement", "suites")}
    config["model_sets"]["tiny"], config["campaign"]["suites"] = models, list(GIVEN["suites"])
    for name, suite in GIVEN["suites"].items():
        config["suites"][name] = {"title": name, "prompts": ["code"]} | suite
    [split] = write_models(module_folder, split=varied(DENSE, dtype="BF16")).values()

    with StandIn(module_folder / "repositories") as hub:
        for part in split_model(split, module_folder / "parts", "split", len(PARTS)):
            hub.add("lab/split-GGUF", "main", f"BF16/{part.name}", part)
        there = environment(hub, module_folder / "hf", **from_folder(module_folder / "wheels"))
        run = partial(run_campaign, snakemake, module_folder, config, env=there)
        run("results/tiny/analysis", "pack_campaign")
        yield module_folder / "results/tiny", run


@pytest.fixture(scope="module")
def results(measured):
    return measured[0]


@pytest.fixture(scope="module")
def runs(results):
    return read_runs(results / "runs.parquet")


def table(results, name):
    return pd.read_parquet(results / f"analysis/{name}.parquet")


def test_a_split_model_of_the_hub_is_downloaded_quantized_and_measured(results, runs):
    models = results.parent / "models/tiny"
    infos = {path.stem: json.loads(path.read_text()) for path in models.glob("*.json")}
    types = {name: info["type"] for name, info in infos.items()}
    assert types == {
        **{"q8": "Q8_0", "dense": "F32", "moe": "F32", "cut": "Q8_0"},
        **{"split": "BF16", "split_q8": "Q8_0", "draft": types["draft"]},
    }
    # Downloads stay in the user's cache and are linked; files made here are in the results.
    linked = {path.stem for path in models.glob("*.gguf") if path.is_symlink()}
    assert {"split", *(Path(part).stem for part in PARTS)} <= linked
    assert linked.isdisjoint({"split_q8", "dense", "moe", "cut"})
    assert (models / "split.gguf").resolve().is_relative_to(results.parents[1] / "hf")
    digests = runs.groupby("target")["target_sha256"].unique()
    assert digests.map(list).to_dict() == {name: [infos[name]["sha256"]] for name in digests.index}
    assert set(digests.index) == {"dense", "moe", "split"}


def test_infos_say_where_a_model_comes_from_and_under_which_licence(results):
    models = results.parent / "models/tiny"
    infos = {name: json.loads((models / f"{name}.json").read_text()) for name in ("q8", "moe")}
    origin = f"tiny-model 1.0, {MEMBER}"
    origins = {name: (info["origin"], info["licence"]) for name, info in infos.items()}
    assert origins == {"q8": (origin, "CC0-1.0"), "moe": (f"made from {origin}", "CC0-1.0")}
    assert (infos["moe"]["experts"], infos["moe"]["experts_used"]) == (4, 1)
    assert sorted(path.name for path in models.iterdir() if path.name.startswith(".")) == []


def test_a_draft_is_accepted_alike_and_what_differs_is_in_the_table(results):
    twins = table(results, "upcycled_pairs")
    assert set(twins["target"]) == {"moe"}
    assert set(twins["dense"]) == {"dense"}
    own = twins[twins["forced_acceptance"].isna()]
    assert own["gammas"].tolist() == ["1", "4", "1, 4"]
    assert own["pairs"].tolist() == [2, 2, 4]
    assert (own["same_tokens"] == 1).all()
    assert (own["acceptance_rate"] > 0.5).all()
    assert own["acceptance_rate"].equals(own["dense_acceptance"])
    forced = twins[twins["forced_acceptance"].notna()]
    assert sorted(forced["forced_acceptance"].unique()) == [0, 1]
    assert forced["acceptance_rate"].equals(forced["dense_acceptance"])
    assert forced["same_tokens"].isna().all()
    assert (own["ratio_low"] < own["ratio"]).all()


def test_passes_of_both_twins_are_compared(results):
    passes = table(results, "pass_times")
    assert set(passes.loc[passes["dense"].notna(), "model"]) == {"dense", "moe"}
    assert set(passes["n_tokens"]) == {*range(1, 18)}
    wide = passes[(passes["model"] == "moe") & (passes["n_tokens"] == 5)].iloc[0]
    assert 1 <= wide["experts"] <= 4
    assert wide["experts_even"] == pytest.approx(4 * (1 - 0.75**5))


def test_every_model_is_timed_in_every_repeat_in_its_own_part(results):
    times = pd.read_parquet(results / "pass_times.parquet")
    parts = {*zip(times["model"], times["outputs"], strict=True)}
    assert parts >= {("dense", "all"), ("split", "all"), ("q8", "last"), ("draft", "last")}
    repeats = times.groupby("model")["repeat"].unique().map(set)
    assert repeats[["dense", "moe", "q8"]].eq({0, 1}).all()
    assert times["machine"].nunique() == times["engine"].nunique() == 1


def test_the_cost_model_tells_the_pass_from_the_rest_of_a_round(results):
    passes = table(results, "verification")
    timed = table(results, "pass_times").set_index(["model", "n_tokens"])["ms"]
    for target in ("dense", "moe"):
        own = passes[(passes["target"] == target) & (passes["draft"] == "cut")]
        assert list(own["n_tokens"]) == [*range(1, 18)]
        # That wider passes take longer is a timing; that these are the timed ones is not.
        assert own["pass_ms"].tolist() == pytest.approx(timed[target][own["n_tokens"]].tolist())
    rounds = passes[passes["round_ms"].notna()]
    assert set(rounds["gamma"]) == {4}
    assert (rounds["catchup_ms"] > 0).all()
    assert rounds["overhead_ms"].notna().all()


def test_every_token_of_every_text_is_read(results, runs):
    scores = pd.read_parquet(results / "agreement.parquet").query("draft == 'draft'")
    alone = runs[(runs["suite"] == "scored") & (runs["draft"] == "none")]
    texts = {tuple(one["token"]) for _, one in scores.groupby(["prompt", "text"])}
    assert texts == {tuple(tokens) for tokens in alone["tokens"]}
    assert scores["agrees"].nunique() == 2


def test_the_rounds_of_every_run_are_those_of_the_reading(results, runs):
    audit = pd.read_parquet(results / "audit/audit.parquet").query("suite == 'scored'")
    found = audit[(audit["check"] == "agreement") & (audit["draft"] != "none")]
    # With p_min a round may end early, and is not judged.
    each = 2 * 2 * len(GAMMAS)  # two repeats of two prompts
    assert found["verdict"].value_counts().to_dict() == {"pass": each, "not applicable": each}
    assert not found["why"].str.contains("tie").any()
    # The draft model did stop early, and did go on.
    drafted = runs.query("suite == 'scored'").groupby(["gamma", "p_min"])["drafted"].sum()
    stopped = drafted.xs(CHANCES[1], level="p_min") / drafted.xs(0, level="p_min")
    assert 0 < stopped[GAMMAS[-1]] < 1


def test_each_level_has_its_runs_against_baselines_of_its_own(results, runs):
    loads, options = (runs[runs["suite"] == suite] for suite in ("loads", "options"))
    assert loads.groupby("level")["concurrency"].unique().str[0].to_dict() == {"1": 1, "2": 2}
    assert loads["load_tokens_per_second"].notna().all()
    found = options[["level", "draft", "engine_options"]].itertuples(index=False, name=None)
    assert Counter(found) == {
        (level, draft, given): 2 * times
        for level, given in [(TEXT, TEXT), ("none", "")]
        for draft, times in (("none", 2), ("q8", 1), ("q8-p0.5", 1))
    }
    drafted = runs[runs["draft"] != "none"]
    assert (drafted["baseline"].map(runs.set_index("run")["block"]) == drafted["block"]).all()
    whole = table(results, "audit").set_index("target").loc["all"]
    assert whole["runs"] == whole["accounting_passed"] == len(runs)


def test_the_table_tells_the_levels_apart(results):
    levels = table(results, "levels").query("suite in ['loads', 'options']")
    found = sorted(levels[["suite", "level", "draft"]].itertuples(index=False, name=None))
    options = [("options", level, draft) for level in (TEXT, "none") for draft in ("q8", "q8-p0.5")]
    assert found == [*(("loads", level, "split_q8") for level in "12"), *options]


def test_times_and_scores_are_packed_and_nothing_is_timed_or_read_again(measured):
    folder, run = measured
    for name in ("pass_times.parquet", "agreement.parquet"):
        assert (folder / "packed" / name).read_bytes() == (folder / name).read_bytes()
    printed = run("--dry-run", "results/tiny/analysis")
    assert "Nothing to be done" in printed, printed
