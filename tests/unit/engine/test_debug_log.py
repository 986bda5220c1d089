"""Rounds come from the server's debug log, and must give the tokens of its answer."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specmoe.config.methods import Method
from specmoe.engine.debug_log import (
    Fate,
    Guess,
    Pass,
    Round,
    RoundCounts,
    check_counters,
    count,
    read_rounds,
)
from specmoe.errors import MeasurementError

from ..decoding_log import Decoding, every_kind

TOKEN = st.integers(0, 5)  # few, so that tokens are the same by chance
# One round of each method, as the engine of November 2026 logged it. Lines that tell nothing of a
# round are left out.
LOGGED = Path(__file__).parent / "logged_rounds"


def refusal(log: str, tokens) -> str:
    with pytest.raises(MeasurementError) as caught:
        read_rounds(log, tokens)
    message = str(caught.value)
    assert "\n" not in message
    return message


EVERY = every_kind()


def without(part: str, decoding: Decoding) -> str:
    """Return a decoding's log without the lines that hold some text."""
    return "\n".join(line for line in decoding.log if part not in line)


def looked_up(*tokens: int) -> tuple[Guess, ...]:
    return tuple(Guess(token, None) for token in tokens)


@pytest.mark.parametrize(
    ("verdicts", "tokens", "passes", "accepted"),
    [
        ([(3, 4)], [1, 2, 3, 4], [Pass((1, 2, 3), 3, 4, restored=False)], 3),
        ([(1, 9)], [1, 9], [Pass((1, 2, 3), 1, 9, restored=False)], 1),
        # A replay reads the accepted tokens and gives one more.
        ([(1, 9), (2, 5)], [1, 9, 5], [
            Pass((1, 2, 3), 1, 9, restored=True), Pass((1, 9), 2, 5, restored=False),
        ], 1),
        # A token that a replay rejects again is known from its batch.
        ([(2, 9), (2, 8), (3, 5)], [1, 2, 8, 5], [
            Pass((1, 2, 3), 2, 9, restored=True),
            Pass((1, 2, 9), 2, 8, restored=True),
            Pass((1, 2, 8), 3, 5, restored=False),
        ], 2),
        # A replay may drop what the first pass accepted.
        ([(2, 9), (0, 8), (1, 5)], [8, 5], [
            Pass((1, 2, 3), 2, 9, restored=True),
            Pass((1, 2, 9), 0, 8, restored=True),
            Pass((8,), 1, 5, restored=False),
        ], 0),
    ],
)  # fmt: skip
def test_a_round_has_the_passes_and_gives_the_tokens_of_its_verdicts(
    verdicts, tokens, passes, accepted
):
    decoding = Decoding()
    decoding.round([1, 2, 3], verdicts)
    [one] = read_rounds(decoding.text, [7, *tokens])
    assert one == Round(Method.DRAFT, tuple(Guess(n, 0.25) for n in (1, 2, 3)), tuple(passes))
    assert (one.tokens, one.accepted) == (tuple(tokens), accepted)


def test_the_first_rejected_token_is_replaced_and_those_after_it_are_dropped():
    fates = Pass((1, 2, 3), 1, 9, restored=False).fates
    assert fates == [Fate.ACCEPTED, Fate.REJECTED, Fate.DROPPED]


def test_all_kinds_of_rounds_are_read_in_order():
    assert read_rounds(EVERY.text, EVERY.tokens) == EVERY.rounds
    counts = count(EVERY.rounds)
    assert counts == RoundCounts(rounds=5, drafted=14, accepted=8, passes=9, replays=3)
    check_counters(counts, {"rounds": 5, "drafted": 14, "accepted": 8})
    with pytest.raises(MeasurementError, match="accepted 8 by the log, 9 by the counter"):
        check_counters(counts, {"rounds": 5, "drafted": 14, "accepted": 9})


