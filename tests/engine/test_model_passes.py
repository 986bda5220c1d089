"""Our program on a real engine: passes, experts that they visit, and texts that a draft model
reads."""

import math
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from specmoe.config.block import Outputs, TimedPasses
from specmoe.errors import MeasurementError
from specmoe.measure.model_passes import Ids, Proposal, measure, score, widest_move
from specmoe.models.info import Size
from specmoe.models.synthetic import write_model

from ..blocks import alone
from ..recipes import SMALL, varied

MOE = varied(SMALL, experts=32, experts_used=4, expert_ffn=256)
WIDTHS = (1, 2, 5, 17)
PASSES = TimedPasses(
    model="target",
    widths=WIDTHS,
    outputs=(Outputs.ALL, Outputs.LAST),
    samples=12,
    text="passage.txt",
    depth=32,
    threads=1,
    gpu_layers=0,
    environment={},
    reruns=None,
)


@pytest.fixture
def measured(job, model_passes):
    """Time the passes of a model; return the timings by outputs and width."""

    def run(model: Path, passes: TimedPasses = PASSES):
        record = measure(passes, replace(job, target=model), model_passes)
        return {(one["outputs"], one["n_tokens"]): one for one in record["timings"]}

    return run


def test_every_width_is_timed_with_all_outputs_and_with_the_last(measured, family):
    timings = measured(family["target"])
    assert set(timings) == {(outputs, n_tokens) for outputs in Outputs for n_tokens in WIDTHS}
    assert all(one["ms"] > 0 for one in timings.values())
    assert all(one["experts"] is None for one in timings.values())


def test_more_tokens_visit_more_experts_as_uniform_routing_does(measured, tmp_path):
    model = tmp_path / "even.gguf"
    write_model(model, MOE)  # its router knows no favourites
    timings = measured(model)
    seen = [timings["all", n_tokens]["experts"] for n_tokens in WIDTHS]
    assert seen[0] == MOE.experts_used
    assert all(less < more for less, more in pairwise(seen))
    assert [timings["last", n_tokens]["experts"] for n_tokens in WIDTHS] == seen
    by_formula = Size(0, 0.0, 1.0, MOE.experts, MOE.experts_used, MOE.layers).evenly_visited
    assert seen == pytest.approx([*map(by_formula, WIDTHS)], rel=0.1)


def test_a_text_that_is_too_short_and_a_missing_model_are_named(measured, family, tmp_path):
    with pytest.raises(MeasurementError, match=r"model_passes failed .*\n(.*\n)*.*too few"):
        measured(family["target"], replace(PASSES, depth=100_000))
    with pytest.raises(MeasurementError, match=r"cannot load"):
        measured(tmp_path / "missing.gguf")


PROMPT = tuple(range(1, 40))


@pytest.fixture
def read_all(job, family, model_passes):
    """Read texts with the draft model, in batches of a width."""

    def reading(*texts: Ids, n_tokens: int = 8) -> list[list[Proposal]]:
        own = replace(job, target=family["draft"])
        return score(texts, alone(), own, model_passes, n_tokens)

    return reading


@pytest.fixture
def generated(start, family):
    """What the draft model itself writes after the prompt, with its likeliest tokens."""
    with start(family["draft"]) as server:
        return server.complete(list(PROMPT), n_predict=24, temperature=0, seed=1, n_probs=2)


def test_a_draft_agrees_with_every_token_of_its_own_text_and_with_no_other(read_all, generated):
    [proposals] = read_all((PROMPT, tuple(generated["tokens"])))
    assert all(one["agrees"] for one in proposals)
    for one, each in zip(proposals, generated["completion_probabilities"], strict=True):
        first, second = each["top_logprobs"]
        assert one["token"] == first["id"]
        # Among ten candidates it is likelier than among all tokens.
        assert one["confidence"] > math.exp(first["logprob"]) - 0.01
        assert one["lead_nats"] == pytest.approx(first["logprob"] - second["logprob"], abs=0.01)
    likeliest = set(generated["tokens"])
    other = [token for token in range(256) if token not in likeliest][:24]
    [proposals] = read_all((PROMPT, other))
    found = [one["agrees"] for one in proposals]
    assert found == [one["token"] == token for one, token in zip(proposals, other, strict=True)]
    assert sum(found) <= 1  # another one may be the likeliest by chance


def test_texts_are_read_alike_in_any_order_and_nearly_alike_in_any_batches(read_all, generated):
    own, other = (PROMPT, tuple(generated["tokens"])), (PROMPT[:5], PROMPT)
    first, second = read_all(own, other)
    assert read_all(other, own) == [second, first]
    assert widest_move([first, second], read_all(own, other, n_tokens=1)) < 0.1
