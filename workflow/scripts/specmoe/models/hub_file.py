"""One file of the hub: its announced digest and size, its download, its place in the user's cache.

The hub's client (huggingface_hub 2.4) deletes what an interrupted download brought. Files are tens
of gigabytes, so here that is kept, and the client's `http_get` continues it.
"""

import logging
import os
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

# The hub's client reads it when it is imported.
os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")

from filelock import FileLock, Timeout
from httpx2 import HTTPError, TransportError
from huggingface_hub import (
    constants,
    get_hf_file_metadata,
    hf_hub_download,
    hf_hub_url,
    try_to_load_from_cache,
)
from huggingface_hub.errors import HfHubHTTPError
from huggingface_hub.file_download import http_get, repo_folder_name
from huggingface_hub.utils import build_hf_headers  # type: ignore[attr-defined]

from specmoe.errors import ModelError
from specmoe.files import replace_text
from specmoe.models.hub_errors import one_line, reason, shown_hub

_logger = logging.getLogger(__name__)

_COMMIT: Final = re.compile(r"[0-9a-f]{40}")
_SHA256: Final = re.compile(r"[0-9a-f]{64}")
# Before each new attempt, after attempts that brought no byte.
PAUSES_S: Final = (1, 2, 4)
_PASSING: Final = (408, 416, 429, 500, 502, 503, 504)  # answers that may not come again


@dataclass(frozen=True)
class HubFile:
    """A file's name on the hub."""

    repository: str
    revision: str
    name: str

    def __str__(self) -> str:
        """Return the name for messages."""
        return f"{self.repository}, revision {self.revision}, file {self.name}"

    @property
    def key(self) -> str:
        """The file's key in a lock file."""
        return f"{self.repository}/{self.name}@{self.revision}"

    @property
    def repository_folder(self) -> Path:
        """The repository's folder in the user's cache."""
        return cache_folder() / repo_folder_name(repo_id=self.repository, repo_type="model")


@dataclass(frozen=True)
class Located:
    """What is known of a file, downloaded or not."""

    file: HubFile
    commit: str
    blob: Path  # its place in the cache
    size: int  # bytes
    cached: bool

    @property
    def announced_sha256(self) -> str | None:
        """The SHA-256 that the hub announces: the ETag of a large file, which names the blob."""
        return self.blob.name if _SHA256.fullmatch(self.blob.name) else None

    @property
    def partial(self) -> Path:
        """The file with the bytes downloaded so far."""
        return self.blob.with_name(f"{self.blob.name}.specmoe.incomplete")

    @property
    def missing_bytes(self) -> int:
        """How many bytes are still to download."""
        return 0 if self.blob.exists() else max(self.size - _size(self.partial), 0)


def cache_folder() -> Path:
    """Return the user's hub cache."""
    return Path(constants.HF_HUB_CACHE)


def find(file: HubFile, commit: str | None = None) -> Path | None:
    """Return a file in the user's cache without asking the hub; None if it is not cached."""
    with one_line(file):
        found = try_to_load_from_cache(file.repository, file.name, revision=commit or file.revision)
    return Path(found) if isinstance(found, str) else None


def locate(file: HubFile, commit: str | None = None) -> Located:
    """Return what is known of a file, from the cache (of a known commit) or from the hub.

    If the hub cannot be reached, the cached file of the revision is taken. Raises ModelError.
    """
    cached = find(file, commit)
    if cached and _COMMIT.fullmatch(commit or file.revision):
        return _located_in_cache(file, cached)
    try:
        return ask(file, commit, patient=cached is None)
    except ModelError as error:
        if cached is None:
            raise
        _logger.info("%s; taking the cached file of that revision", error)
        return _located_in_cache(file, cached)


def ask(file: HubFile, commit: str | None = None, *, patient: bool) -> Located:
    """Ask the hub about a file, several times if `patient`. Raises ModelError."""
    url = _address(file, commit or file.revision)
    with one_line(file):
        metadata = get_hf_file_metadata(url, retry_on_errors=patient)
    commit, etag, size = metadata.commit_hash, metadata.etag, metadata.size
    if not commit or not etag or size is None:
        raise ModelError(
            f"{file}: {shown_hub()} does not answer as a hub does (no commit, ETag or size);"
            " correct HF_ENDPOINT"
        )
    if cached := find(file, commit):
        return _located_in_cache(file, cached)
    return Located(file, commit, file.repository_folder / "blobs" / etag, size, cached=False)


