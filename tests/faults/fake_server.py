"""A stand-in for llama-server whose answers are at fault: the engine's own are sound."""

import stat
import sys
from pathlib import Path

SOUND = {
    "/health": '{"status": "ok"}',
    "/props": '{"build_info": "fake"}',
    "/slots": '[{"n_ctx": 256, "speculative": false}]',
    "/metrics": "llamacpp:n_decode_total 4\n",
    "/tokenize": '{"tokens": [1, 2, 3]}',
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
