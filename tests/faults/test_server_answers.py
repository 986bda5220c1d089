"""Every broken answer of a server ends in one line that names it."""

import stat
import sys
from pathlib import Path

import pytest

from specmoe.engine.server import Server
from specmoe.errors import MeasurementError

from ..streamed import event, streamed

SOUND = {
    "/slots": '[{"n_ctx": 256, "speculative": false}]',
    "/metrics": "llamacpp:n_decode_total 4\n",
    "/completion": '{"tokens": [1, 2, 3, 4],'
    ' "timings": {"prompt_n": 3, "prompt_ms": 0.1, "predicted_ms": 0.2}}',
}
_PROGRAM = """#!{python}
import socket, sys
ANSWERS = {answers!r}
server = socket.socket(socket.AF_UNIX)
server.bind(sys.argv[sys.argv.index("--host") + 1])
server.listen()
while True:
    link, _ = server.accept()
    asked = b""
    while b"\\r\\n\\r\\n" not in asked:
        asked += link.recv(65536)
    head, _, body = asked.partition(b"\\r\\n\\r\\n")
    length = [int(line.split(b":")[1]) for line in head.lower().splitlines()
              if line.startswith(b"content-length")]
    while length and len(body) < length[0]:
        body += link.recv(65536)
    path = head.split()[1].decode()
    answer = ANSWERS[path].encode()
    link.sendall(b"HTTP/1.1 200 OK\\r\\nConnection: close\\r\\nContent-Length: %d\\r\\n\\r\\n"
                 % len(answer))
    link.sendall(answer)
    link.close()
"""


def write_fake(path: Path, answers: dict[str, str]) -> Path:
    """Write the program; `answers` replace sound ones by path."""
    program = _PROGRAM.format(python=sys.executable, answers=SOUND | answers)
    path.write_text(program)
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


STREAM = streamed([event([4], 1), event([5], 2), event([], 2, stop=True)]).decode()
ERROR = streamed([{"error": {"message": "no luck"}}]).decode()


@pytest.fixture
def serve(tmp_path):
    """Return a server, not yet started, with some answers at fault."""

    def make(answers=None):
        fake = write_fake(tmp_path / "llama-server", answers or {})
        return Server([str(fake)], tmp_path / "server.log", 30, 30)

    return make


def complete(server):
    """Ask for four tokens."""
    return server.complete([1, 2, 3], n_predict=4, temperature=0, seed=1)


def stream(server):
    """Ask for two tokens in a stream."""
    return list(server.stream([1, 2, 3], n_predict=2, temperature=0, seed=1))


@pytest.mark.parametrize(
    ("path", "answer", "ask", "fault"),
    [
        ("/completion", "<html>", complete, "/completion with what cannot be read"),
        ("/completion", STREAM[:20], stream, "cannot be read: .*without its last event"),
        ("/completion", ERROR, stream, "an error in its stream.*no luck"),
        ("/metrics", "n_decode_total four\n", Server.metrics, "/metrics with "),
    ],
)
def test_a_broken_answer_is_named(serve, path, answer, ask, fault):
    with serve({path: answer}) as server, pytest.raises(MeasurementError, match=fault):
        ask(server)
