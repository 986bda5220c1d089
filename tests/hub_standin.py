"""A stand-in for the hub on loopback: it serves repositories from a folder, with planned faults.

It answers the requests that huggingface_hub 2.4 makes to download a model: the list of a revision's
files, and HEAD and GET of a file, with ranges. Headers and error codes are those of the hub.
"""

import hashlib
import json
import os
import socket
import struct
import threading
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from specmoe.files import sha256_of

HUB, STORE = "127.0.0.1", "127.0.0.2"  # another name, as the real hub's files have


@dataclass
class Fault:
    """A fault of a file or a repository, for its first `times` requests."""

    method: str = "GET"
    times: float = float("inf")
    status: int | None = None  # answered instead
    after: int | None = None  # bytes of the body that are sent before the connection ends
    reset: bool = False  # and it ends with a reset
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


class StandIn:
    """A running stand-in.

    `root/<owner>/<name>/<revision>/` holds a repository at a revision. Its commit depends on the
    files, unless the revision's name is a commit hash itself.
    """

    def __init__(self, root: Path, redirect: bool = False) -> None:
        self.root = root
        self.redirect = redirect  # bodies come from another host, as the real hub's do
        self.faults: dict[str, list[Fault]] = {}  # by <repository>/<file>, or repository
        self.tokens: dict[str, str] = {}  # gated repositories, and the token that opens them
        self.requests: list[Request] = []
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

    def fail(self, place: str, **fault: Any) -> None:
        """Plan a fault of `<repository>/<file>`, or of a repository, after those planned before."""
        self.faults.setdefault(place, []).append(Fault(**fault))

    def due(self, place: str, method: str) -> Fault:
        """Return the planned fault of a request, or one without effect; raise what it answers."""
        for fault in self.faults.get(place, []):
            if fault.method == method and fault.times > 0:
                fault.times -= 1
                if fault.status is not None:
                    raise _RefusedError(fault.status)
                return fault
        return Fault()

    def asked(self, method: str, end: str = "") -> list[Request]:
        """Return the requests of a method whose path has an end."""
        return [r for r in self.requests if r.method == method and r.path.endswith(end)]

    def files(self, folder: Path) -> dict[str, Path]:
        """Return the files of a repository at a revision, by name."""
        found = sorted(path for path in folder.rglob("*") if path.is_file())
        return {path.relative_to(folder).as_posix(): path for path in found}

    def commit(self, folder: Path) -> str:
        """Return the commit of a repository at a revision."""
        if len(folder.name) == 40:
            return folder.name
        content = {name: sha256_of(path) for name, path in self.files(folder).items()}
        return hashlib.sha1(json.dumps(content).encode(), usedforsecurity=False).hexdigest()


class _RefusedError(Exception):
    """A request is answered with a status, and maybe the hub's own code."""

    def __init__(self, status: int, code: str = "") -> None:
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

    def log_message(self, *_: object) -> None:
        """Print nothing; requests are recorded."""

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_GET(self) -> None:
        path, authorized = unquote(urlsplit(self.path).path), "Authorization" in self.headers
        host, asked = str(self.server.server_address[0]), self.headers.get("Range")
        self.server.hub.requests.append(Request(self.command, path, host, asked, authorized))
        try:
            if path.startswith("/api/models/"):
                owner, name, _, revision = path.removeprefix("/api/models/").split("/", 3)
                self._list(f"{owner}/{name}", revision)
            else:
                owner, name, _, revision, file = path.lstrip("/").split("/", 4)
                self._give(f"{owner}/{name}", revision, file)
        except _RefusedError as refused:
            self._answer(refused.status, {"X-Error-Code": refused.code, "Content-Length": "0"})

    def _answer(self, status: int, headers: dict[str, str], body: bytes = b"") -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    @property
    def _stored(self) -> bool:
        """Whether this is the second host, which asks for no token."""
        return self.server.server_address[0] == STORE

    def _folder(self, repository: str, revision: str) -> Path:
        hub = self.server.hub
        token = hub.tokens.get(repository)
        if not (hub.root / repository).is_dir():
            raise _RefusedError(404, "RepoNotFound")
        if token and self.headers.get("Authorization") != f"Bearer {token}" and not self._stored:
            raise _RefusedError(403 if "Authorization" in self.headers else 401, "GatedRepo")
        for folder in sorted((hub.root / repository).iterdir()):
            if revision in (folder.name, hub.commit(folder)):
                return folder
        raise _RefusedError(404, "RevisionNotFound")

    def _list(self, repository: str, revision: str) -> None:
        hub = self.server.hub
        hub.due(repository, self.command)
        folder = self._folder(repository, revision)
        files = []
        for name, path in hub.files(folder).items():
            size = path.stat().st_size
            large = {"sha256": sha256_of(path), "size": size, "pointerSize": 134}
            files.append({"rfilename": name, "size": size, "lfs": large})
        content = {"id": repository, "sha": hub.commit(folder), "siblings": files}
        body = json.dumps(content).encode()
        self._answer(200, {"Content-Length": str(len(body))}, body)

    def _give(self, repository: str, revision: str, name: str) -> None:
        hub = self.server.hub
        folder = self._folder(repository, revision)
        path = hub.files(folder).get(name)
        if path is None:
            raise _RefusedError(404, "EntryNotFound")
        size, digest = path.stat().st_size, sha256_of(path)
        headers = {
            "X-Repo-Commit": hub.commit(folder),
            "ETag": f'"{digest}"',
            "X-Linked-Etag": f'"{digest}"',
            "X-Linked-Size": str(size),
            "Accept-Ranges": "bytes",
        }
        if hub.redirect and not self._stored:
            address = f"{hub.store}{self.path}?signed=yes"
            self._answer(302, headers | {"Location": address, "Content-Length": "0"})
            return
        fault = hub.due(f"{repository}/{name}", self.command)
        if self.command == "HEAD":
            self._answer(200, headers | {"Content-Length": str(size)})
        else:
            self._send(headers, path.read_bytes()[: fault.length], fault)

    def _send(self, headers: dict[str, str], body: bytes, fault: Fault) -> None:
        size, start, asked = len(body), 0, self.headers.get("Range")
        if asked:
            start = int(asked.removeprefix("bytes=").partition("-")[0])
            headers |= {"Content-Range": f"bytes {start}-{size - 1}/{size}"}
        sent = body[start : None if fault.after is None else start + fault.after]
        if fault.wrong:
            sent = bytes(255 - byte for byte in sent)
        headers |= {"Content-Length": str(size - start)}
        self._answer(206 if asked else 200, headers, sent)
        if fault.after is None:
            return
        self.wfile.flush()
        self.close_connection = True
        if fault.reset:
            # With a linger time of zero, closing sends a reset.
            linger = struct.pack("ii", 1, 0)
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
            os.close(self.connection.detach())
        else:
            self.connection.shutdown(socket.SHUT_RDWR)


def environment(hub: StandIn | str, folder: Path, **more: str) -> dict[str, str]:
    """Return the environment of a process with the stand-in as its hub, and its own cache."""
    mine = {key: value for key, value in os.environ.items() if not key.startswith("HF_")}
    endpoint = hub if isinstance(hub, str) else hub.endpoint
    return mine | {"HF_ENDPOINT": endpoint, "HF_HOME": str(folder), "NO_PROXY": "*"} | more
