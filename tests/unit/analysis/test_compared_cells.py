"""Cells beside those of another type of file: by hand."""

import numpy as np
import pandas as pd
import pytest

from specmoe.analysis.compared_cells import compare_temperatures, compare_types
from specmoe.analysis.summaries import summarise_cells, with_speedups
from specmoe.config.schema import Statistics

from .test_summaries import run

SETTINGS = Statistics()
NETWORKS = {"small": "net", "large": "net", "other": "another"}
BYTES = {"small": 1e9, "large": 2e9, "other": 3e9}


def compared(repeats=2, **rates):
    """Return the types of runs at these rates, by target; every baseline runs at 10 tok/s."""
    rows = []
    for target, rate in rates.items():
        for repeat in range(repeats):
            base = f"b{target}{repeat}"
            block = {"target": target, "repeat": repeat}
            rows += [
                run(base, 10.0, **block),
                run(base.replace("b", "s", 1), rate, draft="d", gamma=4, baseline=base, **block),
            ]
    speedups = with_speedups(pd.DataFrame(rows))
    cells = summarise_cells(speedups, SETTINGS)
    return compare_types(cells, speedups, NETWORKS, BYTES, SETTINGS)


def test_every_temperature_has_its_speedup_and_a_greedy_campaign_has_none():
    rows = [
        one | {"temperature": warm, "suite": "T"}
        for warm, rate in ((0.0, 12.0), (0.7, 15.0))
        for one in (
            run(f"b{warm}", 10.0),
            run(f"s{warm}", rate, draft="d", gamma=4, baseline=f"b{warm}"),
        )
    ]
    speedups = with_speedups(pd.DataFrame(rows))
    frame = compare_temperatures(speedups, SETTINGS)
    assert frame["temperature"].tolist() == [0.0, 0.7]
    assert frame["speedup"].tolist() == pytest.approx([1.2, 1.5])
    assert compare_temperatures(speedups[speedups["temperature"] == 0], SETTINGS).empty


def test_gains_are_relative_to_the_file_whose_pass_reads_the_fewest_bytes():
    small, large = compared(large=15.0, small=12.0).to_dict("records")
    assert [small["target"], large["target"]] == ["small", "large"]
    assert small["gain_ratio"] == 1
    ends = [large[f"gain_ratio{end}"] for end in ("", "_low", "_high")]
    assert ends == pytest.approx([1.25, 1.25, 1.25])
    assert np.isnan(small["gain_ratio_low"])


def test_a_network_in_one_file_is_left_out():
    assert set(compared(large=15.0, small=12.0, other=11.0)["network"]) == {"net"}
    assert compared(small=12.0, other=11.0).empty
