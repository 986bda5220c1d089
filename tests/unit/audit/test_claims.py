"""Verdicts on claims, each bound computed by hand; slips in a claim, and cut files, in one line."""

import re
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from specmoe.audit.claims import FIELDS, Claim, Printed, Verdict, claim_of, judge, read_claims
from specmoe.audit.limits import LIMITS
from specmoe.errors import ConfigError
from specmoe.hardware.description import known_chips

EXACT = replace(LIMITS, time_tolerance=0)
# A mixture of 1 GB always read, and 64 experts in 32 GB, of which 4, in 2 GB, make a token.
MOE = {"weights_gb": "33.00", "active_gb": "3.000", "experts": 64, "experts_used": 4}
ALONE = "bandwidth of the baseline"


def judged(limits=EXACT, **facts):
    return judge(claim_of(facts, "claim", {}), limits)


# A token of the target takes 20 ms and of the draft model 5: 2.8 tokens in 1 + 4 / 4 steps.
TIMED = {"baseline_tokens_per_second": "50.00", "gamma": 4, "drafted_per_round": 4}
TIMED |= {"acceptance_rate": 0.45, "draft_tokens_per_second": "200.0"}
# 1 + 8 x 0.25 = 3 tokens a round; 0.25 may have been up to 0.255, so 3.04. As 0.250, 3.004.
FREE = {"gamma": 8, "acceptance_rate": 0.25, "draft_ms": 0}
# At gamma 4 a round gives 1.2 tokens in 3 steps; drafting nothing loses nothing.
SMALL = {"baseline_tokens_per_second": 50, "gamma": 4, "acceptance_rate": 0.05, "draft_ms": "10.0"}
DENSE = {"weights_gb": "40.00", "bandwidth_gb_s": 800}
# 3 tokens from 40 GB: 800 / 40 x 3 tokens a second.
THREE = {"gamma": 2, "drafted_per_round": 2, "acceptance_rate": 1, "experts": 0} | DENSE
SLOW = {"baseline_tokens_per_second": 50, "gamma": 4, "drafted_per_round": 4, "draft_ms": 4}
SLOW |= {"acceptance_rate": 0.01}
# If nobody says what is active, all weights may be in experts: 33 x 4 / 64 GB.
UNSAID = {name: value for name, value in MOE.items() if name != "active_gb"}
UNSAID |= {"bandwidth_gb_s": "300.0"}
ROUNDED = MOE | {"active_gb": 3, "bandwidth_gb_s": 300}
# Five tokens visit 64 x (1 - (15 / 16)^5) experts of half a GB, and 1 GB more.
EVEN = 5 * 300 / (1 + 0.5 * 64 * (1 - (15 / 16) ** 5))
FIVE = {"baseline_tokens_per_second": 60, "gamma": 4, "acceptance_rate": 1, "draft_ms": 0}
FIVE |= {"drafted_per_round": 4, "bandwidth_gb_s": 300} | MOE
# llama.cpp counts what was accepted, 2 % or more tokens a round than four drafted ones can give.
COUNTED = [{"gamma": 4, "speedup": 1.3, "acceptance_rate": 0.02}]
COUNTED += [{"gamma": 4, "speedup": 1.2, "tokens_per_round": 5.6}]
UNTIMED = "draft_tokens_per_second"
SPEEDS = {"baseline_tokens_per_second": 55, "claimed_tokens_per_second": 70}
HALF = {"gamma": 4, "acceptance_rate": 0.5}
TRUE, FALSE = Verdict.POSSIBLE, Verdict.IMPOSSIBLE
SUMMED = {"baseline_tokens_per_second": 150, "experts": 0} | DENSE
# Facts, the verdict, or what is lacking, and the most of a bound.
CLAIMS = {
    "a pass gives at most the accepted tokens and one": [
        (FREE | {"speedup": 3.03}, TRUE, {"time": 3.04}),
        (FREE | {"speedup": 3.05}, FALSE, {"time": 3.04}),
        (FREE | {"speedup": 3.03, "acceptance_rate": "0.250"}, FALSE, {"time": 3.004})],
    "without acceptance all drafts may hold": [
        ({"speedup": 5.1, "gamma": 4}, FALSE, {"time": 5}),
        ({"speedup": 4.9, "gamma": 4, "draft_ms": 0}, "acceptance_rate", {}),
        ({"speedup": 50, "acceptance_rate": 0.5}, f"gamma {UNTIMED}", {})],
    "drafted tokens take their time one by one": [
        (TIMED | {"claimed_tokens_per_second": "71.0"}, FALSE, {"time": (1 + 4 * 0.455) / 2}),
        (TIMED | {"claimed_tokens_per_second": 69}, TRUE, {})],
    "a draft model of unknown speed is no slower than its target": [
        # One token drafted at one step at most: 1.9 tokens in 2 steps; all in one if it is free.
        ({"speedup": 1.5, "gamma": 1, "acceptance_rate": 0.9}, UNTIMED,
            {"time": 1.95}),
        ({"speedup": 1.5, "gamma": 1, "acceptance_rate": 0.9, "draft_ms": 5},
            "baseline_tokens_per_second", {})],
    # However little may be accepted and however slow the draft model may be; what is known still
    # counts.
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
        # 3 GB may be 2.5, which a token of 300 GB/s may read 120 times a second.
        (ROUNDED | {"baseline_tokens_per_second": 119}, TRUE, {}),
        (ROUNDED | {"baseline_tokens_per_second": 122}, FALSE, {}),
        (UNSAID | {"baseline_tokens_per_second": 140}, TRUE, {}),
        (UNSAID | {"baseline_tokens_per_second": 150}, FALSE, {ALONE: 300 / (33 * 4 / 64)})],
    "even routing doubts and counted experts decide": [
        (FIVE | {"claimed_tokens_per_second": 0.99 * EVEN}, TRUE, {}),
        (FIVE | {"claimed_tokens_per_second": 1.01 * EVEN}, "experts_visited", {}),
        (FIVE | {"claimed_tokens_per_second": 1.01 * EVEN, "experts_visited": 8}, TRUE, {}),
        (FIVE | {"claimed_tokens_per_second": 1.01 * EVEN, "experts_visited": 40}, FALSE, {})],
    "old counters of llama.cpp are not believed where they were wrong": [
        *[(one, FALSE, {}) for one in COUNTED],
        *[(one | {"old_counters": 0}, FALSE, {}) for one in COUNTED],
        *[(one | {"old_counters": 1}, f"acceptance_rate {UNTIMED}", {"time": 5})
            for one in COUNTED],
        (COUNTED[0] | {"old_counters": 1, "speedup": 5.1}, FALSE, {}),
        (COUNTED[0] | {"old_counters": 1, "speedup": 0.9}, TRUE, {})],
    # Of one request 800 / 40 = 20 tokens a second, so 160 of eight.
    "an impossible speed may be the sum over requests": [
        (SUMMED | {"requests": 8}, Verdict.AS_A_SUM, {f"{ALONE}, of one of 8": 20}),
        (SUMMED | {"requests": 7}, FALSE, {ALONE: 20}),
        (SUMMED | {"baseline_tokens_per_second": 19, "requests": 8}, TRUE, {ALONE: 20})],
    "a claim may contradict itself": [
        (SPEEDS | {"speedup": 1.5}, FALSE, {"accounting": 70 / 55}),
        ({"speedup": 1.1, "gamma": 4, "tokens_per_round": 5.2, "draft_ms": 0}, FALSE,
            {"accounting": 5}),
        ({"speedup": 1.1, "tokens_per_round": 4, "draft_ms": 0} | HALF, FALSE, {"accounting": 3.2}),
        # Not by numbers that were rounded: 70 is 1.273 times 55, and 1.04 of 4 are 0.26.
        (SPEEDS | HALF | {"speedup": 1.3, "draft_ms": 1}, TRUE, {}),
        (HALF | {"speedup": 0.9, "tokens_per_round": 2.04, "acceptance_rate": 0.26}, TRUE, {})],
    "what is not about drafting needs no draft model": [
        ({"baseline_tokens_per_second": 50}, "weights_gb bandwidth_gb_s", {}),
        ({}, "baseline_tokens_per_second weights_gb bandwidth_gb_s", {}),
        ({"claimed_tokens_per_second": 50, "gamma": 4}, "speedup", {})],
}  # fmt: skip


