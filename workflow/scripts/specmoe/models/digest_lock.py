"""The digests of files whose digest the configuration does not have, recorded at first use.

The lock file is sorted JSON, and users commit it: its digests are enforced from then on.
"""

import json
from collections.abc import Mapping
from pathlib import Path

from filelock import FileLock
from pydantic import TypeAdapter

from specmoe.config.base import Digest, Positive, Strict
from specmoe.config.parse import first_fault
from specmoe.errors import ModelError
from specmoe.files import json_of, read_whole, replace_text


class Locked(Strict):
    """The digest and the size of one file."""

    sha256: Digest
    size_bytes: Positive


_LOCK = TypeAdapter(dict[str, Locked])


def read(lock: Path) -> Mapping[str, Locked]:
    """Return the entries of a lock file by `<repository>/<file>@<revision>`.

    A file that does not exist has none. Raises ModelError if the file is damaged.
    """
    text = read_whole(lock) if lock.exists() else b""
    if not text:
        return {}
    try:
        return _LOCK.validate_python(json_of(text))
    except ValueError as error:
        raise ModelError(
            f"{lock}: damaged ({first_fault(error)}); restore it, or delete it to record anew"
        ) from error


def record(lock: Path, key: str, locked: Locked) -> None:
    """Add an entry to a lock file, which is made if missing; processes may do so at once."""
    lock.parent.mkdir(parents=True, exist_ok=True)
    # The entries' own file is locked, so that no lock file stays in the user's folder. filelock
    # checks st_nlink, so a process that waited locks the file that replaced the one it opened.
    with FileLock(lock):
        entries = {**read(lock), key: locked}
        content = {key: entries[key].model_dump() for key in sorted(entries)}
        replace_text(lock, json.dumps(content, indent=1) + "\n")
