"""The digests of files whose digest the configuration does not know, recorded at first use.

The file is JSON, sorted, and meant to be committed: what it names is enforced from then on.
"""

import fcntl
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from specmoe.config.base import Digest, Positive, Strict
from specmoe.errors import ModelError
from specmoe.files import replace_text


class Locked(Strict):
    """What is recorded of one file."""

    sha256: Digest
    size_bytes: Positive


_LOCK = TypeAdapter(dict[str, Locked])


def read(lock: Path) -> Mapping[str, Locked]:
    """Return what a lock file records, by `<repository>/<file>@<revision>`; nothing if it is not.

    Raises ModelError if it is damaged.
    """
    text = lock.read_text(encoding="utf-8") if lock.exists() else ""
    if not text:
        return {}
    try:
        return _LOCK.validate_json(text)
    except ValidationError as error:
        fault = error.errors()[0]
        place = ".".join(map(str, fault["loc"])) or "all of it"
        raise ModelError(
            f"{lock}: damaged ({place}: {fault['msg']}); restore it, or delete it to record anew"
        ) from error


def record(lock: Path, key: str, locked: Locked) -> None:
    """Add one file to a lock file, made if there is none; of several processes none loses."""
    with _alone(lock):
        entries = {**read(lock), key: locked}
        content = {key: entries[key].model_dump() for key in sorted(entries)}
        replace_text(lock, json.dumps(content, indent=1) + "\n")


@contextmanager
def _alone(lock: Path) -> Iterator[None]:
    """Hold the lock file itself; the kernel frees it when the process ends, however it ends."""
    lock.parent.mkdir(parents=True, exist_ok=True)
    while True:
        with lock.open("a") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            # Whoever held it before may have put another file in its place.
            if os.path.samestat(os.fstat(file.fileno()), lock.stat()):
                yield
                return
