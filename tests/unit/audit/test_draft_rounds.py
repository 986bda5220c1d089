"""Rounds from scores against a simulated server; rounds that are not the draft model's."""

from dataclasses import replace
from itertools import product
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specmoe.audit.accounting import check_agreement
from specmoe.audit.draft_rounds import (
    Counts,
    DraftScores,
    possible_outcomes,
    steps_from_agreement,
)
from specmoe.audit.evidence import Evidence

from .test_checks import OTHERWISE, SETTINGS, TOKENS, campaign, speculative

END = -1  # a text's last token, where the target ends it
WRONG = -2  # what a draft model proposes that is not the target's
BEHIND = -3  # what the target would write behind its end


def play(text, agrees, gamma, n_predict, replay):
    """Return (drafted, accepted) of each round, replays and plain steps, as llama-server works."""
    written, rounds, replays, single = 1, [], 0, 0
    while written < len(text):
        room = min(gamma, n_predict - written - 1)
        draft = []
        while len(draft) < room:
            at = written + len(draft)
            right = at < len(text) and agrees[at] and WRONG not in draft
            draft.append(target(text, at) if right else WRONG)
        if not draft:
            written, single = written + 1, single + 1
            continue
        result, is_replay = verified(text, written, draft), False
        if len(result) <= len(draft) and replay:
            result, is_replay = verified(text, written, result), True
        replays += is_replay
        rounds.append((len(draft), len(result) - 1 - is_replay))
        written += len(result)
    return rounds, replays, single


def target(text, at):
    return text[at] if at < len(text) else BEHIND


def verified(text, written, draft):
    """Return what the engine's `common_sampler_sample_and_accept_n` returns."""
    result = []
    for place, token in enumerate(draft):
        result.append(target(text, written + place))
        if token != result[-1] or (result[-1] == END and place + 1 < len(draft)):
            return result
    return [*result, target(text, written + len(draft))]


def reading(agrees, leads=None, moved_nats=0.0):
    return DraftScores("draft", tuple(agrees), tuple(leads or [9.0] * len(agrees)), moved_nats)


def counted(rounds, replays):
    drafted, accepted = map(sum, zip(*rounds, strict=True)) if rounds else (0, 0)
    return Counts(len(rounds), replays, accepted, drafted)


AGREEMENTS = st.lists(st.booleans(), min_size=2, max_size=40)


@given(AGREEMENTS, st.integers(1, 9), st.booleans(), st.booleans(), st.integers(0, 9))
def test_rounds_of_a_fixed_length_are_the_servers(agrees, gamma, ended, replays, more):
    limits = len(agrees) + more * ended, replays
    text = [*range(len(agrees) - 1), END if ended else len(agrees)]
    rounds, again, single = play(text, agrees, gamma, *limits)
    found = steps_from_agreement(reading(agrees), gamma, *limits)
    assert [(one.drafted, one.accepted) for one in found if one.rounds] == rounds
    assert found.count(Counts()) == single
    assert possible_outcomes(reading(agrees), gamma, *limits, 0.1) == {counted(rounds, again): 0}


@given(
    st.lists(st.booleans(), min_size=2, max_size=14),
    st.sets(st.integers(0, 13), max_size=5),
    st.integers(1, 6),
    st.booleans(),
)
def test_outcomes_with_ties_are_those_of_all_ways_they_can_fall(agrees, ties, gamma, replays):
    limits = len(agrees), replays
    ties = sorted(tie for tie in ties if tie < len(agrees))
    leads = [0.0 if at in ties else 1.0 for at in range(len(agrees))]
    expected: dict[Counts, int] = {}
    for fallen in product([False, True], repeat=len(ties)):
        flipped = list(agrees)
        for at, flips in zip(ties, fallen, strict=True):
            flipped[at] ^= flips
        text = range(len(agrees))
        rounds, again, _ = play(text, flipped, gamma, *limits)
        counts = counted(rounds, again)
        expected[counts] = min(sum(fallen), expected.get(counts, len(ties)))
    assert possible_outcomes(reading(agrees, leads), gamma, *limits, 0.5) == expected


def test_a_draft_that_prefers_hardly_anything_tells_nothing():
    count = 400
    one = reading([True, False] * (count // 2), [0.0] * count)
    assert possible_outcomes(one, 8, count, True, 0.5) == {}


RUN = "B/target/draft/g4/r1"
RANDOM = Random(1)
KEY = ("current-cpu", "target", "draft", "code", tuple(TOKENS))
READING = reading([RANDOM.random() < 0.7 for _ in TOKENS], [1.0] * len(TOKENS), moved_nats=0.01)


def counts_of(agrees):
    """Return the counts of a run whose draft agrees in those places."""
    [due] = possible_outcomes(reading(agrees), 4, len(agrees), False, 0.0)
    return {"rounds": due.rounds, "drafted": due.drafted, "accepted": due.accepted}


DUE = counts_of(READING.agrees)
COUNTS = {**DUE, "replays": 0, "replays_rejected": 0}


def found(reading=READING, **changed):
    """Return what the check finds of a run with the due counts, some of them changed."""
    row = speculative(1, **COUNTS | changed)
    given = Evidence(campaign(row), {}, None, SETTINGS, draft_scores={KEY: reading})
    return check_agreement(given.runs[RUN], given)


@pytest.mark.parametrize("more", [1, -1, 2, -3])
def test_counts_that_add_up_but_are_not_the_draft_models_are_found(more):
    """A run that says it accepted so many tokens more, in so many rounds fewer."""
    more_of = {"rounds": -more, "accepted": more, "drafted": -4 * more}
    finding = found(**{name: DUE[name] + number for name, number in more_of.items()})
    assert finding.verdict == "fail"
    assert f"{DUE['accepted'] + more} accepted, {DUE['accepted']} by the draft model" in finding.why


def test_each_count_is_compared():
    assert found().verdict == "pass"
    for name, due in COUNTS.items() - {("replays_rejected", 0)}:
        assert found(**{name: due + 1}).verdict == "fail"


def test_counts_that_a_near_tie_explains_pass_and_the_tie_is_named():
    places = [at for at, agrees in enumerate(READING.agrees) if agrees]
    less = {
        at: counts_of([*READING.agrees[:at], False, *READING.agrees[at + 1 :]]) for at in places
    }
    at, other = next((at, one) for at, one in less.items() if one["rounds"] > DUE["rounds"])
    assert found(**other).verdict == "fail"
    leads = list(READING.lead_nats)
    leads[at] = 0.015  # moves of 0.01 may close twice as much
    finding = found(replace(READING, lead_nats=tuple(leads)), **other)
    assert finding.verdict == "pass"
    assert "with 1 near tie the other way" in finding.why


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"temperature": 0.8}, "only greedy runs"),
        ({"forced_acceptance": 0.5}, "only greedy runs"),
        ({"p_min": 0.5}, "only greedy runs"),
        ({"method": "ngram-simple"}, "only what a draft model"),
        ({"concurrency": 2}, "others or rounding had a part"),
        ({"replays": 3, "replays_rejected": 1}, "others or rounding had a part"),
        ({"rounds": None}, "not known"),
        ({"draft_sha256": "other"}, "has not scored its text"),
        ({"prompt": "other"}, "has not scored its text"),
        ({"tokens": OTHERWISE}, "has not scored its text"),
    ],
)
def test_what_no_reading_tells_is_not_applicable(changed, why):
    finding = found(**changed)
    assert finding.verdict == "not applicable"
    assert why in finding.why