@pytest.mark.parametrize("name", CLAIMS)
def test_a_claim_is_judged_as_by_hand(name):
    for facts, verdict, bounds in CLAIMS[name]:
        found = judged(**facts)
        lacks = verdict not in {*Verdict}
        said = (Verdict.UNDECIDED, tuple(verdict.split())) if lacks else (verdict, ())
        assert (found.verdict, found.without) == said, facts
        known = {one.name: one.most for one in found.bounds}
        assert {one: known[one] for one in bounds} == pytest.approx(bounds)


def test_the_tolerance_of_time_is_the_audits():
    assert judged(LIMITS, speedup=3.37, **FREE).verdict == TRUE
    assert judged(LIMITS, speedup="3.380", **FREE).verdict == FALSE
    # Rounds that draft less may save a small gain and no large one.
    found = judged(LIMITS, speedup=1.05, **SMALL)
    assert (found.verdict, found.without) == (Verdict.UNDECIDED, ("drafted_per_round",))
    assert judged(LIMITS, speedup=1.05, drafted_per_round=4, **SMALL).verdict == FALSE
    assert judged(LIMITS, speedup=1.15, **SMALL).verdict == FALSE


def test_what_is_likely_is_reached_surely_and_many_requests_visit_more():
    [time] = judged(claimed_tokens_per_second=71, **TIMED).bounds
    assert time.surely == pytest.approx(2.8 / 2)
    facts = {"baseline_tokens_per_second": 20, "speedup": 2, "gamma": 1, "acceptance_rate": 1}
    facts |= {"draft_ms": 0, "bandwidth_gb_s": 300} | MOE
    alone, shared = (judged(requests=one, **facts).bounds[-1] for one in (1, 8))
    assert alone.surely == pytest.approx(2 * 300 / (1 + 32 * (1 - (15 / 16) ** 2)))
    assert shared.surely == pytest.approx(2 * 300 / (1 + 32 * (1 - (15 / 16) ** 16)))


