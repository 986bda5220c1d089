"""No cell can be faster than its own passes allow, in made campaigns and in the published study."""

import pandas as pd
import pytest
from hypothesis import given

from specmoe.analysis.ceilings import ceilings
from specmoe.analysis.summaries import with_speedups
from specmoe.config.methods import METHODS, Loads, Method, engine_type

from ..audit.test_checks import DRAFT_MS, SETTINGS, SIZES, TARGET_MS, campaign, plain, speculative
from ..audit.test_properties import true_runs
from ..published_study import analysis_of_study, needs_csv


def held(*rows):
    """Return the ceilings of a small campaign with these rows besides its own."""
    runs = campaign(*rows).assign(n_prompt=64)
    return ceilings(with_speedups(runs), runs, SIZES, SETTINGS)


def test_a_ceiling_by_hand():
    (cell,) = held().to_dict("records")
    assert cell["ceiling"] == pytest.approx(63 / (20 + 1 + 78 * DRAFT_MS / TARGET_MS))
    assert cell["tokens_per_step"] == pytest.approx(63 / 21)
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
    assert found.loc["G", "ceiling"] == pytest.approx(63 / 21)
    assert "never timed" in found.loc["G", "draft_basis"]


ways = pytest.mark.parametrize("way", Method)


def as_fast_as_its_passes(way, accepts=True, slower=1.0, **more):
    """Return a run of a method at its bound, or so many times slower.

    Models and heads draft in 20 of 21 steps, n-grams in 2 of 59; 9 replays where the target needs
    them. Of 63 tokens the rest are accepted. Only a draft model has a time of its own.
    """
    often = METHODS[way].always_drafts
    rounds, plain_steps = (20, 1) if often else (2, 57)
    replays = 9 if often and not METHODS[way].rolls_back else 0
    if not accepts:
        plain_steps, replays = 63 - rounds, 0
    steps, drafted = rounds + plain_steps, 4 * rounds
    by_model = way == Method.DRAFT
    name = str(way)
    return speculative(
        **{
            **{"suite": "G", "run": f"G/{name}/r0", "method": engine_type(way), "draft": name},
            **{"draft_model": name if METHODS[way].loads == Loads.FILE else None},
            **{"rounds": rounds, "drafted": drafted, "accepted": 63 - steps - replays},
            **{"replays": replays, "replays_rejected": 0, "decodes": 1 + steps + replays},
            "decode_ms": (steps * TARGET_MS + drafted * DRAFT_MS * by_model) * slower,
        }
        | more
    )


@ways
def test_a_run_of_any_method_at_the_speed_of_its_passes_reaches_its_ceiling_and_is_not_above(way):
    cell = held(as_fast_as_its_passes(way)).set_index("suite").loc["G"]
    assert cell["speedup"] == pytest.approx(cell["ceiling"])
    assert cell["above"] == 0
    assert cell["ceiling"] > 1


@ways
def test_a_run_of_any_method_that_is_faster_than_its_passes_is_above_its_ceiling(way):
    cell = held(as_fast_as_its_passes(way, slower=0.85)).set_index("suite").loc["G"]
    assert cell["speedup"] > cell["ceiling"]
    assert cell["above"] == 1


@ways
def test_a_method_of_which_nothing_is_accepted_can_gain_nothing(way):
    cell = held(as_fast_as_its_passes(way, accepts=False)).set_index("suite").loc["G"]
    free = way != Method.DRAFT
    assert cell["ceiling"] == pytest.approx(1.0 if free else 63 / (63 + 80 * DRAFT_MS / TARGET_MS))
    assert cell["acceptance_rate"] == 0


def test_a_method_that_never_drafted_has_a_ceiling_of_one():
    counts = {"rounds": 0, "drafted": 0, "accepted": 0, "replays": 0, "decodes": 64}
    row = as_fast_as_its_passes(Method.NGRAM_MOD, decode_ms=63 * TARGET_MS, **counts)
    cell = held(row).set_index("suite").loc["G"]
    assert cell[["ceiling", "tokens_per_step", "above"]].tolist() == [1, 1, 0]
    assert pd.isna(cell["acceptance_rate"])


@ways
def test_a_slowed_baseline_puts_no_run_above_its_ceiling(way):
    slow = plain(run="P/target/none/slow", ms_per_token=5 * TARGET_MS)
    run = as_fast_as_its_passes(way, slower=1.2, baseline=slow["run"])
    cell = held(slow, run).set_index("suite").loc["G"]
    assert cell["speedup"] > cell["ceiling"]
    assert cell["above"] == 0


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
