"""No cell can be faster than its own passes allow, in made campaigns and in the published study."""

import pandas as pd
import pytest
from hypothesis import given

from specmoe.analysis.ceilings import ceilings
from specmoe.analysis.summaries import with_speedups

from ..audit.test_checks import DRAFT_MS, SETTINGS, SIZES, TARGET_MS, campaign, plain, speculative
from ..audit.test_properties import true_runs
from ..published_study import analysis_of_study, needs_csv


def held(*rows):
    """Return the ceilings of a small campaign with these rows besides its own."""
    runs = campaign(*rows).assign(n_prompt=64)
    return ceilings(with_speedups(runs), runs, SIZES, SETTINGS)


def test_a_ceiling_by_hand():
    (cell,) = held().to_dict("records")
    assert cell["ceiling"] == pytest.approx(63 / (20 + 78 * DRAFT_MS / TARGET_MS))
    assert cell["mean_accepted_length"] == pytest.approx(1 + 34 / 20)
    assert cell["acceptance_rate"] == pytest.approx(34 / 78)
    assert cell["speedup"] < cell["ceiling"]
    assert cell["above"] == 0


def test_runs_faster_than_their_passes_are_counted():
    fast = [speculative(repeat, suite="G", run=f"G/{repeat}", decode_ms=600.0) for repeat in (0, 1)]
    found = held(*fast).set_index("suite")
    assert found.loc["G", ["runs", "above"]].tolist() == [2, 2]
    assert found.loc["B", "above"] == 0


def test_a_draft_that_was_never_timed_counts_as_free():
    row = speculative(draft="draft_2b", suite="G", run="G/1")
    found = held(row).set_index("suite")
    assert found.loc["G", "ceiling"] == pytest.approx(63 / 20)
    assert "never timed" in found.loc["G", "draft_basis"]


def test_runs_whose_rounds_are_not_known_have_no_ceiling():
    rows = [plain(), speculative(rounds=None)]
    runs = pd.DataFrame(rows).assign(n_prompt=64)
    assert ceilings(with_speedups(runs), runs, SIZES, SETTINGS).empty


@given(true_runs())
def test_no_true_run_is_above_its_ceiling(row):
    runs = campaign(row).assign(n_prompt=64)
    compared = with_speedups(runs.assign(baseline="P/target/none/r1"))
    assert (ceilings(compared, runs, SIZES, SETTINGS)["above"] == 0).all()


@needs_csv
def test_the_study_is_above_its_ceilings_wherever_it_recorded_little_acceptance(study, tmp_path):
    cells = analysis_of_study(study, tmp_path).ceilings
    b_and_d, f = cells[cells["suite"].isin(["B", "D"])], cells[cells["suite"] == "F"]
    assert len(b_and_d) == 18
    assert (b_and_d["above"] == b_and_d["runs"]).all()
    assert b_and_d["runs"].sum() == 216
    assert (b_and_d["ceiling"] < b_and_d["speedup"]).all()
    assert f["above"].sum() == 0
    assert (f["ceiling"] > f["speedup"]).all()
