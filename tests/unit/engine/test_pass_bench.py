"""What the program that times passes prints, and how it is compiled."""

import json
import os

import pytest

from specmoe.engine.pass_bench import Timing, build_pass_bench, read_pass_bench
from specmoe.errors import EngineError


def test_times_are_medians_and_experts_means_over_samples_and_layers():
    lines = [
        {"tokens": 4957},
        {"sample": 0, "width": 5, "experts": [10, 12]},
        {"sample": 1, "width": 5, "experts": [13, 13]},
        *({"sample": 0, "width": 5, "outputs": "all", "ms": ms} for ms in (1.0, 9.0, 2.0)),
        {"sample": 0, "width": 1, "outputs": "last", "ms": 0.5},
    ]
    printed = "\n".join(map(json.dumps, lines))
    assert read_pass_bench(printed) == [
        Timing("all", 5, 2.0, 12.0),
        Timing("last", 1, 0.5, None),
    ]


def test_an_engine_whose_build_is_gone_is_named_with_the_ways_out(tmp_path):
    with pytest.raises(EngineError, match=r"work/build, .* measurement\.pass_samples to 0"):
        build_pass_bench(tmp_path, os.open(os.devnull, os.O_WRONLY))
