"""What the program that times passes prints."""

import json

from specmoe.measure.pass_times import read_pass_bench


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
        {"outputs": "all", "width": 5, "ms": 2.0, "experts": 12.0},
        {"outputs": "last", "width": 1, "ms": 0.5, "experts": None},
    ]
