"""The program that reads texts with a draft on a real engine, and texts that it cannot read."""

import math
from dataclasses import replace

import pytest

from specmoe.errors import MeasurementError
from specmoe.measure.programs import Proposal, Text, read, widest_move

from ..blocks import alone

PROMPT = tuple(range(1, 40))


def text(prompt, tokens):
    return Text("target", "prompt", tuple(prompt), tuple(tokens))


@pytest.fixture
def read_all(job, family, model_passes):
    """Read texts with the draft, in batches of a width."""

    def reading(*texts: Text, width: int = 8) -> list[list[Proposal]]:
        own = replace(job, target=family["draft"])
        return read(texts, alone(), own, model_passes, width)

    return reading


@pytest.fixture
def generated(start, family):
    """What the draft itself writes after the prompt, with its likeliest tokens."""
    with start(family["draft"]) as server:
        return server.complete(list(PROMPT), n_predict=24, temperature=0, seed=1, n_probs=2)


def test_a_draft_agrees_with_every_token_of_its_own_text(read_all, generated):
    [proposals] = read_all(text(PROMPT, tuple(generated["tokens"])))
    assert all(one["agrees"] for one in proposals)
    for one, each in zip(proposals, generated["completion_probabilities"], strict=True):
        first, second = each["top_logprobs"]
        assert one["token"] == first["id"]
        # Among ten candidates it is likelier than among all tokens.
        assert one["confidence"] > math.exp(first["logprob"]) - 0.01
        assert one["lead_nats"] == pytest.approx(first["logprob"] - second["logprob"], abs=0.01)


def test_it_agrees_with_no_token_that_is_never_its_likeliest(read_all, generated):
    likeliest = set(generated["tokens"])
    other = [token for token in range(256) if token not in likeliest][:24]
    [proposals] = read_all(text(PROMPT, other))
    never = [one for one, token in zip(proposals, other, strict=True) if one["token"] != token]
    assert len(never) >= 23  # another one may be the likeliest by chance
    assert not any(one["agrees"] for one in never)


def test_texts_are_read_alike_in_any_order_and_nearly_alike_in_any_batches(read_all, generated):
    own, other = text(PROMPT, tuple(generated["tokens"])), text(PROMPT[:5], PROMPT)
    first, second = read_all(own, other)
    assert read_all(other, own) == [second, first]
    assert widest_move([first, second], read_all(own, other, width=1)) < 0.1


@pytest.mark.parametrize(
    ("unreadable", "why"),
    [
        (text(PROMPT, (5, 700)), "text 1 .* a token that the draft's vocabulary of 384 lacks"),
        (text(PROMPT, (-1,)), "text 1 has .* a token that"),
        (text(PROMPT, (7,) * 100_000), r"text 1 has 100039 tokens, and the draft's context is"),
        (text((), (7, 8)), "text 1 has no prompt"),
        (text(PROMPT, ()), "nothing after it"),
    ],
)
def test_a_text_that_the_draft_cannot_read_is_named(read_all, unreadable, why):
    with pytest.raises(MeasurementError, match=why):
        read_all(text(PROMPT, (1, 2)), unreadable)
