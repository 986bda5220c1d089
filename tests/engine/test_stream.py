"""A streamed answer of the real llama-server is the unstreamed one, with the time of each token."""

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from functools import partial

import pytest

from specmoe.engine.server import Server
from specmoe.engine.server_log import read_requests
from specmoe.engine.stream import WithheldError

from ..blocks import ALONE, DRAFTED, compared
from ..processes import eventually

BLOCK = compared()
PROMPT = list(range(1, 20))
GREEDY = {"temperature": 0, "seed": 1}


@pytest.mark.parametrize("side", [ALONE, DRAFTED], ids=lambda side: side.name)
def test_streamed_tokens_are_the_unstreamed_and_times_end_with_the_answers(serve, side):
    with serve(BLOCK, side) as server:
        whole = server.complete(PROMPT, n_predict=48, **GREEDY)
        streamed = server.complete_streamed(PROMPT, n_predict=48, **GREEDY)
    assert streamed["tokens"] == whole["tokens"]
    assert streamed["stop_type"] == whole["stop_type"] == "limit"
    assert streamed["content"] == ""
    timings = streamed["timings"]
    assert timings["prompt_n"] == len(PROMPT)
    assert len(streamed["token_ms"]) == len(streamed["arrived_ms"]) == 48
    assert streamed["token_ms"][0] == pytest.approx(timings["prompt_ms"], abs=0.01)
    whole_ms = timings["prompt_ms"] + timings["predicted_ms"]
    assert streamed["token_ms"][-1] == pytest.approx(whole_ms, abs=0.001)
    for times in (streamed["token_ms"], streamed["arrived_ms"]):
        assert times == sorted(times)


def test_tokens_of_one_pass_share_a_time_as_the_log_counts_them(serve):
    with serve(BLOCK, DRAFTED) as server:
        answer = server.complete_streamed(PROMPT, n_predict=48, **GREEDY)
    [request] = read_requests(server.log_text())
    # A replay reads a token that the target gave, and gives a further one.
    logged = [one.accepted + 1 for one in request.verifications if not one.restored]
    bursts = list(Counter(answer["token_ms"][1:]).values())
    # The last pass may give more tokens than were asked for; at the end there may be no draft.
    assert bursts[: len(logged) - 1] == logged[:-1]
    assert max(bursts) > 1


def test_a_request_that_is_closed_early_is_given_up(serve):
    with serve(compared(context=4096), ALONE) as server:
        with closing(server.stream(PROMPT, n_predict=3500, **GREEDY)) as pieces:
            counts = [next(pieces).generated for _ in range(5)]
        assert counts == [1, 2, 3, 4, 5]
        assert eventually(lambda: "cancel" in server.log_text())
        before = server.metrics()["tokens_predicted_total"]
        assert before < 3500
        assert len(server.complete(PROMPT, n_predict=8, **GREEDY)["tokens"]) == 8


def test_streams_and_other_requests_may_follow_each_other_at_once(serve):
    with serve(BLOCK, ALONE) as server:
        for _ in range(40):
            server.complete_streamed(PROMPT, n_predict=2, **GREEDY)
            server.complete(PROMPT, n_predict=2, **GREEDY)


def test_threads_may_ask_one_server(serve):
    with serve(BLOCK, ALONE) as server, ThreadPoolExecutor(3) as threads:
        ask = partial(server.complete_streamed, n_predict=16, **GREEDY)
        prompts = [PROMPT, PROMPT[::-1], PROMPT[:5]]
        answers = list(threads.map(ask, prompts))
        for prompt, answer in zip(prompts, answers, strict=True):
            alone = server.complete(prompt, n_predict=16, **GREEDY)
            assert answer["tokens"] == alone["tokens"]
            assert len(answer["token_ms"]) == 16


def test_ids_within_a_character_are_missed_and_never_passed_over(serve, monkeypatch):
    first_byte = 0xE4 - 0xAE + 94 + 12  # of a character of three bytes, see `byte_symbols`
    forced = {"logit_bias": [[first_byte, 100]]}
    ask = Server._chunks

    def biased(self, method, path, json, **more):
        return ask(self, method, path, json=json | forced, **more)

    with serve(BLOCK, ALONE) as server:
        monkeypatch.setattr(Server, "_chunks", biased)
        with pytest.raises(WithheldError, match=r"lacks the ids of \d tokens"):
            server.complete_streamed(PROMPT, n_predict=8, **GREEDY)
