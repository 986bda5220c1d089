"""Rounds come from the server's debug log, and must give the tokens of its answer."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specmoe.config.methods import Method, is_ngram
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


def looked_up(*tokens: int) -> tuple[Guess, ...]:
    return tuple(Guess(token, None) for token in tokens)


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


def test_a_token_that_a_replay_rejects_again_is_known_from_its_batch():
    one = read_one([(2, 9), (2, 8), (3, 5)], [1, 2, 8, 5])
    assert one.passes == (
        Pass((1, 2, 3), 2, 9, restored=True),
        Pass((1, 2, 9), 2, 8, restored=True),
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
        ("mtp", [355, 358, 9, 303], Round(
            Method.MTP,
            (Guess(358, 0.236), Guess(9, 0.808), Guess(337, 0.462), Guess(294, 0.537)),
            (Pass((358, 9, 337, 294), 2, 303, restored=False),),
        )),
        ("eagle3", [17, 355, 358], Round(
            Method.EAGLE3,
            (Guess(355, 0.41), Guess(55, 0.323), Guess(26, 0.579), Guess(321, 0.406)),
            (Pass((355, 55, 26, 321), 1, 358, restored=False),),
        )),
        ("dflash", [17, 355, 358], Round(
            Method.DFLASH,
            (Guess(355, 0.506), Guess(355, 0.513), Guess(355, 0.524), Guess(355, 0.52)),
            (Pass((355, 355, 355, 355), 1, 358, restored=False),),
        )),
        ("dspark", [3, 315, 350, 283], Round(
            Method.DSPARK,
            (Guess(315, 0.994), Guess(350, 0.801), Guess(54, 0.586), Guess(18, 0.328)),
            (Pass((315, 350, 54, 18), 2, 283, restored=False),),
        )),
        ("ngram-simple", [220, 91, 290], Round(
            Method.NGRAM_SIMPLE,
            looked_up(267, 344, 322, 39),
            (Pass((267, 344, 322, 39), 0, 91, restored=True), Pass((91,), 1, 290, restored=False)),
        )),
        ("ngram-map-k", [220, 91, 290], Round(
            Method.NGRAM_MAP_K,
            looked_up(267, 344, 322, 39),
            (Pass((267, 344, 322, 39), 0, 91, restored=True), Pass((91,), 1, 290, restored=False)),
        )),
        ("ngram-map-k4v", [69, 23, 357, 288, 198, 76], Round(
            Method.NGRAM_MAP_K4V,
            looked_up(23, 357, 288, 198),
            (Pass((23, 357, 288, 198), 4, 76, restored=False),),
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


@pytest.mark.parametrize("method", Method)
def test_every_round_says_which_method_drafted_it_and_only_models_are_sure(method):
    decoding = Decoding()
    decoding.round([1, 2], [(1, 4)], method)
    decoding.step(3)
    drafted, alone = read_rounds(decoding.text, decoding.tokens)
    assert (drafted.method, alone.method) == (method, None)
    known = [guess.probability is not None for guess in drafted.drafted]
    assert known == [not is_ngram(method)] * 2


def test_dflash_may_log_no_candidates_and_a_draft_model_must():
    for method in (Method.DFLASH, Method.DRAFT):
        decoding = Decoding()
        decoding.round([1, 2], [(1, 4)], method)
        bare = "\n".join(line for line in decoding.log if "candidate" not in line)
        if method == Method.DFLASH:
            [one] = read_rounds(bare, decoding.tokens)
            assert one.drafted == looked_up(1, 2)
        else:
            assert "round 1: the tokens that it read are not the draft's likeliest" in refusal(
                bare, decoding.tokens
            )


def test_a_log_without_the_tokens_of_its_batches_is_refused():
    log = "\n".join(line for line in every_kind().log if "ubatch_print" not in line)
    assert "round 1: it does not name the tokens that a pass read" in refusal(
        log, every_kind().tokens
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


@pytest.mark.parametrize("name", ["dr-ft-simple", "none"])
def test_a_log_that_names_no_known_method_is_refused(name):
    decoding = every_kind()
    assert refusal(decoding.text.replace("draft-simple", name), decoding.tokens) == (
        f"the server's log names an unknown way of drafting: {name}"
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
