"""Models from Hugging Face: in the user's own hub cache, verified, or refused in one line."""

import os
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from typing import Final

# Read by the hub's client when it is imported.
os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")

from huggingface_hub import get_cached_repo_tree, snapshot_download
from huggingface_hub.errors import CachedRepoTreeNotFoundError

from specmoe.config.models import ConvertModel, HubModel
from specmoe.errors import ModelError
from specmoe.files import free_bytes, gigabytes, sha256_of
from specmoe.models import digest_lock
from specmoe.models.digest_lock import Locked
from specmoe.models.hub_errors import one_line
from specmoe.models.hub_file import (
    HubFile,
    Located,
    Say,
    add_to_snapshot,
    alone,
    ask,
    cache_folder,
    download,
    find,
    locate,
    set_aside,
)

__all__ = ["Fetched", "ask_size", "cache_folder", "cached", "fetch", "fetch_repository"]

FIRST_USE: Final = "first-use"
# What the converter reads, all of it in the repository's top folder.
CONVERTED: Final = ("*.safetensors", "*.json", "tokenizer.model", "*.txt", "*.jinja")


@dataclass(frozen=True)
class Fetched:
    """A file in the user's cache, verified."""

    path: Path
    sha256: str


@dataclass(frozen=True)
class _Expected:
    """The digest that a file must have, and who says so; None if nobody does."""

    sha256: str | None
    by: str


def fetch(model: HubModel, lock: Path, trust: str, say: Say) -> list[Fetched]:
    """Return every part of a model, downloaded if it is not in the cache, and verified.

    A part's digest must be the config's; where that knows none, the lock file's; else the hub's
    own, and that nobody else vouches for it is said. With `trust` "first-use" it is recorded in the
    lock file. Raises ModelError if a part cannot be had or is not the one described.
    """
    located: list[Located] = []
    for name in model.files:
        # All of one commit, though the revision may be a branch that moves meanwhile.
        commit = located[0].commit if located else None
        file = HubFile(model.repository, model.revision, name)
        located.append(locate(file, say, commit))
    if not any(part.cached for part in located):
        _check_size(model, [part.size for part in located])
    fetched = _fetch(located, model.digests, lock, trust, say)
    _check_size(model, [part.path.stat().st_size for part in fetched])
    return fetched


def fetch_repository(model: ConvertModel, lock: Path, trust: str, say: Say) -> Path:
    """Return the folder with all files of a repository that the converter needs, verified.

    Digests are those of the lock file or the hub's own, as for `fetch`. Raises ModelError.
    """
    folder = _list(model)
    located = [
        locate(HubFile(model.repository, model.revision, file.path), say, folder.name)
        for file in get_cached_repo_tree(model.repository, revision=folder.name)
        if "/" not in file.path and any(fnmatch(file.path, kind) for kind in CONVERTED)
    ]
    if not any(part.file.name.endswith(".safetensors") for part in located):
        raise ModelError(f"{_place(model)}: no safetensors there; name another repository")
    _fetch(located, [None] * len(located), lock, trust, say)
    return folder


def cached(model: HubModel) -> Path | None:
    """Return the first part of a model whose parts are all in the cache, without asking the hub."""
    paths = [find(HubFile(model.repository, model.revision, name)) for name in model.files]
    return paths[0] if all(paths) else None


def ask_size(model: HubModel) -> int | None:
    """Return the bytes of all parts of a model, as the hub says; None if it does not."""
    files = [HubFile(model.repository, model.revision, name) for name in model.files]
    try:
        return sum(ask(file, patient=False).size for file in files)
    except ModelError:
        return None


def _place(model: HubModel | ConvertModel) -> str:
    return f"{model.repository}, revision {model.revision}"


