"""A broken response of a server ends in one line that names it."""

import sys

import httpx
import pytest

from specmoe.engine.server import Server
from specmoe.errors import MeasurementError


@pytest.mark.parametrize(
    ("path", "answer", "ask"),
    [
        (
            "/completion",
            "<html>",
            lambda server: server.complete([1], n_predict=1, temperature=0, seed=1),
        ),
        ("/metrics", "n_decode_total four\n", Server.metrics),
    ],
)
def test_a_broken_answer_is_named(path, answer, ask, tmp_path, monkeypatch):
    answers = {"/slots": '[{"n_ctx": 256, "speculative": false}]', path: answer}
    answering = httpx.MockTransport(lambda asked: httpx.Response(200, text=answers[asked.url.path]))
    monkeypatch.setattr(httpx, "HTTPTransport", lambda **_: answering)
    command = [sys.executable, "-c", "import time; time.sleep(600)"]
    with (
        Server(command, tmp_path / "server.log", 30) as server,
        pytest.raises(MeasurementError, match=f"{path} with what cannot be read"),
    ):
        ask(server)
