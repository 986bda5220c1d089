"""Joules a token, by hand."""

import numpy as np
import pandas as pd
import pytest

from specmoe.analysis.controls import Control
from specmoe.analysis.energy import energy_of_cells
from specmoe.analysis.summaries import summarise_cells, with_speedups
from specmoe.config.schema import Statistics

from .test_summaries import run

KNOWN = {"energy_source": "RAPL", "generated": 64, "idle_w": 10.0, "prompt_ms": 1000.0}


def joules(*pairs, **more):
    """Return the energy of one cell: a block for each pair of joules, without and with a draft."""
    rows = []
    for repeat, (alone, drafted) in enumerate(pairs):
        common = KNOWN | {"repeat": repeat, "decode_ms": 3000.0} | more
        draft = {"draft": "d", "gamma": 4, "baseline": f"a{repeat}"}
        rows += [
            run(f"a{repeat}", 10.0, energy_j=alone, **common),
            run(f"s{repeat}", 20.0, energy_j=drafted, **common, **draft),
        ]
    runs = pd.DataFrame(rows)
    cells = summarise_cells(with_speedups(runs), Statistics()).assign(control=Control.NONE)
    return energy_of_cells(cells, runs, Statistics()).to_dict("records")


def test_joules_are_for_a_generated_token_and_compared_with_the_runs_own_baseline():
    [cell] = joules((128.0, 64.0), (256.0, 128.0))
    assert cell["baseline_joules_per_token"] == 3.0
    assert cell["joules_per_token"] == 1.5
    ends = [cell[f"energy_ratio{end}"] for end in ("", "_low", "_high")]
    assert ends == pytest.approx([0.5, 0.5, 0.5])
    assert (cell["runs"], cell["blocks"], cell["energy_source"]) == (2, 2, "RAPL")


def test_the_interval_is_students_over_blocks():
    [cell] = joules((64.0, 64.0), (64.0, 64.0 * np.e))
    # Logarithms 0 and 1: mean 0.5, standard error 0.5, Student's t of one degree 12.706.
    assert cell["energy_ratio"] == pytest.approx(np.exp(0.5))
    assert cell["energy_ratio_high"] == pytest.approx(np.exp(0.5 + 0.5 * 12.7062), rel=1e-4)


def test_a_single_block_has_no_interval():
    [cell] = joules((128.0, 64.0))
    assert cell["energy_ratio"] == pytest.approx(0.5)
    assert np.isnan(cell["energy_ratio_low"])


def test_the_idle_share_is_idle_power_times_the_runs_whole_time():
    [cell] = joules((128.0, 64.0), (128.0, 96.0))
    assert cell["idle_w"] == 10.0
    assert cell["idle_share"] == pytest.approx(2 * 10.0 * (1 + 3) / (64 + 96))


def test_a_cell_with_an_unknown_energy_is_left_out_and_unknown_idle_power_is_not_zero():
    assert joules((128.0, 64.0), (None, 64.0)) == []
    assert joules((128.0, 64.0), (128.0, None)) == []
    assert joules((None, None)) == []
    assert np.isnan(joules((128.0, 64.0), idle_w=np.nan)[0]["idle_share"])
