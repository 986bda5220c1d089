"""A stand-in for the hub on loopback: it serves repositories from a folder, with planned faults.

It answers the requests that huggingface_hub 2.4 makes to download a model: HEAD and GET of a file,
with ranges, and the two listings of a repository. Headers and error codes are those of the hub.
"""

import hashlib
import json
import os
import socket
import threading
from dataclasses import dataclass
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

HUB, STORE = "127.0.0.1", "127.0.0.2"  # another name, as the real hub's files have
PIECE = 1 << 20


@dataclass
class Fault:
    """A fault of a file, for its first `times` requests."""

    method: str = "GET"
    times: float = float("inf")
    status: int | None = None  # answered instead of the file
    after: int | None = None  # bytes of the body that are sent
    then: str = "close"  # the connection then: close, or stall until the hub closes
    length: int | None = None  # the bytes served; the announced length is the file's
    wrong: bool = False  # every byte is wrong


@dataclass(frozen=True)
class Request:
    """A request and its answer."""

    method: str
    path: str
    host: str
    range: str | None
    authorized: bool
    sent: int  # bytes of the body


class StandIn:
    """A running stand-in.

    `root/<owner>/<name>/<revision>/` holds a repository at a revision. Its commit depends on the
    files, unless the revision's name is a commit hash itself.
    """

    def __init__(self, root: Path, redirect: bool = False) -> None:
        self.root = root
        self.redirect = redirect  # bodies come from another host, as the real hub's do
        self.faults: dict[str, list[Fault]] = {}  # by <repository>/<file>
        self.tokens: dict[str, str] = {}  # gated repositories, and the token that opens them
        self.requests: list[Request] = []
        self.closing = threading.Event()
        self._servers = [_Server((HUB, 0), self)]
        if redirect:
            self._servers.append(_Server((STORE, 0), self))
        self.endpoint = f"http://{HUB}:{self._servers[0].server_address[1]}"
        self.store = f"http://{STORE}:{self._servers[-1].server_address[1]}"

    def __enter__(self) -> "StandIn":
        for server in self._servers:
            threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.closing.set()
        for server in self._servers:
            server.shutdown()
            server.server_close()

    def add(self, repository: str, revision: str, name: str, content: bytes | Path) -> Path:
        """Put a file, or a link to one, into a repository."""
        path = self.root / repository / revision / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.unlink(missing_ok=True)
        if isinstance(content, Path):
            path.symlink_to(content.resolve())
        else:
            path.write_bytes(content)
        return path

    def fail(self, file: str, **fault: Any) -> None:
        """Plan a fault of `<repository>/<file>`, after those planned before."""
        self.faults.setdefault(file, []).append(Fault(**fault))

    def asked(self, method: str, end: str = "") -> list[Request]:
        """Return the requests of a method whose path has an end."""
        return [r for r in self.requests if r.method == method and r.path.endswith(end)]

    def sha256(self, path: Path) -> str:
        """Return a file's digest, computed again only if the file changes."""
        status = path.stat()
        return _digest_of(path, status.st_mtime_ns, status.st_size)

    def files(self, folder: Path) -> dict[str, Path]:
        """Return the files of a repository at a revision, by name."""
        found = sorted(path for path in folder.rglob("*") if path.is_file())
        return {path.relative_to(folder).as_posix(): path for path in found}

    def commit(self, folder: Path) -> str:
        """Return the commit of a repository at a revision."""
        if len(folder.name) == 40:
            return folder.name
        content = {name: self.sha256(path) for name, path in self.files(folder).items()}
        return hashlib.sha1(json.dumps(content).encode(), usedforsecurity=False).hexdigest()

    def folder(self, repository: str, revision: str) -> Path | None:
        """Return the folder of a revision, given by its name or its commit."""
        for folder in sorted((self.root / repository).iterdir()):
            if revision in (folder.name, self.commit(folder)):
                return folder
        return None

    def due(self, file: str, method: str) -> Fault:
        """Return the planned fault of a request, or one without effect."""
        for fault in self.faults.get(file, []):
            if fault.method == method and fault.times > 0:
                fault.times -= 1
                return fault
        return Fault()


