"""Properties of the audit that hold for every campaign."""

from hypothesis import given, settings
from hypothesis import strategies as st

from specmoe.audit.checks import CHECKS

from .test_checks import DRAFT_MS, TARGET_MS, audited, campaign, failures, finding, speculative

# An example audits a campaign, which takes as long as ten of other properties.
few = settings(max_examples=30)
counts = st.one_of(st.none(), st.integers(0, 100))


@st.composite
def true_runs(draw):
    """Return what a server counts of a hybrid target, whatever it accepts and at any speed.

    A partly accepted round is replayed with the target's own token at its end; the replay accepts
    all of it.
    """
    gamma, n_predict = draw(st.integers(1, 16)), draw(st.integers(2, 120))
    left, rounds, drafted, replays, passes = n_predict - 1, 0, 0, 0, 0
    positions = [0] * gamma
    while left:
        passes += 1
        n_tokens = min(gamma, left - 1)
        if not n_tokens:
            left -= 1
            continue
        accepted = draw(st.integers(0, n_tokens))
        rounds, drafted = rounds + 1, drafted + n_tokens
        positions = [count + (at < accepted) for at, count in enumerate(positions)]
        partly = accepted < n_tokens
        replays, passes = replays + partly, passes + partly
        left -= accepted + 1 + partly
    tokens = list(range(n_predict))
    overhead = draw(st.floats(1, 10))
    decode_ms = overhead * (passes * TARGET_MS + drafted * DRAFT_MS)
    return speculative(
        1,
        prompt="another",
        gamma=gamma,
        n_predict=n_predict,
        generated=n_predict,
        rounds=rounds,
        drafted=drafted,
        accepted=sum(positions),
        accepted_per_position=positions,
        replays=replays,
        replays_rejected=0,
        decodes=passes + 1,
        decode_ms=decode_ms,
        tokens=tokens,
        baseline=None,
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
    row = speculative(1) | change
    audit = audited(campaign(row))
    assert len(audit) == 7 * len(CHECKS)
    assert ((audit["verdict"] == "fail") == (audit["ratio"] > 1)).all()
    unknown = audit["verdict"].isin(["not applicable", "not judged"])
    assert (unknown == audit["ratio"].isna()).all()
    assert audit["why"].str.len().gt(0).all()