@pytest.mark.parametrize(
    ("name", "tokens", "read"),
    [
        ("draft", [9, 303, 272, 74, 3], Round(
            Method.DRAFT,
            (Guess(303, 0.506), Guess(272, 0.441), Guess(17, 0.198), Guess(355, 0.366)),
            (
                Pass((303, 272, 17, 355), 2, 74, restored=True),
                Pass((303, 272, 74), 3, 3, restored=False),
            ),
        )),
        # The model's third candidate, of 44 %, is less likely than `p_min` asks.
        ("unsure", [358, 9, 303, 272], Round(
            Method.DRAFT,
            (Guess(9, 0.9), Guess(303, 0.505)),
            (Pass((9, 303), 2, 272, restored=False),),
        )),
        ("dspark", [3, 315, 350, 283], Round(
            Method.DSPARK,
            (Guess(315, 0.994), Guess(350, 0.801), Guess(54, 0.586), Guess(18, 0.328)),
            (Pass((315, 350, 54, 18), 2, 283, restored=False),),
        )),
        ("ngram-mod", [220, 91, 290, 26, 3, 315], Round(
            Method.NGRAM_MOD,
            looked_up(91, 290, 26, 30),
            (
                Pass((91, 290, 26, 30), 3, 3, restored=True),
                Pass((91, 290, 26, 3), 4, 315, restored=False),
            ),
        )),
        ("ngram-cache", [315, 350, 283], Round(
            Method.NGRAM_CACHE,
            looked_up(316, 84, 76, 7, 85, 328, 84, 326),
            (
                Pass((316, 84, 76, 7, 85, 328, 84, 326), 0, 350, restored=True),
                Pass((350,), 1, 283, restored=False),
            ),
        )),
        # In the chain of n-grams and MTP the log says which of them drafted.
        ("chain", [91, 290, 26, 3], Round(
            Method.NGRAM_MOD,
            looked_up(290, 26, 30, 220, 91, 290),
            (Pass((290, 26, 30, 220, 91, 290), 2, 3, restored=False),),
        )),
    ],
)  # fmt: skip
def test_a_round_of_each_method_is_read_from_the_log_of_a_real_server(name, tokens, read):
    assert read_rounds((LOGGED / f"{name}.txt").read_text(), tokens) == [read]


def test_a_model_that_stops_early_or_drafts_beyond_the_end_has_more_candidates():
    decoding = Decoding()
    decoding.round([1, 2], [(2, 4)], candidates=[3])
    [one] = read_rounds(decoding.text, decoding.tokens)
    assert [guess.token for guess in one.drafted] == [1, 2]


def test_dflash_may_log_no_candidates():
    decoding = Decoding()
    decoding.round([1, 2], [(1, 4)], Method.DFLASH)
    [one] = read_rounds(without("candidate", decoding), decoding.tokens)
    assert one.drafted == looked_up(1, 2)


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
        decoding.round(drafted, verdicts, draw(st.sampled_from(Method)))
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
    telling = ("called impl", "(restore checkpoint)", " I slot", "id=")
    lines = [i for i, line in enumerate(decoding.log) if any(part in line for part in telling)]
    cut = data.draw(st.sampled_from(lines))
    refusal("\n".join(decoding.log[:cut] + decoding.log[cut + 1 :]), decoding.tokens)


@pytest.mark.parametrize(
    ("log", "tokens", "fault"),
    [
        (EVERY.text, [*EVERY.tokens, 3], "has 17 tokens and its answer 18"),
        (
            EVERY.text,
            EVERY.tokens[:-1],
            "in round 6: a token was decoded without its draft, or after the last",
        ),
        ("llama_server: ready\n", [7, 8], "may log its rounds in another way"),
        (
            without("ubatch_print", EVERY),
            EVERY.tokens,
            "round 1: it does not name the tokens that a pass read",
        ),
        (
            without("candidate", EVERY),
            EVERY.tokens,
            "round 1: the tokens that it read are not the draft's likeliest",
        ),
        (
            EVERY.text.replace("accepted  4/ 4", "accepted  3/ 4", 1),
            EVERY.tokens,
            "round 1: a drafted token called rejected is the one of the answer",
        ),
    ],
)
def test_a_log_that_does_not_give_the_answer_is_refused_with_the_reason(log, tokens, fault):
    assert fault in refusal(log, tokens)


@pytest.mark.parametrize("name", ["dr-ft-simple", "none"])
def test_a_log_that_names_no_known_method_is_refused(name):
    assert refusal(EVERY.text.replace("draft-simple", name), EVERY.tokens) == (
        f"the server's log names an unknown way of drafting: {name}"
    )


def test_a_log_that_ends_within_a_round_is_refused():
    decoding = Decoding()
    decoding.round([1, 2, 3], [(1, 9), (2, 5)])
    cut = next(i for i, line in enumerate(decoding.log) if "(restore checkpoint)" in line)
    assert refusal("\n".join(decoding.log[: cut + 1]), [7]) == (
        "the server's log ends within a round"
    )
