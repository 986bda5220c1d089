"""Verdicts on claims, each bound computed by hand. The audit allows a tenth for timing."""

import csv

import pytest

from specmoe.config.measurement import AuditSettings
from specmoe.plan.machine import bandwidth_by_chip
from specmoe.possible.claim import claim_of, read_claims
from specmoe.possible.judge import Verdict, judge

SETTINGS = AuditSettings(time_tolerance=0.1)
EXACT = AuditSettings(time_tolerance=0)
PRINTED = ("gamma", "tokens_per_second", "speedup", "acceptance_percent")
# A mixture of 1 GB always read, and 64 experts in 32 GB, of which 4, in 2 GB, make a token.
MOE = {"weights_gb": 33, "active_gb": 3, "experts": 64, "experts_used": 4}


ALONE = "bandwidth without a draft"


def judged(settings=EXACT, **facts):
    return judge(claim_of(facts, "claim", {}), settings)


# A token of the target takes 20 ms and of the draft 5: 2.8 tokens in 1 + 4 / 4 steps.
TIMED = {"baseline_tokens_per_second": 50, "gamma": 4, "drafted_per_round": 4}
TIMED |= {"acceptance_rate": 0.45, "draft_tokens_per_second": 200}
# 1 + 8 x 0.25 = 3 tokens a round; 0.25 may have been up to 0.255, so 3.04. As 0.250, 3.004.
FREE = {"gamma": 8, "acceptance_rate": 0.25, "draft_ms": 0}
# At gamma 4 a round gives 1.2 tokens in 3 steps; drafting nothing loses nothing.
SMALL = {"baseline_tokens_per_second": 50, "gamma": 4, "acceptance_rate": 0.05, "draft_ms": 10}
DENSE = {"weights_gb": 40, "bandwidth_gb_s": 800}
# 3 tokens from 40 GB: 800 / 40 x 3 tokens a second.
THREE = {"gamma": 2, "drafted_per_round": 2, "acceptance_rate": 1, "experts": 0} | DENSE
SLOW = {"baseline_tokens_per_second": 50, "gamma": 4, "drafted_per_round": 4, "draft_ms": 4}
SLOW |= {"acceptance_rate": 0.01}
# If nobody says what is active, all weights may be in experts: 33 x 4 / 64 GB.
UNSAID = {name: value for name, value in MOE.items() if name != "active_gb"}
UNSAID |= {"bandwidth_gb_s": 300}
# Five tokens visit 64 x (1 - (15 / 16)^5) experts of half a GB, and 1 GB more.
EVEN = 5 * 300 / (1 + 0.5 * 64 * (1 - (15 / 16) ** 5))
FIVE = {"baseline_tokens_per_second": 60, "gamma": 4, "acceptance_rate": 1, "draft_ms": 0}
FIVE |= {"drafted_per_round": 4, "bandwidth_gb_s": 300} | MOE
TRUE, FALSE = Verdict.POSSIBLE, Verdict.IMPOSSIBLE
# Facts, the verdict, or what is lacking, and the most of a bound.
CLAIMS = {
    "a pass gives at most the accepted tokens and one": [
        (FREE | {"speedup": 3.03}, TRUE, {"time": 3.04}),
        (FREE | {"speedup": 3.05}, FALSE, {"time": 3.04}),
        (FREE | {"speedup": 3.03, "acceptance_rate": "0.250"}, FALSE, {"time": 3.004})],
    "without acceptance all drafts may hold": [
        ({"speedup": 5.1, "gamma": 4}, FALSE, {"time": 5}),
        ({"speedup": 4.9, "gamma": 4, "draft_ms": 0}, "acceptance_rate", {}),
        ({"speedup": 50, "acceptance_rate": 0.5}, "gamma", {})],
    "drafted tokens take their time one by one": [
        (TIMED | {"claimed_tokens_per_second": 71}, FALSE, {"time": (1 + 4 * 0.455) / 2}),
        (TIMED | {"claimed_tokens_per_second": 69}, TRUE, {})],
    "a draft of unknown speed is no slower than its target": [
        # One token drafted at one step at most: 1.9 tokens in 2 steps; all in one if it is free.
        ({"speedup": 1.5, "gamma": 1, "acceptance_rate": 0.9}, "draft_tokens_per_second",
            {"time": 1.95}),
        ({"speedup": 1.5, "gamma": 1, "acceptance_rate": 0.9, "draft_ms": 5},
            "baseline_tokens_per_second", {})],
    # However little may be accepted and however slow the draft may be; what is known still counts.
    "nothing limits how slow a program is": [
        ({"speedup": 0.65, "gamma": 3}, TRUE, {}),
        (SLOW | {"speedup": 0.5}, TRUE, {}),
        (SLOW | {"speedup": 0.9}, FALSE, {})],
    "memory delivers the weights of every pass": [
        (DENSE | {"baseline_tokens_per_second": 20.1, "experts": 0}, FALSE, {ALONE: 20}),
        (DENSE | {"baseline_tokens_per_second": 19.9, "experts": 0}, TRUE, {}),
        (DENSE | {"baseline_tokens_per_second": 19.9}, TRUE, {}),
        # Without a word on experts it may be a mixture.
        (DENSE | {"baseline_tokens_per_second": 20.1}, "experts", {})],
    "a round gives several tokens for one reading": [
        (THREE | {"baseline_tokens_per_second": 18, "claimed_tokens_per_second": 53, "draft_ms": 0},
            TRUE, {"bandwidth": 3 * 800 / 40}),
        (THREE | {"baseline_tokens_per_second": 21, "claimed_tokens_per_second": 61}, FALSE, {})],
    "of a mixture a token reads the experts that it visits": [
        (MOE | {"baseline_tokens_per_second": 99, "bandwidth_gb_s": 300}, TRUE, {}),
        (MOE | {"baseline_tokens_per_second": 101, "bandwidth_gb_s": 300}, FALSE, {ALONE: 100}),
        (UNSAID | {"baseline_tokens_per_second": 140}, TRUE, {}),
        (UNSAID | {"baseline_tokens_per_second": 150}, FALSE, {ALONE: 300 / (33 * 4 / 64)})],
    "even routing doubts and counted experts decide": [
        (FIVE | {"claimed_tokens_per_second": 0.99 * EVEN}, TRUE, {}),
        (FIVE | {"claimed_tokens_per_second": 1.01 * EVEN}, "experts_visited", {}),
        (FIVE | {"claimed_tokens_per_second": 1.01 * EVEN, "experts_visited": 8}, TRUE, {}),
        (FIVE | {"claimed_tokens_per_second": 1.01 * EVEN, "experts_visited": 40}, FALSE, {})],
    "what is not about drafting needs no draft": [
        ({"baseline_tokens_per_second": 50}, "weights_gb bandwidth_gb_s", {}),
        ({}, "baseline_tokens_per_second weights_gb bandwidth_gb_s", {}),
        ({"claimed_tokens_per_second": 50, "gamma": 4}, "speedup", {})],
}  # fmt: skip


