"""Every broken answer of a server ends in one line that names it, and in time."""

import pytest

from specmoe.engine.server import Server
from specmoe.errors import MeasurementError

from ..streamed import event, streamed
from .fake_server import SOUND, write_fake

COMPLETION = SOUND["/completion"]


@pytest.fixture
def serve(tmp_path):
    """Return a server, not yet started, with some answers at fault."""

    def make(answers=None, drips=(), run_limit_s=30.0):
        fake = write_fake(tmp_path / "llama-server", answers or {}, drips)
        return Server([str(fake)], tmp_path / "server.log", 30, run_limit_s)

    return make


def complete(server):
    """Ask for four tokens."""
    return server.complete([1, 2, 3], n_predict=4, temperature=0, seed=1)


def test_sound_answers_are_taken(serve):
    with serve() as server:
        assert complete(server)["tokens"] == [1, 2, 3, 4]
        assert server.metrics() == {"n_decode_total": 4.0}
        assert server.tokenize("abc") == [1, 2, 3]
        assert server.settings().context == 256


@pytest.mark.parametrize(
    ("path", "answer", "ask", "fault"),
    [
        ("/completion", "<html>", complete, "/completion with what is no JSON"),
        ("/completion", COMPLETION.replace("0.2", "NaN"), complete, r"timings\.predicted_ms: "),
        ("/completion", COMPLETION.replace("0.2", "1e9"), complete, "the whole request took"),
        ("/metrics", "n_decode_total NaN\n", Server.metrics, "n_decode_total is nan"),
        ("/tokenize", '{"tokens": [1.5]}', lambda server: server.tokenize("a"), r"tokens\.0: "),
        ("/slots", "[]", Server.settings, "at least 1 item"),
        ("/props", "[1]", Server.settings, "/props with top level: "),
    ],
)
def test_a_broken_answer_is_named(serve, path, answer, ask, fault):
    with serve({path: answer}) as server, pytest.raises(MeasurementError, match=fault):
        ask(server)


def ask_for_stream(server):
    """Ask for two tokens in a stream."""
    return list(server.stream([1, 2, 3], n_predict=2, temperature=0, seed=1))


# Times of which a fake server's answer is never too early.
STREAM = [event([4], 1, 0.0), event([5], 2, 0.0), event([], 2, 0.001, stop=True)]
for one in STREAM:
    one["timings"]["prompt_ms"] = 0.001


def test_a_sound_stream_is_taken(serve):
    with serve({"/completion": streamed(STREAM).decode()}) as server:
        assert [piece.tokens for piece in ask_for_stream(server)] == [[4], [5], []]


@pytest.mark.parametrize(
    ("answer", "fault"),
    [
        (streamed(STREAM[:1]), "/completion with a stream that ended after 1 tokens"),
        (streamed(STREAM)[:-20], "no JSON|a stream that ended"),
        (streamed([{"error": {"message": "no luck"}}]), "an error in its stream.*no luck"),
    ],
)
def test_a_broken_stream_is_named(serve, answer, fault):
    server = serve({"/completion": answer.decode()})
    with server, pytest.raises(MeasurementError, match=fault):
        ask_for_stream(server)


@pytest.mark.parametrize(
    ("answer", "ask"),
    [(COMPLETION, complete), (streamed(STREAM).decode(), ask_for_stream)],
)
def test_a_server_that_drips_bytes_is_stopped_at_the_time_limit(serve, answer, ask):
    limit = pytest.raises(MeasurementError, match="timeout: /completion took longer than 1 s")
    with serve({"/completion": answer}, drips=("/completion",), run_limit_s=1) as server, limit:
        ask(server)


def test_failures_are_counted_over_the_whole_log_however_it_grows(serve, tmp_path):
    first = "llama_decode: failed to decode, ret = -1\nhalf of a line: failed to"
    with serve() as server:
        for added, count in [("", 0), (first, 1), (" decode\n", 2), ("", 2)]:
            with (tmp_path / "server.log").open("a") as log:
                log.write(added)
            assert server.decode_failures() == count
