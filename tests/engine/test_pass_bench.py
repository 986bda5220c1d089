"""Passes timed by themselves on a real engine, and the experts that they visit."""

from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import gguf
import numpy as np
import pytest

from specmoe.config.block import Outputs, TimedPasses
from specmoe.errors import MeasurementError
from specmoe.measure.programs import measure
from specmoe.models.card import Size
from specmoe.models.synthetic import write_model

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
    gate={"retries": 0},
)


@pytest.fixture(scope="module")
def even(module_folder) -> Path:
    """An MoE whose router knows no favourites."""
    path = module_folder / "even.gguf"
    write_model(path, MOE)
    return path


@pytest.fixture(scope="module")
def skewed(module_folder) -> Path:
    """The same MoE with larger router weights for the first experts, which then win more often."""
    path = module_folder / "skewed.gguf"
    write_model(path, MOE)
    for tensor in gguf.GGUFReader(path, "r+").tensors:
        if tensor.name.endswith("ffn_gate_inp.weight"):
            tensor.data[:] *= (1 / np.arange(1, MOE.experts + 1))[:, None]
    return path


@pytest.fixture
def measured(job, model_passes):
    """Time the passes of a model; return the timings by outputs and width."""

    def run(model: Path, passes: TimedPasses = PASSES):
        record = measure(passes, replace(job, target=model), model_passes)
        return {(one["outputs"], one["width"]): one for one in record["timings"]}

    return run


def test_every_width_is_timed_with_all_outputs_and_with_the_last(measured, family):
    timings = measured(family["target"])
    assert set(timings) == {(outputs, width) for outputs in Outputs for width in WIDTHS}
    assert all(one["ms"] > 0 for one in timings.values())
    assert all(one["experts"] is None for one in timings.values())


def test_a_single_token_visits_its_own_experts_and_more_tokens_visit_more(measured, even):
    timings = measured(even)
    seen = [timings["all", width]["experts"] for width in WIDTHS]
    assert seen[0] == MOE.experts_used
    assert all(less < more for less, more in pairwise(seen))
    assert [timings["last", width]["experts"] for width in WIDTHS] == seen


def test_even_routing_is_near_its_formula_and_skewed_routing_below_it(measured, even, skewed):
    by_formula = Size(0, 0.0, 1.0, MOE.experts, MOE.experts_used, MOE.layers, "").evenly_visited
    of_even, of_skewed = measured(even), measured(skewed)
    for width in WIDTHS[1:]:
        seen = of_even["all", width]["experts"]
        assert seen == pytest.approx(by_formula(width), rel=0.1)
        assert of_skewed["all", width]["experts"] < seen
    widest = of_skewed["all", WIDTHS[-1]]["experts"]
    assert widest < 0.85 * of_even["all", WIDTHS[-1]]["experts"]


def test_a_text_that_is_too_short_and_a_missing_model_are_named(measured, family, tmp_path):
    with pytest.raises(MeasurementError, match=r"model_passes failed .*\n(.*\n)*.*too few"):
        measured(family["target"], replace(PASSES, depth=100_000))
    with pytest.raises(MeasurementError, match=r"cannot load"):
        measured(tmp_path / "missing.gguf")
