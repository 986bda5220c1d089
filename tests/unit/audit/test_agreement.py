"""Rounds that are not the draft's are found without a time; what no reading tells is named."""

import re
from dataclasses import replace
from random import Random

import pytest

from specmoe.audit.accounting import check_agreement
from specmoe.audit.evidence import Evidence
from specmoe.audit.reading import Limits, Reading, rounds_from_agreement

from .test_checks import SETTINGS, TOKENS, campaign, speculative

RUN = "B/target/draft/g4/r1"
KEY = ("current-cpu", "target", "draft", "code")
READING = Reading(
    draft_sha256="draft",
    tokens=tuple(TOKENS),
    agrees=tuple(Random(1).random() < 0.7 for _ in TOKENS),
    confidence=(0.9,) * len(TOKENS),
    lead_nats=(1.0,) * len(TOKENS),
    moved_nats=0.01,
)


def counts_of(agrees):
    """Return the counts of a run whose draft agrees in those places."""
    due = rounds_from_agreement(agrees, 4, Limits(len(agrees)))
    drafted, accepted = sum(due.drafted_lengths), sum(due.accepted_lengths)
    return {"rounds": len(due.drafted_lengths), "drafted": drafted, "accepted": accepted}


DUE = counts_of(READING.agrees)
COUNTS = {**DUE, "replays": 0, "replays_rejected": 0}


def found(reading=READING, **changed):
    """Return what the check finds of a run with the due counts, some of them changed."""
    row = speculative(1, **COUNTS | changed)
    readings = {KEY: [reading]}
    given = Evidence(campaign(row), {}, None, SETTINGS, readings=readings)
    return check_agreement(given.runs[RUN], given)


def forged(more):
    """Return the counts of a run that says it accepted so many tokens more, as they add up."""
    more_of = {"rounds": -more, "accepted": more, "drafted": -4 * more}
    return {name: DUE[name] + number for name, number in more_of.items()}


def test_the_rounds_of_the_reading_pass():
    assert found().verdict == "pass"
    assert "as the draft's reading" in found().why


@pytest.mark.parametrize("more", [1, -1, 2, -3])
def test_a_single_accepted_token_more_or_less_is_found(more):
    finding = found(**forged(more))
    assert finding.verdict == "fail"
    assert (
        f"{DUE['accepted'] + more} accepted, {DUE['accepted']} by the draft's reading"
        in finding.why
    )


@pytest.mark.parametrize("name", ["rounds", "drafted", "accepted", "replays"])
def test_each_count_is_compared(name):
    assert found(**{name: COUNTS[name] + 1}).verdict == "fail"


def test_counts_that_a_near_tie_explains_pass_and_the_tie_is_named():
    at, other = next(
        (at, other)
        for at, agrees in enumerate(READING.agrees)
        for other in [counts_without(at)]
        if agrees and other["rounds"] > DUE["rounds"]
    )
    assert found(**other).verdict == "fail"
    leads = list(READING.lead_nats)
    leads[at] = 0.015  # moves of 0.01 may close twice as much
    finding = found(replace(READING, lead_nats=tuple(leads)), **other)
    assert finding.verdict == "pass"
    assert f"if near ties fall the other way, at token {at + 1} (0.015 nats)" in finding.why


def counts_without(at):
    """Return the counts of a run whose draft does not agree in one place more."""
    return counts_of([agreed and place != at for place, agreed in enumerate(READING.agrees)])


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"temperature": 0.8}, "only greedy runs"),
        ({"imposed_acceptance": 0.5}, "only greedy runs"),
        ({"method": "ngram-simple"}, "only what a draft model"),
        ({"concurrency": 2}, "other requests"),
        ({"replays": 3, "replays_rejected": 1}, "a replay was rejected"),
        ({"rounds": None}, "not known"),
        ({"draft_sha256": "other"}, "has read no text"),
        ({"prompt": "other"}, "has read no text"),
        ({"tokens": [*TOKENS[:40], 7, *TOKENS[41:]]}, "leaves the text .* after 40 tokens"),
    ],
)
def test_what_no_reading_tells_is_not_applicable(changed, why):
    finding = found(**changed)
    assert finding.verdict == "not applicable"
    assert re.search(why, finding.why)
