"""The published protocol on real engines: what their tools do to a model with a recurrent state."""

import pytest

from specmoe.config.backend import Backend
from specmoe.config.block import Block, PromptSource, Protocol
from specmoe.engine.build import self_test
from specmoe.errors import MeasurementError
from specmoe.measure.study_commands import measure
from specmoe.runs.published_rows import rows_of_published_record

from ..blocks import PROVENANCE, baseline, speculative

BASELINE = baseline(
    suite="F",
    prompts=(PromptSource("passage-16", "passage.txt", 16),),
    protocol=Protocol.PUBLISHED,
)
SPECULATIVE = speculative(BASELINE)


@pytest.fixture(params=["engine_bin", "march_bin"], ids=["current", "march"])
def binaries(request):
    """The tools of each engine in turn."""
    return request.getfixturevalue(request.param)


@pytest.fixture
def row(binaries, family, prompt_folder, tmp_path):
    """Measure a block of one run of the small family; returns its row."""

    def run(block: Block, **overrides):
        arguments = {
            "root": prompt_folder,
            "binaries": binaries,
            "target": family["target"],
            "draft": family["draft"] if block.has_draft else None,
            "log": tmp_path / "log",
            "run_limit_s": 120,
            "say": print,
        } | overrides
        record = measure(block, **arguments)
        [only] = rows_of_published_record(record | {"provenance": PROVENANCE}, "c")
        return only

    return run


def test_the_engine_of_march_passes_the_self_test(march_bin, tmp_path):
    self_test(march_bin, Backend.CPU, tmp_path / "log")


def test_a_baseline_is_timed_at_the_length_of_its_prompt(row):
    baseline = row(BASELINE)
    assert (baseline["n_prompt"], baseline["generated"]) == (16, 32)
    assert baseline["tokens_per_second"] * baseline["decode_ms"] / 1000 == pytest.approx(
        32, rel=1e-4
    )
    assert baseline["decode_failures"] == 0


def test_the_tools_counters_are_consistent_however_many_decodes_fail(row):
    speculative = row(SPECULATIVE)
    rounds = speculative["drafted"] // speculative["gamma"]
    assert speculative["drafted"] == rounds * speculative["gamma"]
    assert speculative["generated"] == speculative["accepted"] + rounds + 1
    assert speculative["generated"] > speculative["n_predict"]


def test_more_decodes_fail_than_there_are_rounds_as_the_state_cannot_be_taken_back(row):
    speculative = row(SPECULATIVE)
    rounds = speculative["drafted"] // speculative["gamma"]
    assert speculative["decode_failures"] > rounds


def test_a_draft_of_another_vocabulary_fails_with_the_end_of_the_log(row, stranger):
    with pytest.raises(MeasurementError, match=r"llama-speculative failed(.|\n)*draft model vocab"):
        row(SPECULATIVE, draft=stranger)
