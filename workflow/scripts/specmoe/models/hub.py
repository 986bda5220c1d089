"""Models from Hugging Face, downloaded to the user's hub cache and verified."""

import logging
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from specmoe.config.models import HubModel
from specmoe.errors import ModelError
from specmoe.files import free_bytes, gigabytes, sha256_of
from specmoe.models import digest_lock
from specmoe.models.digest_lock import Locked
from specmoe.models.hub_file import (
    HubFile,
    Located,
    add_to_snapshot,
    alone,
    ask,
    cache_folder,
    download,
    find,
    locate,
    set_aside,
)

FIRST_USE: Final = "first-use"

_logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Fetched:
    """A verified file in the user's cache."""

    path: Path
    sha256: str


def fetch(model: HubModel, lock: Path, trust: str) -> list[Fetched]:
    """Return every part of a model, verified, and downloaded unless it is cached.

    A part must have the digest of the config, else of the lock file, else of the hub. A digest that
    only the hub knows is logged; with `trust` "first-use" it is recorded in the lock file. Raises
    ModelError if a part cannot be downloaded or has another digest or size.
    """
    located: list[Located] = []
    for file in _files(model):
        # All parts come from one commit, even if the revision is a branch that moves meanwhile.
        located.append(locate(file, located[0].commit if located else None))
    if not any(part.cached for part in located):
        _check_size(model, [part.size for part in located])
    fetched = _fetch(located, model.digests, lock, trust)
    _check_size(model, [part.path.stat().st_size for part in fetched])
    return fetched


def cached(model: HubModel) -> Path | None:
    """Return the first part of a model if all parts are cached; the hub is not asked."""
    paths = [find(file) for file in _files(model)]
    return paths[0] if all(paths) else None


def ask_size(model: HubModel) -> int | None:
    """Return the size of all parts of a model in bytes, from the hub; None if it is unknown."""
    try:
        return sum(ask(file, patient=False).size for file in _files(model))
    except ModelError:
        return None


def _files(model: HubModel) -> list[HubFile]:
    return [HubFile(model.repository, model.revision, name) for name in model.files]


def _fetch(
    located: Sequence[Located], digests: Sequence[str | None], lock: Path, trust: str
) -> list[Fetched]:
    recorded = digest_lock.read(lock)
    stated = [
        (digest, "the config") if digest else _recorded(part, recorded, lock)
        for part, digest in zip(located, digests, strict=True)
    ]
    for part, known in zip(located, stated, strict=True):
        if known and part.announced_sha256 not in (None, known[0]):
            raise ModelError(
                f"{part.file}: another file: {known[1]} says SHA-256 {known[0]}, the hub"
                f" announces {part.announced_sha256}; correct the one, or the revision"
            )
    _check_room(located)
    fetched = []
    for part, known in zip(located, stated, strict=True):
        fetched.append(_obtain(part, *(known or (part.announced_sha256, "the hub"))))
        if not known:
            _record(part, fetched[-1], lock, trust)
    return fetched


def _recorded(part: Located, recorded: Mapping[str, Locked], lock: Path) -> tuple[str, str] | None:
    """Return the digest of a file in the lock file, and the words for who says so."""
    locked = recorded.get(part.file.key)
    return (locked.sha256, f"the lock file {lock}") if locked else None


def _check_size(model: HubModel, sizes: Sequence[int]) -> None:
    if model.size_bytes not in (None, sum(sizes)):
        raise ModelError(
            f"{model.repository}, revision {model.revision}, file {model.file}: {sum(sizes)} bytes"
            f" in {len(sizes)} part(s), the config says {model.size_bytes}; correct the one, or the"
            " revision"
        )


def _check_room(located: Sequence[Located]) -> None:
    """Refuse a model for which the disk has no room, before the download."""
    missing = sum(part.missing_bytes for part in located)
    free = free_bytes(cache_folder())
    first = located[0].file
    if missing > free:
        raise ModelError(
            f"{first}: needs {gigabytes(missing)} more in {cache_folder()},"
            f" {gigabytes(free)} free; make room, or set HF_HOME to a folder on a larger disk"
        )
    if missing:
        _logger.info("%s: %s to download into %s", first, gigabytes(missing), cache_folder())


def _obtain(part: Located, expected: str | None, said_by: str) -> Fetched:
    # A cached file is only read: its cache may be read-only, and take no lock.
    with nullcontext() if part.cached else alone(part):
        source = part.blob if part.blob.exists() else download(part)
        digest = sha256_of(source)
        if expected not in (None, digest):
            aside = set_aside(part, source, digest)
            raise ModelError(
                f"{part.file}: damaged: SHA-256 {digest}, {said_by} says {expected}; it is not used"
                f" and is now {aside}; delete that and run again"
            )
        if source != part.blob:
            source.replace(part.blob)
        return Fetched(add_to_snapshot(part), digest)


def _record(part: Located, fetched: Fetched, lock: Path, trust: str) -> None:
    if trust == FIRST_USE:
        size = fetched.path.stat().st_size
        digest_lock.record(lock, part.file.key, Locked(sha256=fetched.sha256, size_bytes=size))
        _logger.info(
            "recorded: %s: sha256 %s in %s; commit that file", part.file, fetched.sha256, lock
        )
    else:
        word = "matches what the hub announces" if part.announced_sha256 else "the hub has none"
        _logger.info(
            f"unverified: {part.file}: the config has no digest; got sha256 {fetched.sha256}"
            f" ({word}); --config trust={FIRST_USE} records it in {lock}"
        )