VERDICTS = yaml.safe_load(Path(__file__).with_name("verdicts.yaml").read_text())


@pytest.mark.parametrize("name", VERDICTS)
def test_claims_have_the_verdicts_that_a_person_gave_them(name, root):
    found = [judge(claim) for claim in read_claims(root / "resources/claims" / name, known_chips())]
    assert [" ".join(one.without) or one.verdict for one in found] == VERDICTS[name]


CHIPS = {"Apple M2 Ultra": {"gb_per_second": 800}, "Apple M2": {"gb_per_second": 100}}


@pytest.mark.parametrize(
    ("given", "fault"),
    [
        ({"acceptance_rate": 2.6}, "acceptance_rate: 2.6 is not within 0 and 1; .*2.6 % is 0.026"),
        ({"weights_gb": "20 GiB"}, "weights_gb: '20 GiB' is no number; .*1 GiB is 1.074 GB"),
        ({"bandwidth_gb_s": 0.8}, "bandwidth_gb_s: 0.8 is not within .*0.8 TB/s are 800"),
        ({"claimed_tokens_per_second": float("nan")}, "nan is not within"),
        ({"claimed_tokens_per_second": True}, "'True' is no number"),
        ({"speed_up": 1.2}, "unknown field 'speed_up'; did you mean 'speedup'"),
        ({"experts": 128}, "experts: give experts_used too"),
        ({"weights_gb": 3, "active_gb": 20}, "active_gb: 20 is more than weights_gb, 3"),
        ({"draft_ms": 1, "draft_tokens_per_second": 9}, "draft_ms: give this or draft_tokens"),
        ({"chip": "abacus"}, "chip: 'abacus' is unknown; give bandwidth_gb_s$"),
        ({"chip": "M2"}, "chip: 'M2' .* give 'Apple M2 Ultra' or 'Apple M2' or bandwidth_gb_s$"),
    ],
)
def test_a_slip_is_one_line_that_names_the_field(given, fault):
    with pytest.raises(ConfigError, match=f"^claim: .*{fault}") as raised:
        claim_of(given, "claim", CHIPS)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("given", "half"),
    [("0.60", 0.005), (0.6, 0.05), ("40", 0.5), ("5.00", 0.005), (1, 0), ("1.0", 0.05)],
)
def test_a_number_may_be_anything_that_is_printed_so(given, half):
    assert Printed(given) == float(given)
    assert Printed(given).half == pytest.approx(half)


