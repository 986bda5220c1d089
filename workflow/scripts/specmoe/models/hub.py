"""Models from Hugging Face, downloaded by its client to the user's hub cache, and verified.

The client goes on where a connection ends or stalls, but not where a process was killed. Of digests
it checks only those of Xet's pieces, so each file is hashed here.
"""

import logging
import os
import re
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Final

# The hub's client reads them when it is imported. Its warnings have addresses, which may be signed.
os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")
os.environ.setdefault("HF_HUB_VERBOSITY", "error")

from huggingface_hub import constants, hf_hub_download, model_info, try_to_load_from_cache

from specmoe.config.models import HubModel
from specmoe.errors import ModelError
from specmoe.files import gigabytes, link, replace_text, sha256_of
from specmoe.models import digest_lock
from specmoe.models.digest_lock import Locked
from specmoe.models.hub_errors import NO_HUB, one_line

FIRST_USE: Final = "first-use"
_COMMIT: Final = re.compile(r"[0-9a-f]{40}")
_SHA256: Final = re.compile(r"[0-9a-f]{64}")

_logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class _Part:
    """What is known of a model's file, downloaded or not."""

    model: HubModel
    name: str
    commit: str
    size: int  # bytes
    announced: str | None  # the SHA-256 that the hub has
    cached: Path | None

    def __str__(self) -> str:
        return _place(self.model, self.name)

    @property
    def key(self) -> str:
        """The file's key in a lock file."""
        return f"{self.model.repository}/{self.name}@{self.model.revision}"


def fetch(model: HubModel, lock: Path, trust: str) -> list[tuple[Path, str]]:
    """Return every part of a model and its digest, verified, and downloaded unless it is cached.

    A part must have the digest of the config, else of the lock file, else of the hub. A digest that
    only the hub knows is logged; with `trust` "first-use" it is recorded in the lock file. Raises
    ModelError if a part cannot be downloaded or has another digest or size.
    """
    parts = _located(model)
    size = sum(part.size for part in parts)
    if model.size_bytes not in (None, size):
        raise ModelError(
            f"{parts[0]}: {size} bytes in {len(parts)} part(s), the config says"
            f" {model.size_bytes}; correct the one, or the revision"
        )
    recorded = digest_lock.read(lock)
    expected: list[tuple[str | None, str]] = []  # digests, and who says so
    for part, digest in zip(parts, model.digests, strict=True):
        stated, by = digest, "the config"
        if stated is None and (locked := recorded.get(part.key)):
            stated, by = locked.sha256, f"the lock file {lock}"
        if stated and part.announced not in (None, stated):
            raise ModelError(
                f"{part}: another file: {by} says SHA-256 {stated}, the hub announces"
                f" {part.announced}; correct the one, or the revision"
            )
        expected.append((stated, by) if stated else (part.announced, "the hub"))
    if missing := sum(part.size for part in parts if not part.cached):
        _logger.info("%s: %s to download into %s", parts[0], gigabytes(missing), cache_folder())
    fetched = []
    for part, (sha256, by) in zip(parts, expected, strict=True):
        fetched.append(_obtain(part, sha256, by))
        if by == "the hub":
            _record(part, fetched[-1][1], lock, trust)
    return fetched


def fetch_linked(model: HubModel, lock: Path, trust: str, out: Path, digests: Path) -> None:
    """Download a model as `fetch` does, make `out` a link to it, and write its digests."""
    paths, found = zip(*fetch(model, lock, trust), strict=True)
    links = link(paths[0], out)
    lines = [f"{digest}  {name.name}\n" for digest, name in zip(found, links, strict=True)]
    replace_text(digests, "".join(lines))


def cached(model: HubModel) -> Path | None:
    """Return the first part of a model if all parts are cached; the hub is not asked."""
    paths = [_cached(model, name, model.revision) for name in model.files]
    return paths[0] if all(paths) else None