def _list(model: ConvertModel) -> Path:
    """Return the folder of a repository's commit, when the client has noted what belongs there."""
    try:
        with one_line(_place(model)):
            # Lists the repository; of its files no more than the one that every model has.
            folder = snapshot_download(
                model.repository, revision=model.revision, allow_patterns=["config.json"]
            )
            get_cached_repo_tree(model.repository, revision=Path(folder).name)
    except CachedRepoTreeNotFoundError as error:
        raise ModelError(f"{_place(model)}: its files are unknown; connect to the hub") from error
    return Path(folder)


def _fetch(
    located: Sequence[Located], digests: Sequence[str | None], lock: Path, trust: str, say: Say
) -> list[Fetched]:
    recorded = digest_lock.read(lock)
    expected = [
        _expected(part, digest, recorded, lock)
        for part, digest in zip(located, digests, strict=True)
    ]
    for part, digest in zip(located, expected, strict=True):
        _refuse_another(part, digest)
    _check_room(located, say)
    fetched = []
    for part, config, digest in zip(located, digests, expected, strict=True):
        fetched.append(_obtain(part, digest, say))
        if config is None and part.file.key not in recorded:
            _record(part, fetched[-1], lock, trust, say)
    return fetched


def _expected(
    part: Located, config: str | None, recorded: Mapping[str, Locked], lock: Path
) -> _Expected:
    if config is not None:
        return _Expected(config, "the config")
    if part.file.key in recorded:
        return _Expected(recorded[part.file.key].sha256, f"the lock file {lock}")
    return _Expected(part.announced_sha256, "the hub")


def _refuse_another(part: Located, expected: _Expected) -> None:
    """Refuse a file that the hub itself calls another one, before it is downloaded."""
    announced = part.announced_sha256
    if announced and expected.sha256 not in (None, announced):
        raise ModelError(
            f"{part.file}: another file: {expected.by} says SHA-256 {expected.sha256}, the hub"
            f" announces {announced}; correct the one, or the revision"
        )


def _check_size(model: HubModel, sizes: Sequence[int]) -> None:
    if model.size_bytes not in (None, sum(sizes)):
        raise ModelError(
            f"{_place(model)}, file {model.file}: {sum(sizes)} bytes in {len(sizes)} part(s), the"
            f" config says {model.size_bytes}; correct the one, or the revision"
        )


def _check_room(located: Sequence[Located], say: Say) -> None:
    """Refuse a model for which the disk has no room, before its first byte is downloaded."""
    missing = sum(part.missing_bytes for part in located)
    free = free_bytes(cache_folder())
    first = located[0].file
    if missing > free:
        raise ModelError(
            f"{first}: needs {gigabytes(missing)} more in {cache_folder()},"
            f" {gigabytes(free)} free; make room, or set HF_HOME to a folder on a larger disk"
        )
    if missing:
        say(f"{first}: {gigabytes(missing)} to download into {cache_folder()}")


def _obtain(part: Located, expected: _Expected, say: Say) -> Fetched:
    # A file that is there is only read, in a cache that may be read-only.
    with nullcontext() if part.cached else alone(part, say):
        source = part.blob if part.blob.exists() else download(part, say)
        digest = sha256_of(source)
        if expected.sha256 not in (None, digest):
            aside = set_aside(part, source, digest)
            raise ModelError(
                f"{part.file}: damaged: SHA-256 {digest}, {expected.by} says {expected.sha256};"
                f" it is not used and lies at {aside}; delete that and run again"
            )
        if source != part.blob:
            source.replace(part.blob)
        return Fetched(add_to_snapshot(part), digest)


def _record(part: Located, fetched: Fetched, lock: Path, trust: str, say: Say) -> None:
    if trust == FIRST_USE:
        size = fetched.path.stat().st_size
        digest_lock.record(lock, part.file.key, Locked(sha256=fetched.sha256, size_bytes=size))
        say(f"recorded: {part.file}: sha256 {fetched.sha256} in {lock}; commit that file")
    else:
        word = "matches what the hub announces" if part.announced_sha256 else "the hub has none"
        say(
            f"unverified: {part.file}: the config knows no digest; got sha256 {fetched.sha256}"
            f" ({word}); --config trust={FIRST_USE} records it in {lock}"
        )
