"""A broken response of a server ends in one line that names it."""

import stat
import sys

import pytest

from specmoe.engine.server import Server
from specmoe.errors import MeasurementError

VALID = {
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
def test_a_broken_answer_is_named(path, answer, ask, error, tmp_path):
    program = tmp_path / "llama-server"
    program.write_text(_PROGRAM.format(python=sys.executable, answers=VALID | {path: answer}))
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    with (
        Server([str(program)], tmp_path / "server.log", 30) as server,
        pytest.raises(MeasurementError, match=error),
    ):
        ask(server)
