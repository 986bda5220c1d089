"""A streamed answer of the real llama-server is the unstreamed one."""

from contextlib import closing

import pytest

from ..blocks import ALONE, DRAFTED, compared
from ..processes import eventually

BLOCK = compared()
PROMPT = list(range(1, 20))
GREEDY = {"temperature": 0, "seed": 1}


@pytest.mark.parametrize("side", [ALONE, DRAFTED], ids=lambda side: side.name)
def test_streamed_tokens_are_the_unstreamed(serve, side):
    with serve(BLOCK, side) as server:
        whole = server.complete(PROMPT, n_predict=48, **GREEDY)
        events = list(server.stream(PROMPT, n_predict=48, **GREEDY))
    assert _tokens(events) == whole["tokens"]
    assert events[-1]["tokens_predicted"] == 48


def test_a_request_that_is_closed_early_is_given_up(serve):
    with serve(compared(context=4096), ALONE) as server:
        with closing(server.stream(PROMPT, n_predict=3500, **GREEDY)) as events:
            counts = [next(events)["tokens_predicted"] for _ in range(5)]
        assert counts == [1, 2, 3, 4, 5]
        assert eventually(lambda: "cancel" in server.log_text())
        before = server.metrics()["tokens_predicted_total"]
        assert before < 3500
        assert len(server.complete(PROMPT, n_predict=8, **GREEDY)["tokens"]) == 8


def _tokens(events):
    return [token for event in events for token in event["tokens"]]
