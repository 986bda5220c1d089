"""A campaign that is measured until it is decided, on the real engine."""

import json
from functools import partial

import pytest

from ..small_campaign import run_campaign


@pytest.fixture(scope="module")
def staged(snakemake, built_from_source, module_folder):
    """A campaign in stages with a draft model that cannot pay and n-grams: first few minutes.

    Returns its folder, what two calls printed, the second with more minutes, and what was kept. A
    third one has few minutes again.
    """
    config = built_from_source
    config["campaign"]["suites"] = ["S"]
    # A draft model several times as large as its target: every γ is slower, a long one mostly by
    # prediction too.
    config["model_sets"]["tiny"]["draft"]["recipe"]["layers"] = 64
    ways = [{"method": "draft", "drafts": ["draft"], "gammas": [1, 16]}]
    ways += [{"method": "ngram-mod", "gammas": [4, 8], "n_match": [2, 3]}]
    config["suites"]["S"] |= {"drafts": [], "gammas": [], "methods": ways}
    config["suites"]["S"] |= {"prompts": ["code", "short_factual", 32]}
    config["measurement"] |= {"pass_samples": 4, "n_predict": 40, "block_prompts": 1}
    config["measurement"] |= {"repeats": {"least": 2, "most": 2}, "minutes": 0.001}
    folder = module_folder / "results/tiny"
    run = partial(run_campaign, snakemake, module_folder, config)
    first = run("runs")
    kept = {file: file.stat().st_mtime_ns for file in folder.glob("store/**/*.jsonl")}
    config["measurement"]["minutes"] = 60
    second, stages = run("advise"), folder / "stages.json"
    measured = json.loads(stages.read_text())["blocks"]
    config["measurement"]["minutes"] = 0.001
    run("runs")
    assert json.loads(stages.read_text())["blocks"] == measured
    return folder, first, second, kept


def test_a_table_is_printed_after_each_stage_and_says_what_comes_next(staged):
    _, first, second, _ = staged
    assert "Before the first repeat, predicted from draft models' scores" in first
    assert "n-gram settings that will not be measured, by what they draft in these texts" in first
    assert "Measuring ends: the minutes end" in first
    assert " runs measured in " in first and " runs measured in " in second
    assert "After 1 repeat, which is provisional:" in second
    assert "After 2 repeats:" in second
    assert "1 of 3 blocks of repeat 1" in second


def test_no_block_begins_that_would_not_end_in_time(staged):
    """Texts are written alone whatever the minutes, as nothing is known without them."""
    _, first, _, kept = staged
    assert "blocks of repeat 1" not in first
    assert {"texts-alone" in str(file) for file in kept if "blocks" in str(file)} == {True}


def test_what_is_beaten_is_not_measured_and_has_its_row(staged):
    """Which of the draft model's γ that is depends on how fast passes were, and is not said."""
    folder, *_, second, _ = staged
    stages = json.loads((folder / "stages.json").read_text())["stages"]
    for repeat, stage in enumerate(stages[:2]):
        gone = {
            name.rpartition("S/target/")[2] for name, use in stage["measured"].items() if not use
        }
        assert len({f"ngram-mod/g{gamma}-n{n}" for n in (2, 3) for gamma in (4, 8)} - gone) <= 2
        for prompt in ("code", "short_factual", "passage-32"):
            record = folder / f"blocks/S/target/{prompt}/r{repeat}.jsonl"
            head = json.loads(record.read_text().splitlines()[0])
            assert gone.isdisjoint(head["request"]["arms"])
    told = json.loads((folder / "advice.json").read_text())["settings"]
    assert [row["label"] for row in told] == [
        *(row["label"] for row in stages[0]["settings"].values())
    ]
    verdicts = {row["verdict"] for stage in stages[1:] for row in stage["settings"].values()}
    assert ("beaten by prediction" in second) == ("beaten by prediction" in verdicts)


def test_nothing_is_measured_twice(staged):
    folder, _, _, kept = staged
    assert {file: file.stat().st_mtime_ns for file in kept} == kept
    names = [file.parent for file in folder.glob("store/**/*.jsonl")]
    assert len(names) == len(set(names))
    assert {*json.loads((folder / "stages.json").read_text())["blocks"]} == {
        str(file.parent.relative_to(folder / "store/blocks"))
        for file in folder.glob("store/blocks/**/*.jsonl")
    }
