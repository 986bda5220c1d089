"""The audit of the published study's own 306 rows, against counts made independently of it.

By that count the draft-time bound is broken in all 216 rows of suites B and D and in none of F's,
and the bandwidth of 800 GB/s in 117 rows if a pass reads 8 experts a layer, in 153 if it reads as
many as its tokens visit in expectation.
"""

from copy import deepcopy
from dataclasses import replace

import pytest
import yaml

from specmoe.audit.bounds import required_time
from specmoe.audit.checks import audit_runs
from specmoe.audit.evidence import Evidence
from specmoe.audit.limits import LIMITS
from specmoe.campaign.gate import load_campaign
from specmoe.plan.estimate import size_of
from specmoe.runs.schema import read_runs
from specmoe.study.study_rows import import_study_rows

from ...conftest import CSV, ROOT, merge, needs_csv

BANDWIDTH = 800e9  # of an Apple M2 Ultra, by its maker
EXACT = replace(LIMITS, time_tolerance=0)

pytestmark = needs_csv


@pytest.fixture(scope="module")
def given(_study, module_folder):
    """The evidence of the study's rows, and how to gather it with other sizes or limits."""
    overlay = yaml.safe_load((ROOT / "config/atomgradient.yaml").read_text())
    campaign = load_campaign(merge(deepcopy(_study), overlay), ROOT, module_folder)
    config, data = campaign.config, campaign.places.data
    data.mkdir(parents=True)
    import_study_rows(campaign, CSV, config.machine.model_dump(exclude_none=True))
    runs = read_runs(data / "runs.parquet")
    sizes = {model: size_of(model, config, {}, {}) for model in config.models}
    return lambda limits, **more: Evidence(
        runs, sizes | more, BANDWIDTH, config.audit, limits=limits
    )


@pytest.fixture(scope="module")
def audit(given):
    return audit_runs(given(LIMITS))


def failed(audit, check):
    return audit[(audit["check"] == check) & (audit["verdict"] == "fail")]


def test_the_time_bound_is_broken_by_factors_of_one_and_a_half_to_nine_and_a_half(given, audit):
    # With the tolerance, and the 0.8B draft faster than its proxy by the bytes of both files.
    ratios = failed(audit, "draft_time")["ratio"]
    assert [ratios.min(), ratios.max()] == pytest.approx([1.325, 8.558], abs=1e-3)
    # With neither.
    exact = given(EXACT, **{"qwen3.5-0.8b-bf16": given(EXACT).sizes["qwen3.5-0.8b-q8"]})
    ratios = failed(audit_runs(exact), "draft_time")["ratio"]
    assert [ratios.min(), ratios.max()] == pytest.approx([1.633, 9.509], abs=1e-3)


def test_the_bandwidth_is_exceeded_by_as_many_rows_as_by_the_independent_count(given, audit):
    # Both counts include what the draft model reads. The bandwidth is stated, so there is no
    # tolerance.
    exceeded = set(failed(audit, "bandwidth")["run"])
    assert len(exceeded) == 117
    times = required_time(given(LIMITS))
    assert times[["reads_too_fast", "reads_too_fast_alone"]].sum().tolist() == [117, 20]
    assert len(exceeded | set(failed(audit, "expected_experts")["run"])) == 153
    assert failed(audit, "accounting").empty
