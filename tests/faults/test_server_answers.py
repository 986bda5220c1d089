"""A broken response of a server ends in one line that names it."""

import sys

import httpx
import pytest

from specmoe.engine.server import Server
from specmoe.errors import MeasurementError

VALID = {
    "/slots": '[{"n_ctx": 256, "speculative": false}]',
    "/metrics": "llamacpp:n_decode_total 4\n",
    "/completion": '{"tokens": [1, 2, 3, 4],'
    ' "timings": {"prompt_n": 3, "prompt_ms": 0.1, "predicted_ms": 0.2}}',
}


def complete(server):
    """Ask for four tokens."""
    return server.complete([1, 2, 3], n_predict=4, temperature=0, seed=1)


@pytest.mark.parametrize(
    ("path", "answer", "ask", "error"),
    [
        ("/completion", "<html>", complete, "/completion with what cannot be read"),
        ("/metrics", "n_decode_total four\n", Server.metrics, "/metrics with "),
    ],
)
def test_a_broken_answer_is_named(path, answer, ask, error, tmp_path, monkeypatch):
    answers = VALID | {path: answer}
    answering = httpx.MockTransport(lambda asked: httpx.Response(200, text=answers[asked.url.path]))
    monkeypatch.setattr(httpx, "HTTPTransport", lambda **_: answering)
    command = [sys.executable, "-c", "import time; time.sleep(600)"]
    with (
        Server(command, tmp_path / "server.log", 30) as server,
        pytest.raises(MeasurementError, match=error),
    ):
        ask(server)
