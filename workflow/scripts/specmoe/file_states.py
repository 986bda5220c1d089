"""Digests of large files, remembered with the state that each file had when it was hashed."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from pydantic import TypeAdapter, ValidationError

from specmoe.files import gigabytes, replace_text, sha256_of

_SLOW = 10**9  # bytes that take more than a second


class Seen(NamedTuple):
    """The state of a file when it was hashed."""

    size: int
    mtime_ns: int
    ctime_ns: int  # nobody can set it back
    inode: int
    sha256: str


_MEMORY = TypeAdapter(dict[str, Seen])


def file_digests(
    files: Iterable[Path], memory: Path, known: Mapping[str, str] | None = None
) -> dict[str, str]:
    """Return the SHA-256 of files by name; a file is hashed only if it changed since the last time.

    `memory` is the file that keeps the digests, `known` has those that somebody has just computed.
    """
    before = _read(memory)
    hashed = {seen[:4]: seen.sha256 for seen in before.values()}
    now = {}
    for file in files:
        stat = file.stat()
        state = (stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns, stat.st_ino)
        digest = (known or {}).get(file.name) or hashed.get(state)
        if digest is None and stat.st_size > _SLOW:
            print(
                f"Reading {file} ({gigabytes(stat.st_size)}): new, or changed on the disk",
                flush=True,
            )
        now[file.name] = Seen(*state, digest or sha256_of(file))
    if now != before and now:
        replace_text(memory, _MEMORY.dump_json(now, indent=1).decode() + "\n")
    return {name: seen.sha256 for name, seen in now.items()}


def remembered_digests(memory: Path) -> dict[str, str]:
    """Return the digests that were last computed, by name."""
    return {name: seen.sha256 for name, seen in _read(memory).items()}


def _read(memory: Path) -> dict[str, Seen]:
    try:
        return _MEMORY.validate_json(memory.read_bytes())
    except (OSError, ValidationError):
        return {}
