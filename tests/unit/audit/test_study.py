"""The audit of the published study's own 306 rows, against counts made independently of it.

By that count the draft-time bound is broken in all 216 rows of suites B and D and in none of F's,
and the bandwidth of 800 GB/s in 117 rows if a pass reads 8 experts a layer, in 153 if it reads as
many as its tokens visit in expectation.
"""

from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

from specmoe.audit.bounds import required_time
from specmoe.audit.checks import audit_runs, summarise_audit
from specmoe.audit.text import describe_audit
from specmoe.config.audit import AuditSettings
from specmoe.config.load import load
from specmoe.models.sizes import size_of
from specmoe.runs.schema import read_runs, write_runs
from specmoe.runs.study_csv import rows_of_csv

PUBLISHED = Path(__file__).parents[4] / "shared/reference/published/runs.csv"
BANDWIDTH = 800e9  # of an Apple M2 Ultra, by its maker
EXACT = AuditSettings(time_tolerance=0, bandwidth_tolerance=0)

pytestmark = pytest.mark.skipif(
    not PUBLISHED.exists(), reason=f"the published rows are not at {PUBLISHED}"
)


@pytest.fixture
def runs(study, tmp_path):
    write_runs(rows_of_csv(PUBLISHED, study["published"]["sha256"]), tmp_path / "runs.parquet")
    return read_runs(tmp_path / "runs.parquet")


@pytest.fixture
def sizes(study, root):
    config = load(study, root)
    return {model: size_of(model, config, {}, {}) for model in config.models}


def failed(audit, check):
    return audit[(audit["check"] == check) & (audit["verdict"] == "fail")]


def test_the_time_bound_is_broken_by_every_row_of_b_and_d_and_by_none_of_f(runs, sizes):
    audit = audit_runs(runs, sizes, BANDWIDTH, AuditSettings())
    assert failed(audit, "draft_time")["suite"].value_counts().to_dict() == {"B": 144, "D": 72}
    [passed] = audit[(audit["check"] == "draft_time") & (audit["verdict"] == "pass")][
        "suite"
    ].unique()
    assert passed == "F"


def test_the_time_bound_is_broken_by_factors_of_one_and_a_half_to_nine_and_a_half(runs, sizes):
    # With the tolerance, and the 0.8B draft faster than its stand-in by the bytes of both files.
    ratios = failed(audit_runs(runs, sizes, BANDWIDTH, AuditSettings()), "draft_time")["ratio"]
    assert (ratios.min(), ratios.max()) == (
        pytest.approx(1.325, abs=1e-3),
        pytest.approx(8.558, abs=1e-3),
    )
    # With neither.
    alike = sizes | {"dense_0.8b": sizes["draft_0.8b"]}
    ratios = failed(audit_runs(runs, alike, BANDWIDTH, EXACT), "draft_time")["ratio"]
    assert (ratios.min(), ratios.max()) == (
        pytest.approx(1.633, abs=1e-3),
        pytest.approx(9.509, abs=1e-3),
    )


def test_the_targets_passes_alone_take_longer_than_132_rows_say(runs, sizes):
    # The independent count has 133: it times targets by their mean run, not by the fastest.
    untimed = EXACT.model_copy(update={"draft_stand_ins": {}})
    assert len(failed(audit_runs(runs, sizes, BANDWIDTH, untimed), "draft_time")) == 132


def test_the_bandwidth_bound_is_broken_by_as_many_rows_as_by_the_independent_count(runs, sizes):
    # Both counts include what the draft reads; the tolerance lets six rows pass.
    assert len(failed(audit_runs(runs, sizes, BANDWIDTH, EXACT), "bandwidth")) == 153
    assert len(failed(audit_runs(runs, sizes, BANDWIDTH, AuditSettings()), "bandwidth")) == 147
    # As if the tokens of a pass all visited the same 8 experts: no more read than for one token.
    eight = {
        model: replace(size, always_read_bytes=size.pass_bytes(1), experts=0)
        for model, size in sizes.items()
    }
    assert len(failed(audit_runs(runs, eight, BANDWIDTH, EXACT), "bandwidth")) == 117


def test_no_baseline_breaks_anything(runs, sizes):
    audit = audit_runs(runs, sizes, BANDWIDTH, EXACT)
    baselines = audit[audit["draft"] == "none"]
    assert baselines["run"].nunique() == 72
    assert not (baselines["verdict"] == "fail").any()
    assert baselines.loc[baselines["check"] == "bandwidth", "ratio"].max() < 0.7


def test_the_counters_agree_and_what_was_not_kept_is_not_judged(runs, sizes):
    audit = audit_runs(runs, sizes, BANDWIDTH, AuditSettings())
    verdicts = audit.groupby("check")["verdict"].unique().map(list).to_dict()
    assert verdicts["accounting"] == ["pass"]
    for check in ("failed_decodes", "losslessness", "determinism", "controls"):
        assert verdicts[check] == ["not applicable"]


def test_every_bound_that_is_broken_says_that_it_rests_on_recovered_values(runs, sizes):
    audit = audit_runs(runs, sizes, BANDWIDTH, AuditSettings())
    assert audit.loc[audit["verdict"] == "fail", "recovered"].all()


def test_the_summary_and_the_text_have_the_campaigns_totals(runs, sizes):
    audit = audit_runs(runs, sizes, BANDWIDTH, AuditSettings())
    whole = summarise_audit(audit).iloc[-1]
    assert (whole["runs"], whole["marked"]) == (306, 216)
    text = describe_audit(audit, runs)
    assert "306 rows, 234 of them with a draft\n216 rows break a bound" in text
    assert "216 of 234 rows break it, the worst by a factor of 8.6; 72 not applicable" in text


def test_the_figures_times_are_those_of_the_bound(runs, sizes):
    frame = required_time(runs, sizes, EXACT)
    audit = audit_runs(runs, sizes, BANDWIDTH, EXACT)
    bound = audit[(audit["check"] == "draft_time") & audit["ratio"].notna()]
    assert frame["run"].tolist() == bound["run"].tolist()
    assert frame["required_ms"].tolist() == pytest.approx(bound["bound"].tolist())
    assert frame["family"].value_counts().to_dict() == {"moe": 162, "dense": 72}


FAULTS = {
    "a round more": (lambda rows: rows.assign(rounds=rows["rounds"] + 1), {"accounting"}),
    "acceptance halved": (lambda rows: rows.assign(accepted=rows["accepted"] // 2), {"accounting"}),
    "a failed decode": (lambda rows: rows.assign(decode_failures=1), {"failed_decodes"}),
    "a third of the time": (
        lambda rows: rows.assign(
            decode_ms=rows["decode_ms"] / 3, tokens_per_second=rows["tokens_per_second"] * 3
        ),
        {"draft_time"},
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_faults_planted_in_the_rows_of_f_that_hold_are_caught(runs, sizes, fault):
    plant, checks = FAULTS[fault]
    is_good = (runs["suite"] == "F") & (runs["draft"] != "none")
    planted = pd.concat([runs[~is_good], plant(runs[is_good])])
    audit = audit_runs(planted, sizes, BANDWIDTH, AuditSettings())
    found = audit[(audit["suite"] == "F") & (audit["verdict"] == "fail")]
    assert set(found["check"]) == checks
    assert found["run"].nunique() == 18
    assert set(found["draft"]) == {"draft_0.8b"}