def test_a_chip_gives_its_bandwidth_unless_that_is_given():
    for more, rate in ({}, 100), ({"bandwidth_gb_s": 90}, 90):
        assert claim_of({"chip": "Apple M2"} | more, "c", CHIPS).facts == {"bandwidth_gb_s": rate}


def test_the_configs_readme_names_every_field(root):
    text = (root / "resources/claims/README.md").read_text()
    assert [name for name in FIELDS if f"`{name}`" not in text] == []


def written(tmp_path, content):
    file = tmp_path / "claims.csv"
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    return list(read_claims(file, CHIPS))


@pytest.mark.parametrize("separator", [",", ";", "\t"])
def test_a_table_has_a_claim_a_line(tmp_path, separator):
    text = '\ufeffname,speedup,gamma,chip\n"a, b",1.20,,Apple M2\n\nc, 1.3 ,8,\n'
    first, second = written(tmp_path, text.replace(",", separator))
    assert first == Claim(f"a{separator} b", {"speedup": 1.2, "bandwidth_gb_s": 100})
    assert second == Claim("c", {"speedup": 1.3, "gamma": 8})
    assert first.facts["speedup"].half == pytest.approx(0.005)


def test_a_table_of_markdown_has_one_too(tmp_path):
    text = "| speedup | acceptance_rate |\n|:---|--:|\n| **2.61×** | 85.2% |\n| 2 |\n"
    claim, wrong = written(tmp_path, text)
    assert claim.facts == pytest.approx({"speedup": 2.61, "acceptance_rate": 0.852})
    assert claim.accepted == pytest.approx(0.8525)
    assert ", line 4: another number of cells" in str(wrong)


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        ("b", "another number of cells than of names"),
        ("b,1.2,9", "another number of cells"),
        ("b,fast", "speedup: 'fast' is no number"),
    ],
)
def test_a_line_that_cannot_be_read_is_named_and_the_others_are_read(line, fault, tmp_path):
    first, wrong, last = written(tmp_path, f"name,speedup\na,1.2\n{line}\nc,1.3\n")
    assert (first.name, last.name) == ("a", "c")
    assert str(wrong).startswith(f"{tmp_path / 'claims.csv'}, line 3: {fault}")


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        ('name,speedup\n"a,1.2\n', ": it is no CSV"),
        (b"name\n\xff\n", r": no text in UTF-8 \(byte 5\)"),
        ("name,speed_up\na,1\nb,2\n", ", line 1: unknown field 'speed_up'; did you mean 'speedup'"),
        ("| Tokens | DFlash |\n", ", line 1: unknown fields 'Tokens', 'DFlash'; known: acc"),
    ],
)
def test_what_has_no_lines_of_claims_is_refused_whole(content, fault, tmp_path):
    with pytest.raises(ConfigError, match=rf"claims\.csv{fault}"):
        written(tmp_path, content)


def test_what_is_reported_of_trained_routers_is_said_and_is_no_bound():
    claimed = FIVE | {"claimed_tokens_per_second": EVEN + 1, "baseline_tokens_per_second": 99}
    even, counted = (
        next(bound for bound in judged(**claimed, **seen).bounds if bound.name == "bandwidth")
        for seen in ({}, {"experts_visited": 17})
    )
    assert re.search(r" or [\d.]+ with 0\.\d\d of the experts of uniform routing", even.why)
    assert (even.verdict, even.missing) == (Verdict.UNDECIDED, ("experts_visited",))
    assert "trained routers" not in counted.why
