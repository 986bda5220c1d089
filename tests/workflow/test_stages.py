"""Advice in stages on the real engine: a table after each, and nothing is measured twice."""

import json
import re

import pytest

from ..small_campaign import run_campaign, tiny_campaign
from .conftest import built_from_source


@pytest.fixture(scope="module")
def staged(snakemake, engine_bin, model_passes, module_folder):
    """A campaign in stages with a draft model that cannot pay and n-grams, killed between stages.

    Returns its folder, what the second call of the same command printed, and what was kept before.
    """
    assert model_passes.is_file()
    config = tiny_campaign(engine_bin)
    built_from_source(config, module_folder, engine_bin)
    config["campaign"]["suites"] = ["S"]
    # A draft model as large as its target: every γ is slower, by prediction and measured.
    config["model_sets"]["tiny"]["draft"]["recipe"]["layers"] = 16
    ways = [{"method": "draft", "drafts": ["draft"], "gammas": [1, 16]}]
    ways += [{"method": "ngram-simple", "gammas": [4]}]
    config["suites"]["S"] |= {"drafts": [], "gammas": [], "methods": ways}
    measured = {"pass_samples": 2, "n_predict": 40, "repeats": 2, "drop_beaten": 0.1}
    config["measurement"] |= measured
    folder = module_folder / "results/tiny"

    def run(*args):
        return run_campaign(snakemake, module_folder, config, *args)

    first = run("results/tiny/blocks/S/target/r0.jsonl")
    kept = {file: file.stat().st_mtime_ns for file in folder.glob("store/**/*.jsonl")}
    return folder, first, run("advise"), kept


def test_a_table_is_printed_after_each_stage_and_provisional_ones_say_so(staged):
    _, first, second, _ = staged
    assert "This is provisional, and the numbers are predicted" in first
    assert "This is provisional, and intervals are of one block" in second
    assert second.count("This is provisional") == 1


def test_what_is_beaten_is_measured_no_further_and_has_its_row(staged):
    folder, first, second, _ = staged
    decided = [json.loads((folder / f"contenders_r{n}.json").read_text()) for n in (0, 1)]
    beaten = [{row["setting"] for row in one["settings"] if not row["measured"]} for one in decided]
    assert "S/target/draft/g16" in beaten[0]
    for repeat, names in enumerate(beaten):
        head, _ = (folder / f"blocks/S/target/r{repeat}.jsonl").read_text().splitlines()
        arms = {f"S/target/{arm}" for arm in json.loads(head)["request"]["arms"]}
        assert arms.isdisjoint(names)
    told = json.loads((folder / "advice.json").read_text())["settings"]
    assert {row["setting"] for row in told} == {row["setting"] for row in decided[0]["settings"]}
    assert "beaten by prediction" in second
    # The plan of the second call counts what is left, and says what is in no suite of the user's.
    assert re.search(r"^beaten, and measured no further: settings of [1-9]\d* runs$", second, re.M)
    assert re.search(r"2 measured; at their pace the others take \d+ (s|min)$", second, re.M)
    assert "\n1 block of these (texts-alone): a target writes by itself" in first


def test_nothing_is_measured_twice(staged):
    folder, _, _, kept = staged
    assert {file: file.stat().st_mtime_ns for file in kept} == kept
    names = [file.parent for file in folder.glob("store/**/*.jsonl")]
    assert len(names) == len(set(names))