def ask_size(model: HubModel) -> int | None:
    """Return the size of all parts of a model in bytes, from the hub; None if it is unknown."""
    try:
        return sum(part.size for part in _listed(model))
    except ModelError:
        return None


def cache_folder() -> Path:
    """Return the user's hub cache."""
    return Path(constants.HF_HUB_CACHE)


def _place(model: HubModel, name: str) -> str:
    return f"{model.repository}, revision {model.revision}, file {name}"


def _cached(model: HubModel, name: str, revision: str) -> Path | None:
    with one_line(_place(model, name)):
        found = try_to_load_from_cache(model.repository, name, revision=revision)
    return Path(found) if isinstance(found, str) else None


def _located(model: HubModel) -> list[_Part]:
    """Return what is known of a model's files, from the cache (of a commit) or from the hub.

    If the hub cannot be reached, the cached files of the revision are taken. Raises ModelError.
    """
    paths = [(name, _cached(model, name, model.revision)) for name in model.files]
    here = [_in_cache(model, name, path) for name, path in paths if path]
    complete = len(here) == len(paths)
    if complete and _COMMIT.fullmatch(model.revision):
        return here
    try:
        return _listed(model)
    except ModelError as error:
        if not complete:
            raise
        _logger.info("%s; taking the cached file of that revision", error)
        return here


def _in_cache(model: HubModel, name: str, path: Path) -> _Part:
    """Return what the cache says: a commit's folder has links to files named by their digests."""
    blob = path.readlink().name if path.is_symlink() else ""
    announced = blob if _SHA256.fullmatch(blob) else None
    commit = path.parents[name.count("/")].name
    return _Part(model, name, commit, path.stat().st_size, announced, path)


def _listed(model: HubModel) -> list[_Part]:
    """Return a model's files as the hub lists them, all of one commit. Raises ModelError."""
    with one_line(_place(model, model.file)):
        info = model_info(
            model.repository,
            revision=model.revision,
            files_metadata=True,
            timeout=constants.HF_HUB_ETAG_TIMEOUT,
        )
    listed = {file.rfilename: file for file in info.siblings or []}
    parts = []
    for name in model.files:
        file, commit = listed.get(name), info.sha
        if file is None:
            similar = ", ".join(get_close_matches(name, listed)) or "none"
            raise ModelError(
                f"{_place(model, name)}: the repository has no such file at that revision; correct"
                f" it (similar: {similar})"
            )
        if not commit or file.size is None:
            raise ModelError(f"{_place(model, name)}: {NO_HUB}")
        sha256 = file.lfs.sha256 if file.lfs else None
        parts.append(_Part(model, name, commit, file.size, sha256, _cached(model, name, commit)))
    return parts


def _obtain(part: _Part, expected: str | None, said_by: str) -> tuple[Path, str]:
    path, model = part.cached, part.model
    if path is None:
        with one_line(part):
            # By the revision's name, so that the cache knows its commit when there is no network.
            path = Path(hf_hub_download(model.repository, part.name, revision=model.revision))
        if part.commit not in path.parts:
            raise ModelError(f"{part}: the revision has another commit by now; run again")
    digest = sha256_of(path)
    if expected not in (None, digest):
        path.resolve().unlink()
        path.unlink(missing_ok=True)  # the link to it
        raise ModelError(
            f"{part}: damaged: SHA-256 {digest}, {said_by} says {expected}; it is deleted, run"
            " again to download it anew"
        )
    return path, digest


def _record(part: _Part, sha256: str, lock: Path, trust: str) -> None:
    if trust == FIRST_USE:
        digest_lock.record(lock, part.key, Locked(sha256=sha256, size_bytes=part.size))
        _logger.info("recorded: %s: sha256 %s in %s; commit that file", part, sha256, lock)
    else:
        word = "matches what the hub announces" if part.announced else "the hub has none"
        _logger.info(
            f"unverified: {part}: the config has no digest; got sha256 {sha256}"
            f" ({word}); --config trust={FIRST_USE} records it in {lock}"
        )