def _address(file: HubFile, revision: str) -> str:
    return hf_hub_url(file.repository, file.name, revision=revision)


@contextmanager
def alone(located: Located) -> Iterator[None]:
    """Let no other process download the same file; a process that waits finds the file there."""
    folder = cache_folder() / ".locks" / located.file.repository_folder.name
    folder.mkdir(parents=True, exist_ok=True)
    # Seldom enough not to disturb what another process measures. The kernel frees the lock when the
    # process ends, however it ends.
    lock = FileLock(folder / f"{located.blob.name}.specmoe.lock", poll_interval=1.0)
    try:
        lock.acquire(blocking=False)
    except Timeout:
        _logger.info("%s: waiting for another process that downloads it", located.file)
        lock.acquire()
    try:
        yield
    finally:
        lock.release()


def download(located: Located) -> Path:
    """Download a file, continuing an earlier download, and return the path of its unchecked bytes.

    Raises ModelError if bytes are missing; those that came are kept.
    """
    with one_line(located.file):
        if located.size > constants.MAX_HTTP_DOWNLOAD_SIZE:
            _logger.info(
                "%s: too large for plain HTTP; Xet starts anew if interrupted", located.file
            )
            add_to_snapshot(located)
            return located.blob
        located.blob.parent.mkdir(parents=True, exist_ok=True)
        _download_whole(located)
    return located.partial


def add_to_snapshot(located: Located) -> Path:
    """Return the path of a file in its commit's folder; it is downloaded if there is no blob."""
    file = located.file
    with one_line(file):
        path = Path(hf_hub_download(file.repository, file.name, revision=located.commit))
    # The client reads a branch's commit here when it cannot reach the hub.
    reference = file.repository_folder / "refs" / file.revision
    says = reference.read_text(encoding="utf-8") if reference.is_file() else ""
    if located.commit not in (file.revision, says):
        replace_text(reference, located.commit)
    return path


def set_aside(located: Located, source: Path, digest: str) -> Path:
    """Move wrong bytes to a path that no client of the hub reads, and return it."""
    aside = located.blob.with_name(f"{located.blob.name}.bad-{digest[:8]}")
    link = find(located.file, located.commit)
    source.replace(aside)
    if link is not None:
        link.unlink(missing_ok=True)
    return aside


def _located_in_cache(file: HubFile, path: Path) -> Located:
    link = path.is_symlink()
    blob = file.repository_folder / "blobs" / path.readlink().name if link else path
    depth = len(Path(file.name).parts)
    return Located(file, path.parents[depth - 1].name, blob, path.stat().st_size, cached=True)


def _download_whole(located: Located) -> None:
    """Download until all bytes are there; `http_get` goes on by itself where a connection ends."""
    pauses = iter(PAUSES_S)
    while True:
        before = _size(located.partial)
        if before > located.size:
            located.partial.unlink()
        elif 0 < before < located.size:
            _logger.info("%s: going on after %d of %d bytes", located.file, before, located.size)
        try:
            with located.partial.open("ab") as partial:
                http_get(
                    # The address of a redirect expires, so each attempt starts from the hub's. The
                    # client sends no authorization to the host of a redirect.
                    _address(located.file, located.commit),
                    partial,
                    resume_size=partial.tell(),
                    headers=build_hf_headers(headers={"Accept-Encoding": "identity"}),
                    expected_size=located.size,
                    displayed_filename=located.file.name,
                )
            return
        except (HTTPError, OSError) as error:
            if not _may_pass(error):
                raise
            kept = _size(located.partial)
            if before < kept < located.size:
                pauses = iter(PAUSES_S)
            pause = next(pauses, None)
            if pause is None:
                raise ModelError(
                    f"{located.file}: {reason(error)}; {kept} of {located.size} bytes are kept,"
                    " run again to go on"
                ) from error
            _logger.info("%s: %s; trying again in %d s", located.file, reason(error), pause)
            time.sleep(pause)


def _may_pass(error: Exception) -> bool:
    if isinstance(error, HfHubHTTPError):
        return error.response.status_code in _PASSING
    # The client's error about a body of the wrong size has no error number.
    return isinstance(error, TransportError) or (isinstance(error, OSError) and not error.errno)


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0
