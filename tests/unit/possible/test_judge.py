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


def bound(found, name):
    [one] = [one for one in found.bounds if one.name == name]
    return one


def test_a_pass_gives_at_most_the_accepted_tokens_and_one():
    # 1 + 8 x 0.25 = 3 tokens a round; 0.25 may have been up to 0.255, so 3.04. As 0.250, 3.004.
    facts = {"gamma": 8, "acceptance_rate": 0.25, "draft_ms": 0}
    assert judged(speedup=3.03, **facts).verdict == Verdict.POSSIBLE
    found = judged(speedup=3.05, **facts)
    assert (found.verdict, bound(found, "time").most) == (Verdict.IMPOSSIBLE, pytest.approx(3.04))
    assert judged(speedup=3.03, **facts | {"acceptance_rate": "0.250"}).verdict == "impossible"
    assert judged(SETTINGS, speedup=3.37, **facts).verdict == Verdict.POSSIBLE
    assert judged(SETTINGS, speedup=3.38, **facts).verdict == Verdict.IMPOSSIBLE


def test_without_acceptance_all_drafts_may_hold():
    assert judged(speedup=5.1, gamma=4).verdict == Verdict.IMPOSSIBLE
    found = judged(speedup=4.9, gamma=4, draft_ms=0)
    assert (found.verdict, found.without) == (Verdict.UNDECIDED, ("acceptance_rate",))
    assert judged(speedup=50, acceptance_rate=0.5).without == ("gamma",)


def test_drafted_tokens_take_their_time_one_by_one():
    # A token of the target takes 20 ms and of the draft 5: 2.8 tokens in 1 + 4 / 4 steps.
    facts = {"baseline_tokens_per_second": 50, "gamma": 4, "drafted_per_round": 4}
    facts |= {"acceptance_rate": 0.45, "draft_tokens_per_second": 200}
    found = judged(claimed_tokens_per_second=71, **facts)
    assert found.verdict == Verdict.IMPOSSIBLE
    drafting = bound(found, "time")
    assert drafting.most == pytest.approx((1 + 4 * 0.455) / 2)
    assert drafting.surely == pytest.approx(2.8 / 2)
    assert judged(claimed_tokens_per_second=69, **facts).verdict == Verdict.POSSIBLE


def test_rounds_that_draft_less_may_save_a_small_gain_and_no_large_one():
    # At gamma 4 a round gives 1.2 tokens in 3 steps; drafting nothing loses nothing.
    facts = {"baseline_tokens_per_second": 50, "gamma": 4, "acceptance_rate": 0.05, "draft_ms": 10}
    found = judged(SETTINGS, speedup=1.05, **facts)
    assert (found.verdict, found.without) == (Verdict.UNDECIDED, ("drafted_per_round",))
    assert judged(SETTINGS, speedup=1.05, drafted_per_round=4, **facts).verdict == "impossible"
    assert judged(SETTINGS, speedup=1.15, **facts).verdict == Verdict.IMPOSSIBLE


def test_a_draft_of_unknown_speed_is_no_slower_than_its_target():
    # One token drafted at one step at most: 1.9 tokens in 2 steps; all in one if it is free.
    found = judged(speedup=1.5, gamma=1, acceptance_rate=0.9)
    assert found.without == ("draft_tokens_per_second",)
    assert (
        found.why == "time: 1.9 tokens a round that drafts 1 at 0 to 1 steps each: at most 0.95"
        " to 1.95 times, claimed 1.5"
    )
    found = judged(speedup=1.5, gamma=1, acceptance_rate=0.9, draft_ms=5)
    assert found.without == ("baseline_tokens_per_second",)


def test_nothing_limits_how_slow_a_program_is():
    # However little may be accepted and however slow the draft may be; what is known still counts.
    assert judged(speedup=0.65, gamma=3).verdict == Verdict.POSSIBLE
    facts = {"baseline_tokens_per_second": 50, "gamma": 4, "drafted_per_round": 4, "draft_ms": 4}
    assert judged(speedup=0.5, acceptance_rate=0.01, **facts).verdict == Verdict.POSSIBLE
    assert judged(speedup=0.9, acceptance_rate=0.01, **facts).verdict == Verdict.IMPOSSIBLE


