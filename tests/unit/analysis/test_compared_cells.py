"""Cells beside those of another type of file or an imposed profile: by hand."""

import numpy as np
import pandas as pd
import pytest

from specmoe.analysis.compared_cells import compare_temperatures, compare_types, gains_by_profile
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


def imposed(*speedups, own):
    """Return what a pair gains with a profile, by block, and with its own drafts."""
    rows = []
    for repeat, speedup in enumerate(speedups):
        for suite, gain, more in (
            ("I", speedup, {"imposed_profile": "theirs", "imposed_acceptance": 0.475}),
            ("B", own, {"imposed_profile": None, "imposed_acceptance": None}),
        ):
            common = {"suite": suite, "repeat": repeat, "block": f"{suite}{repeat}"}
            alone = f"{suite}a{repeat}"
            drafted = {"draft": "d", "gamma": 4, "baseline": alone}
            rows += [
                run(alone, 10.0, **common) | {"imposed_profile": None},
                run(f"{suite}s{repeat}", 10.0 * gain, **common, **drafted) | more,
            ]
    compared = with_speedups(pd.DataFrame(rows))
    cells = summarise_cells(compared[compared["suite"] == "B"], Statistics())
    return compared, cells


def test_the_speedup_under_a_profile_stands_beside_the_models_and_the_pairs_own():
    compared, cells = imposed(1.2, 1.2, own=1.5)
    predicted = cells[["suite", "target", "draft", "gamma"]].assign(
        suite="I", imposed_acceptance=0.475, predicted=1.25
    )
    [row] = gains_by_profile(compared, cells, predicted, Statistics()).to_dict("records")
    assert (row["profile"], row["suite"], row["own_suite"]) == ("theirs", "I", "B")
    assert (row["runs"], row["blocks"]) == (2, 2)
    assert row["speedup"] == pytest.approx(1.2)
    assert row["predicted"] == 1.25
    assert row["own_speedup"] == pytest.approx(1.5)
    assert row["ratio"] == pytest.approx(0.8)


def test_without_a_model_or_drafts_of_its_own_those_are_null():
    compared, cells = imposed(1.2, own=1.5)
    empty = cells.iloc[:0]
    [row] = gains_by_profile(compared, empty, pd.DataFrame(), Statistics()).to_dict("records")
    assert np.isnan(row["predicted"])
    assert np.isnan(row["ratio"])
    none = compared[compared["imposed_profile"].isna()]
    assert gains_by_profile(none, cells, pd.DataFrame(), Statistics()).empty
