"""The study's protocol on real engines: their tools on a model with a recurrent state."""

from dataclasses import replace

import pytest

from specmoe.config.block import PromptSource, Protocol

from ..blocks import DRAFTED, alone, compared, measured, rows

BASELINE = alone(
    suite="F",
    prompts=(PromptSource("passage-16", "passage.txt", 16),),
    protocol=Protocol.STUDY,
)
SPECULATIVE = compared(BASELINE, arms=(DRAFTED,))


@pytest.fixture(params=["engine_bin", "march_bin"], ids=["current", "march"])
def row(job, request):
    """Measure a block of one run of the small family by each engine in turn; returns its row."""
    own = replace(job, binaries=request.getfixturevalue(request.param))
    return lambda block: rows(measured(block, own))[0]


def test_a_baseline_is_timed_at_the_length_of_its_prompt(row):
    baseline = row(BASELINE)
    assert (baseline["n_prompt"], baseline["generated"]) == (16, 32)
    generated = baseline["tokens_per_second"] * baseline["decode_ms"] / 1000
    assert generated == pytest.approx(32, rel=1e-4)
    assert baseline["decode_failures"] == 0


def test_the_tools_counters_are_consistent_although_decodes_fail(row):
    speculative = row(SPECULATIVE)
    rounds = speculative["drafted"] // speculative["gamma"]
    assert speculative["drafted"] == rounds * speculative["gamma"]
    assert speculative["generated"] == speculative["accepted"] + rounds + 1
    assert speculative["generated"] > speculative["n_predict"]
    # The recurrent state cannot be undone.
    assert speculative["decode_failures"] > rounds
