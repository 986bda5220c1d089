"""Rounds come from the server's debug log, and must give the tokens of its answer."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specmoe.engine.debug_log import Fate, Pass, RoundCounts, check_counters, count, read_rounds
from specmoe.errors import MeasurementError

from ..decoding_log import Decoding, every_kind

TOKEN = st.integers(0, 5)  # few, so that tokens are the same by chance


def refusal(log: str, tokens) -> str:
    with pytest.raises(MeasurementError) as caught:
        read_rounds(log, tokens)
    message = str(caught.value)
    assert "\n" not in message
    return message


def read_one(verdicts, tokens):
    """Return the round that drafts 1, 2, 3 after the first token 7, read with the answer."""
    decoding = Decoding()
    decoding.round([1, 2, 3], verdicts)
    [one] = read_rounds(decoding.text, [7, *tokens])
    return one


def test_a_fully_accepted_draft_gives_one_more_token():
    one = read_one([(3, 4)], [1, 2, 3, 4])
    assert one.tokens == (1, 2, 3, 4)
    assert one.accepted == 3
    assert [guess.token for guess in one.drafted] == [1, 2, 3]
    assert one.drafted[0].probability == 0.25
    assert one.passes == (Pass((1, 2, 3), 3, 4, restored=False),)


def test_a_rejected_token_is_replaced_and_those_after_it_are_dropped():
    one = read_one([(1, 9)], [1, 9])
    assert one.passes[0].fates == [Fate.ACCEPTED, Fate.REJECTED, Fate.DROPPED]
    assert one.passes[0].own == 9
    assert one.tokens == (1, 9)


def test_a_replay_reads_the_accepted_tokens_and_gives_one_more():
    one = read_one([(1, 9), (2, 5)], [1, 9, 5])
    assert one.passes == (
        Pass((1, 2, 3), 1, 9, restored=True),
        Pass((1, 9), 2, 5, restored=False),
    )
    assert one.accepted == 1
    assert one.tokens == (1, 9, 5)


def test_a_token_that_a_replay_rejects_again_is_unknown():
    one = read_one([(2, 9), (2, 8), (3, 5)], [1, 2, 8, 5])
    assert one.passes == (
        Pass((1, 2, 3), 2, None, restored=True),
        Pass((1, 2, None), 2, 8, restored=True),
        Pass((1, 2, 8), 3, 5, restored=False),
    )


def test_a_replay_may_drop_what_the_first_pass_accepted():
    one = read_one([(2, 9), (0, 8), (1, 5)], [8, 5])
    assert one.accepted == 0
    assert one.tokens == (8, 5)


def test_all_kinds_of_rounds_are_read_in_order():
    decoding = every_kind()
    assert read_rounds(decoding.text, decoding.tokens) == decoding.rounds
    assert count(decoding.rounds) == RoundCounts(
        rounds=5, drafted=14, accepted=8, passes=9, replays=3
    )


@st.composite
def decodings(draw):
    """A decoding of any rounds, of a target with or without replays."""
    decoding = Decoding()
    hybrid = draw(st.booleans())
    for _ in range(draw(st.integers(1, 6))):
        drafted = draw(st.lists(TOKEN, max_size=5))
        if not drafted:
            decoding.step(draw(TOKEN))
            continue
        verdicts, read = [], drafted
        for rejections_left in (3, 2, 1, 0):
            whole = verdicts and not rejections_left
            accepted = len(read) if whole else draw(st.integers(0, len(read)))
            if accepted < len(read):
                own = draw(TOKEN.filter(lambda token, no=read[accepted]: token != no))
            else:
                own = draw(TOKEN)
            verdicts.append((accepted, own))
            if accepted == len(read) or not hybrid:
                break
            read = [*read[:accepted], own]
        decoding.round(drafted, verdicts)
    return decoding


@given(decodings())
def test_any_decoding_is_reconstructed_from_its_log(decoding):
    rounds = read_rounds(decoding.text, decoding.tokens)
    assert rounds == decoding.rounds
    assert [7, *(token for one in rounds for token in one.tokens)] == decoding.tokens
    for one in rounds:
        tokens = [guess.token for guess in one.drafted]
        assert list(one.tokens[: one.accepted]) == tokens[: one.accepted]
        assert len(one.tokens) == one.accepted + 1 + (len(one.passes) > 1)


@given(decodings(), st.data())
def test_an_answer_with_another_token_accepted_or_before_a_round_is_refused(decoding, data):
    places, start = [], 1
    for one in decoding.rounds:
        places += range(start - 1, start + one.accepted)
        start += len(one.tokens)
    tokens = list(decoding.tokens)
    tokens[data.draw(st.sampled_from(places))] += 1000
    assert "contradicts its answer" in refusal(decoding.text, tokens)


@given(decodings(), st.data())
def test_a_log_that_lacks_a_draft_or_a_pass_is_refused(decoding, data):
    telling = ("candidate   0", "(restore checkpoint)", " I slot", "id=")
    lines = [i for i, line in enumerate(decoding.log) if any(part in line for part in telling)]
    cut = data.draw(st.sampled_from(lines))
    refusal("\n".join(decoding.log[:cut] + decoding.log[cut + 1 :]), decoding.tokens)


def test_a_longer_and_a_shorter_answer_are_refused():
    decoding = every_kind()
    assert "has 17 tokens and its answer 18" in refusal(decoding.text, [*decoding.tokens, 3])
    assert "in round 6: a token was decoded without its draft, or after the last" in refusal(
        decoding.text, decoding.tokens[:-1]
    )


def test_an_engine_without_logged_rounds_is_named_as_the_likely_cause():
    assert "may log its rounds in another way" in refusal("llama_server: ready\n", [7, 8])


def test_a_token_called_rejected_that_the_answer_holds_is_refused():
    decoding = Decoding()
    decoding.round([1, 2, 3], [(1, 2)])
    assert "round 1: a drafted token called rejected is the one of the answer" in refusal(
        decoding.text, decoding.tokens
    )


def test_a_log_that_ends_within_a_round_is_refused():
    decoding = Decoding()
    decoding.round([1, 2, 3], [(1, 9), (2, 5)])
    cut = next(i for i, line in enumerate(decoding.log) if "(restore checkpoint)" in line)
    assert refusal("\n".join(decoding.log[: cut + 1]), [7]) == (
        "the server's log ends within a round"
    )


def test_the_servers_counters_must_be_those_of_the_log():
    counts = count(every_kind().rounds)
    check_counters(counts, {"rounds": 5, "drafted": 14, "accepted": 8})
    with pytest.raises(MeasurementError, match="accepted 8 by the log, 9 by the counter"):
        check_counters(counts, {"rounds": 5, "drafted": 14, "accepted": 9})