@pytest.mark.parametrize("name", CLAIMS)
def test_a_claim_is_judged_as_by_hand(name):
    for facts, verdict, bounds in CLAIMS[name]:
        found = judged(**facts)
        lacks = verdict not in (TRUE, FALSE)
        said = (Verdict.UNDECIDED, tuple(verdict.split())) if lacks else (verdict, ())
        assert (found.verdict, found.without) == said, facts
        known = {one.name: one.most for one in found.bounds}
        assert {one: known[one] for one in bounds} == pytest.approx(bounds)


def test_the_tolerance_of_time_is_the_audits():
    assert judged(SETTINGS, speedup=3.37, **FREE).verdict == TRUE
    assert judged(SETTINGS, speedup=3.38, **FREE).verdict == FALSE
    # Rounds that draft less may save a small gain and no large one.
    found = judged(SETTINGS, speedup=1.05, **SMALL)
    assert (found.verdict, found.without) == (Verdict.UNDECIDED, ("drafted_per_round",))
    assert judged(SETTINGS, speedup=1.05, drafted_per_round=4, **SMALL).verdict == FALSE
    assert judged(SETTINGS, speedup=1.15, **SMALL).verdict == FALSE


def test_what_is_likely_is_reached_surely_and_many_requests_visit_more():
    [time] = judged(claimed_tokens_per_second=71, **TIMED).bounds
    assert time.surely == pytest.approx(2.8 / 2)
    facts = {"baseline_tokens_per_second": 20, "speedup": 2, "gamma": 1, "acceptance_rate": 1}
    facts |= {"draft_ms": 0, "bandwidth_gb_s": 300} | MOE
    alone, shared = (judged(requests=one, **facts).bounds[-1] for one in (1, 8))
    assert alone.surely == pytest.approx(2 * 300 / (1 + 32 * (1 - (15 / 16) ** 2)))
    assert shared.surely == pytest.approx(2 * 300 / (1 + 32 * (1 - (15 / 16) ** 16)))


