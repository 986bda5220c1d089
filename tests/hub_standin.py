"""A stand-in for the hub on loopback: it serves repositories from a folder, with planned faults.

It answers the requests that huggingface_hub 2.4 makes to download a model: the list of a revision's
files, and HEAD and GET of a file. Headers and error codes are those of the hub.
"""

import hashlib
import json
import os
import threading
import time
from dataclasses import dataclass
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from specmoe.files import sha256_of


@dataclass(frozen=True)
class Fault:
    """A fault of every download of a file."""

    status: int | None = None  # answered instead
    wrong: bool = False  # every byte is wrong
    endless: bool = False  # a byte at a time, until the client leaves


class StandIn:
    """A running stand-in.

    `root/<owner>/<name>/<revision>/` holds a repository at a revision. Its commit depends on the
    files, unless the revision's name is a commit hash itself.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self.faults: dict[str, Fault] = {}  # by <repository>/<file>
        self.gated: set[str] = set()  # repositories that want a token
        self.requests: list[str] = []  # the paths that were asked for
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Handler, self))
        # No traceback for clients that were killed.
        self._server.handle_error = lambda *_: None  # type: ignore[method-assign]
        self.endpoint = f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> "StandIn":
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def add(self, repository: str, revision: str, name: str, content: bytes | Path) -> Path:
        """Put a file, or a link to one, into a repository."""
        path = self.root / repository / revision / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, Path):
            path.symlink_to(content.resolve())
        else:
            path.write_bytes(content)
        return path

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


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def __init__(self, hub: StandIn, *args: Any) -> None:
        self.hub = hub
        super().__init__(*args)

    def log_message(self, *_: object) -> None:
        """Print nothing; requests are recorded."""

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_GET(self) -> None:
        path = unquote(urlsplit(self.path).path)
        self.hub.requests.append(path)
        try:
            if path.startswith("/api/models/"):
                owner, name, _, revision = path.removeprefix("/api/models/").split("/", 3)
                self._list(f"{owner}/{name}", revision)
            else:
                owner, name, _, revision, file = path.lstrip("/").split("/", 4)
                self._give(f"{owner}/{name}", revision, file)
        except _RefusedError as refused:
            self._answer(refused.status, {"X-Error-Code": refused.code}, 0)

    def _answer(self, status: int, headers: dict[str, str], length: int) -> None:
        """Send all of an answer but its body, which has this length."""
        self.send_response(status)
        for name, value in (headers | {"Content-Length": str(length)}).items():
            self.send_header(name, value)
        self.end_headers()

    def _folder(self, repository: str, revision: str) -> Path:
        hub = self.hub
        if not (hub.root / repository).is_dir():
            raise _RefusedError(404, "RepoNotFound")
        if repository in hub.gated:
            raise _RefusedError(401, "GatedRepo")
        for folder in sorted((hub.root / repository).iterdir()):
            if revision in (folder.name, hub.commit(folder)):
                return folder
        raise _RefusedError(404, "RevisionNotFound")

    def _list(self, repository: str, revision: str) -> None:
        hub = self.hub
        folder = self._folder(repository, revision)
        files = []
        for name, path in hub.files(folder).items():
            size = path.stat().st_size
            large = {"sha256": sha256_of(path), "size": size, "pointerSize": 134}
            files.append({"rfilename": name, "size": size, "lfs": large})
        body = json.dumps({"id": repository, "sha": hub.commit(folder), "siblings": files}).encode()
        self._answer(200, {}, len(body))
        self.wfile.write(body)

    def _give(self, repository: str, revision: str, name: str) -> None:
        hub = self.hub
        folder = self._folder(repository, revision)
        path = hub.files(folder).get(name)
        if path is None:
            raise _RefusedError(404, "EntryNotFound")
        body, tag = path.read_bytes(), f'"{sha256_of(path)}"'
        headers = {"X-Repo-Commit": hub.commit(folder), "ETag": tag, "X-Linked-Etag": tag}
        fault = hub.faults.get(f"{repository}/{name}", Fault())
        if self.command == "GET" and fault.status:
            raise _RefusedError(fault.status)
        self._answer(200, headers | {"X-Linked-Size": str(len(body))}, len(body))
        if self.command == "HEAD":
            return
        while fault.endless and self.wfile.write(b"m"):
            time.sleep(0.1)
        self.wfile.write(bytes(255 - byte for byte in body) if fault.wrong else body)


def environment(hub: StandIn, folder: Path, **more: str) -> dict[str, str]:
    """Return the environment of a process with the stand-in as its hub, and its own cache."""
    mine = {key: value for key, value in os.environ.items() if not key.startswith("HF_")}
    return mine | {"HF_ENDPOINT": hub.endpoint, "HF_HOME": str(folder), "NO_PROXY": "*"} | more
