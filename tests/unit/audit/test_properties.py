"""Properties of the audit that hold for every campaign."""

from hypothesis import given, settings
from hypothesis import strategies as st

from specmoe.audit.checks import CHECKS

from .test_checks import DRAFT_MS, TARGET_MS, audited, campaign, failures, finding, speculative
from .test_draft_rounds import counted, play

# An example audits a campaign, which takes as long as ten of other properties.
few = settings(max_examples=30)
counts = st.one_of(st.none(), st.integers(0, 100))


@st.composite
def true_runs(draw):
    """Return what a server counts of a hybrid target, whatever it accepts and at any speed."""
    gamma, agrees = draw(st.integers(1, 16)), draw(st.lists(st.booleans(), min_size=2))
    tokens = [*range(len(agrees))]
    rounds, replays, single = play(tokens, agrees, gamma, len(tokens), True)
    due, passes = counted(rounds, replays), len(rounds) + replays + single
    return speculative(
        1,
        prompt="another",
        gamma=gamma,
        n_predict=len(tokens),
        generated=len(tokens),
        accepted_per_position=[sum(held > at for _, held in rounds) for at in range(gamma)],
        replays_rejected=0,
        decodes=passes + 1,
        decode_ms=draw(st.floats(1, 10)) * (passes * TARGET_MS + due.drafted * DRAFT_MS),
        tokens=tokens,
        baseline=None,
        **due._asdict(),
    )


@few
@given(true_runs())
def test_no_true_run_breaks_a_bound(row):
    audit = audited(campaign(row))
    assert failures(audit) == {}
    assert finding(audit, "accounting")["verdict"] == "pass"
    assert finding(audit, "draft_time")["verdict"] == "pass"


@few
@given(
    st.fixed_dictionaries(
        {
            **dict.fromkeys(("rounds", "drafted", "accepted", "decodes", "replays"), counts),
            "decode_failures": counts,
            "generated": st.one_of(st.none(), st.integers(1, 100)),
            "accepted_per_position": st.one_of(st.none(), st.lists(st.integers(0, 50), max_size=5)),
            "tokens": st.one_of(st.none(), st.lists(st.integers(0, 3), max_size=5)),
            "decode_ms": st.one_of(st.none(), st.floats(1e-3, 1e6)),
            "tokens_per_second": st.one_of(st.none(), st.floats(1e-3, 1e6)),
        }
    )
)
def test_every_row_gets_a_verdict_that_follows_from_its_ratio(change):
    audit = audited(campaign(speculative(1) | change))
    assert len(audit) == 7 * len(CHECKS)
    assert ((audit["verdict"] == "fail") == (audit["ratio"] > 1)).all()
    assert (audit["verdict"].isin(["not applicable", "not judged"]) == audit["ratio"].isna()).all()
    assert audit["why"].str.len().gt(0).all()