@pytest.mark.parametrize(
    "facts",
    [
        {"baseline_tokens_per_second": 55, "claimed_tokens_per_second": 70, "speedup": 1.5},
        {"speedup": 1.1, "gamma": 4, "tokens_per_round": 5.2},
        {"speedup": 1.1, "gamma": 4, "tokens_per_round": 4, "acceptance_rate": 0.5},
    ],
)
def test_a_claim_may_contradict_itself(facts):
    found = judged(draft_ms=0, **facts)
    assert found.verdict == Verdict.IMPOSSIBLE
    assert found.why.startswith("accounting: ")


def test_numbers_that_were_rounded_do_not_contradict_each_other():
    facts = {"baseline_tokens_per_second": 55.3, "claimed_tokens_per_second": 69.7}
    facts |= {"speedup": 1.26, "gamma": 4, "tokens_per_round": 2.04, "acceptance_rate": 0.26}
    accounting = [one for one in judged(**facts).bounds if one.name == "accounting"]
    assert [one.verdict for one in accounting] == [Verdict.POSSIBLE] * 2


@pytest.fixture
def read(root):
    chips = bandwidth_by_chip()
    return lambda name: list(read_claims(root / "resources/possible" / name, {}, chips))


def test_twenty_claims_have_the_verdicts_that_a_person_gave_them(read):
    found = [judge(claim, AuditSettings()) for claim in read("twenty.csv")]
    said = [(one.verdict.value, " ".join(one.without)) for one in found]
    true, false = ("possible", ""), ("impossible", "")
    lacking = ["draft_tokens_per_second"] * 2, ["experts"], ["experts_visited"]
    drafts, experts, visited = ([("not decidable", one) for one in some] for some in lacking)
    both = [("not decidable", "acceptance_rate draft_tokens_per_second")]
    assert said == [
        *(false, false, *drafts, true, true, false, true, true, *experts),
        *(false, false, false, false, *both, true, false, *visited, true, true),
    ]


def test_every_row_of_the_studys_table_5_is_impossible(read):
    found = [judge(claim, AuditSettings()).verdict for claim in read("table5.csv")]
    assert found == [Verdict.IMPOSSIBLE] * 18


def test_table_5_is_transcribed_as_in_the_reported_numbers(read, root):
    with (root / "resources/reported/table5.csv").open() as file:
        printed = [tuple(float(row[name]) for name in PRINTED) for row in csv.DictReader(file)]
    with (root / "resources/reported/table4.csv").open() as file:
        rates = {float(row["tokens_per_second"]) for row in csv.DictReader(file)}
    typed = [claim.facts for claim in read("table5.csv")]
    names = ("gamma", "claimed_tokens_per_second", "speedup")
    found = [
        (*(one[name] for name in names), round(100 * one["acceptance_rate"], 1)) for one in typed
    ]
    assert found == printed
    assert {one["baseline_tokens_per_second"] for one in typed} <= rates