class _RefusedError(Exception):
    """A request is answered with a status, and maybe the hub's own code."""

    def __init__(self, status: int, code: str | None = None) -> None:
        self.status, self.code = status, code


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, address: tuple[str, int], hub: StandIn) -> None:
        super().__init__(address, _Handler)
        self.hub = hub

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Print no traceback for clients that were killed."""


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    protocol_version = "HTTP/1.1"
    sent = 0

    def log_message(self, *_: object) -> None:
        """Print nothing; requests are recorded."""

    def do_HEAD(self) -> None:
        self._answer()

    def do_GET(self) -> None:
        self._answer()

    def _answer(self) -> None:
        self.sent = 0
        path = unquote(urlsplit(self.path).path)
        try:
            owner, name, _, revision, file = path.lstrip("/").split("/", 4)
            self._give(f"{owner}/{name}", revision, file)
        except _RefusedError as refused:
            self.send_response(refused.status)
            if refused.code:
                self.send_header("X-Error-Code", refused.code)
            self.send_header("Content-Length", "0")
            self.end_headers()
        finally:
            host, asked = str(self.server.server_address[0]), self.headers.get("Range")
            authorized = "Authorization" in self.headers
            self.server.hub.requests.append(
                Request(self.command, path, host, asked, authorized, self.sent)
            )

    def _folder(self, repository: str, revision: str) -> Path:
        hub = self.server.hub
        token = hub.tokens.get(repository)
        if not (hub.root / repository).is_dir():
            raise _RefusedError(404, "RepoNotFound")
        if token and self.headers.get("Authorization") != f"Bearer {token}" and not self._stored:
            raise _RefusedError(403 if "Authorization" in self.headers else 401, "GatedRepo")
        folder = hub.folder(repository, revision)
        if folder is None:
            raise _RefusedError(404, "RevisionNotFound")
        return folder

    @property
    def _stored(self) -> bool:
        """Whether this is the second host, which asks for no token."""
        return self.server.server_address[0] == STORE

    def _give(self, repository: str, revision: str, file: str) -> None:
        hub = self.server.hub
        folder = self._folder(repository, revision)
        path = hub.files(folder).get(file)
        if path is None:
            raise _RefusedError(404, "EntryNotFound")
        if hub.redirect and _is_large(file) and not self._stored:
            self._head(302, folder, file, path, 0)
            return
        fault = hub.due(f"{repository}/{file}", self.command)
        if fault.status is not None:
            raise _RefusedError(fault.status)
        if self.command == "GET":
            self._body(fault, folder, file, path)
        else:
            self._head(200, folder, file, path, path.stat().st_size)

    def _head(self, status: int, folder: Path, file: str, path: Path, length: int) -> None:
        hub = self.server.hub
        digest = hub.sha256(path)
        etag = digest if _is_large(file) else digest[:40]
        self.send_response(status)
        if status == 302:
            self.send_header("Location", f"{hub.store}{self.path}?signed=yes")
        self.send_header("X-Repo-Commit", hub.commit(folder))
        self.send_header("ETag", f'"{etag}"')
        self.send_header("X-Linked-Etag", f'"{etag}"')
        self.send_header("X-Linked-Size", str(path.stat().st_size))
        self.send_header("Accept-Ranges", "bytes")
        self.send_header("Content-Length", str(length))
        if self.command == "HEAD" or status == 302:
            self.end_headers()

    def _body(self, fault: Fault, folder: Path, file: str, path: Path) -> None:
        size = path.stat().st_size if fault.length is None else fault.length
        asked = self.headers.get("Range")
        start = int(asked.removeprefix("bytes=").partition("-")[0]) if asked else 0
        if asked and start >= size:
            raise _RefusedError(416)
        self._head(206 if asked else 200, folder, file, path, size - start)
        if asked:
            self.send_header("Content-Range", f"bytes {start}-{size - 1}/{size}")
        self.end_headers()
        end = size if fault.after is None else min(size, start + fault.after)
        self._send(path, start, end, fault.wrong)
        if fault.after is not None:
            self._break_off(fault.then)

    def _send(self, path: Path, start: int, end: int, wrong: bool) -> None:
        with path.open("rb") as file:
            file.seek(start)
            while start + self.sent < end:
                piece = file.read(min(PIECE, end - start - self.sent))
                self.wfile.write(bytes(255 - byte for byte in piece) if wrong else piece)
                self.sent += len(piece)
        self.wfile.flush()

    def _break_off(self, how: str) -> None:
        self.close_connection = True
        if how == "stall":
            self.server.hub.closing.wait()
        else:
            self.connection.shutdown(socket.SHUT_RDWR)


@cache
def _digest_of(path: Path, *_state: int) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _is_large(name: str) -> bool:
    """Whether the real hub would store a file under its SHA-256, outside the repository."""
    return name.endswith(".gguf")


def environment(hub: StandIn | str, folder: Path, **more: str) -> dict[str, str]:
    """Return the environment of a process with the stand-in as its hub, and its own cache."""
    mine = {key: value for key, value in os.environ.items() if not key.startswith("HF_")}
    endpoint = hub if isinstance(hub, str) else hub.endpoint
    return mine | {"HF_ENDPOINT": endpoint, "HF_HOME": str(folder), "NO_PROXY": "*"} | more