def test_memory_delivers_the_weights_of_every_pass():
    facts = {"weights_gb": 40, "bandwidth_gb_s": 800}
    found = judged(baseline_tokens_per_second=20.1, experts=0, **facts)
    assert (found.verdict, bound(found, ALONE).most) == (Verdict.IMPOSSIBLE, 20)
    assert judged(baseline_tokens_per_second=19.9, experts=0, **facts).verdict == Verdict.POSSIBLE
    assert judged(baseline_tokens_per_second=19.9, **facts).verdict == Verdict.POSSIBLE
    # Without a word on experts it may be a mixture.
    found = judged(baseline_tokens_per_second=20.1, **facts)
    assert (found.verdict, found.without) == (Verdict.UNDECIDED, ("experts",))


def test_a_round_gives_several_tokens_for_one_reading():
    # 3 tokens from 40 GB: 800 / 40 x 3 tokens a second.
    facts = {"baseline_tokens_per_second": 18, "gamma": 2, "drafted_per_round": 2}
    facts |= {"acceptance_rate": 1, "weights_gb": 40, "experts": 0, "bandwidth_gb_s": 800}
    found = judged(claimed_tokens_per_second=53, draft_ms=0, **facts)
    assert bound(found, "bandwidth").most == pytest.approx(3 * 800 / 40)
    assert found.verdict == Verdict.POSSIBLE
    found = judged(claimed_tokens_per_second=61, **facts | {"baseline_tokens_per_second": 21})
    assert found.verdict == Verdict.IMPOSSIBLE


def test_of_a_mixture_a_token_reads_the_experts_that_it_visits():
    facts = {"bandwidth_gb_s": 300}
    assert judged(baseline_tokens_per_second=99, **MOE, **facts).verdict == Verdict.POSSIBLE
    assert judged(baseline_tokens_per_second=101, **MOE, **facts).verdict == Verdict.IMPOSSIBLE
    # If nobody says what is active, all weights may be in experts: 33 x 4 / 64 GB.
    unknown = {name: value for name, value in MOE.items() if name != "active_gb"}
    assert judged(baseline_tokens_per_second=140, **unknown, **facts).verdict == Verdict.POSSIBLE
    found = judged(baseline_tokens_per_second=150, **unknown, **facts)
    assert bound(found, ALONE).most == pytest.approx(300 / (33 * 4 / 64))


def test_even_routing_doubts_and_counted_experts_decide():
    # Five tokens visit 64 x (1 - (15 / 16)^5) experts of half a GB, and 1 GB more.
    read = 1 + 0.5 * 64 * (1 - (15 / 16) ** 5)
    facts = {"baseline_tokens_per_second": 60, "gamma": 4, "acceptance_rate": 1, "draft_ms": 0}
    facts |= {"drafted_per_round": 4, "bandwidth_gb_s": 300} | MOE
    most = 5 * 300 / read
    assert judged(claimed_tokens_per_second=0.99 * most, **facts).verdict == Verdict.POSSIBLE
    found = judged(claimed_tokens_per_second=1.01 * most, **facts)
    assert (found.verdict, found.without) == (Verdict.UNDECIDED, ("experts_visited",))
    assert bound(found, "bandwidth").surely == pytest.approx(most)
    facts |= {"claimed_tokens_per_second": 1.01 * most}
    assert judged(experts_visited=8, **facts).verdict == Verdict.POSSIBLE
    assert judged(experts_visited=40, **facts).verdict == Verdict.IMPOSSIBLE


def test_many_requests_at_once_visit_more():
    facts = {"baseline_tokens_per_second": 20, "speedup": 2, "gamma": 1, "acceptance_rate": 1}
    facts |= {"draft_ms": 0, "bandwidth_gb_s": 300} | MOE
    alone, shared = (bound(judged(requests=one, **facts), "bandwidth") for one in (1, 8))
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


def test_what_is_not_about_drafting_needs_no_draft():
    found = judged(baseline_tokens_per_second=50)
    assert found.without == ("weights_gb", "bandwidth_gb_s")
    assert judged().without == ("baseline_tokens_per_second", "weights_gb", "bandwidth_gb_s")
    assert judged(claimed_tokens_per_second=50, gamma=4).without == ("speedup",)


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
