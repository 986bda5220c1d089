"""Any claim within the ranges of its fields gets a verdict, and a faster one no kinder verdict."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from specmoe.config.audit import AuditSettings
from specmoe.errors import ConfigError
from specmoe.possible.claim import FIELDS, claim_of
from specmoe.possible.judge import Verdict, judge
from specmoe.possible.table import COLUMNS, row_of
from specmoe.possible.text import describe

SETTINGS = AuditSettings()
NUMBERS = {name: one.metadata["range"] for name, one in FIELDS.items() if one.metadata}


@st.composite
def claims(draw):
    """Return a claim with some facts, each anywhere between its limits, or at them."""
    facts = {}
    for name, (low, high) in NUMBERS.items():
        between = st.floats(low, high) | st.sampled_from([low, high, min(max(1.0, low), high)])
        facts[name] = draw(st.none() | between)
    try:
        return claim_of(facts, "claim", {})
    except ConfigError:
        # Two facts that do not go together; what is left of them does.
        pairs = ("drafted_per_round", "active_gb", "experts_used", "experts_visited", "experts")
        kept = {name: one for name, one in facts.items() if name not in (*pairs, "draft_ms")}
        return claim_of(kept, "claim", {})


@given(claims())
def test_every_claim_has_a_verdict_a_row_and_a_text(claim):
    judged = judge(claim, SETTINGS)
    assert (judged.verdict == Verdict.UNDECIDED) == bool(judged.without)
    assert set(judged.without) <= set(FIELDS)
    assert all(getattr(claim, name) is None for name in judged.without)
    assert tuple(row_of(judged)) == COLUMNS
    assert all("\n" not in line for line in describe(judged, {}))


@given(claims(), st.floats(1.01, 10))
def test_an_impossible_speed_stays_impossible_if_it_is_higher(claim, factor):
    if claim.speedup is not None and claim.claimed_tokens_per_second is not None:
        claim = replace(claim, speedup=None)
    faster = replace(
        claim,
        speedup=claim.speedup and claim.speedup * factor,
        claimed_tokens_per_second=claim.claimed_tokens_per_second
        and claim.claimed_tokens_per_second * factor,
    )
    if judge(claim, SETTINGS).verdict == Verdict.IMPOSSIBLE:
        assert judge(faster, SETTINGS).verdict == Verdict.IMPOSSIBLE


@given(claims())
def test_what_is_possible_is_not_impossible_when_slower(claim):
    if claim.speedup is not None and claim.claimed_tokens_per_second is not None:
        claim = replace(claim, claimed_tokens_per_second=None)
    rate = claim.claimed_tokens_per_second
    slower = replace(
        claim,
        speedup=claim.speedup and claim.speedup / 2,
        claimed_tokens_per_second=rate and rate / 2,
    )
    if judge(claim, SETTINGS).verdict == Verdict.POSSIBLE:
        assert judge(slower, SETTINGS).verdict != Verdict.IMPOSSIBLE
