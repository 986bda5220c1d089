"""The id of an engine: its name, its backend and a digest of what it is.

Two configurations may give one name to two engines. Each has an id of its own, and so a folder of
its own, and neither makes a campaign stale that was measured with the other.

The Snakefile asks for ids whenever it is parsed, so digests of an engine's files are remembered.
"""

import hashlib
import json
import re
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from pydantic import TypeAdapter, ValidationError

from specmoe.config.backend import Backend
from specmoe.config.schema import Config, GitEngine, PathEngine, PypiEngine
from specmoe.engine.binaries import ALL_BINARIES, engine_files, is_alias
from specmoe.files import replace_text, sha256_of

DIGITS = 8


class Seen(NamedTuple):
    """A file as it was when it was hashed."""

    size: int
    mtime_ns: int
    inode: int
    sha256: str


# By folder, then by name.
_MEMORY = TypeAdapter(dict[str, dict[str, Seen]])


def engine_ids(config: Config, backend: Backend, memory: Path) -> dict[str, str]:
    """Return the ids of a campaign's engines by their names; the campaign's own is first.

    `memory` is the file that digests are remembered in. A campaign that others measured needs no
    engine: nobody looks for the files of one.
    """
    measured = config.campaign.source == "measured"
    ids = {}
    for name in config.used_engines:
        entry = config.engines[name]
        files = {}
        if measured and isinstance(entry, PathEngine):
            files = file_digests(Path(entry.path), memory)
        ids[name] = engine_id(name, backend, entry, files)
    return ids


def engine_id(
    name: str,
    backend: Backend,
    entry: PypiEngine | GitEngine | PathEngine,
    files: Mapping[str, str],
) -> str:
    """Return `<name>-<backend>-<digits>`; the digits stand for the config entry and its files.

    `files` are digests by name, of an engine built elsewhere. Where they are known it does not
    matter what folder they are in. What has its default value is left out of the digest, so that
    a new key of the configuration changes no id.
    """
    passive = {"converter", "path"} if files else {"converter"}
    facts = entry.model_dump(exclude_defaults=True, exclude=passive) | {"files": dict(files)}
    digest = hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()
    return f"{name}-{backend}-{digest[:DIGITS]}"


def without_digits(identity: str) -> str:
    """Return an id's name and backend: in one campaign, they tell its engines apart."""
    return re.sub(rf"-[0-9a-f]{{{DIGITS}}}$", "", identity)


def file_digests(folder: Path, memory: Path) -> dict[str, str]:
    """Return the SHA-256 of each file of the engine in a folder, by name.

    A file is hashed if it has changed since `memory` was written. Of a folder without any program,
    such as one on a disk that is not mounted, what was seen there last is returned: campaigns that
    were measured with it stay as they are.
    """
    known = _read(memory)
    place = str(folder.absolute())
    before = known.get(place, {})
    now = _look(folder, before)
    if not now.keys() & set(ALL_BINARIES):
        now = before
    elif now != before:
        replace_text(memory, json.dumps(known | {place: now}, indent=1) + "\n")
    return {name: seen.sha256 for name, seen in now.items()}


def maker_of(card: Path, engines: Path, own: str) -> str:
    """Return the id of the engine that made a model, by the card of it that was left beside.

    If there is no card yet, or that engine is gone from the folder `engines`, it is `own`.
    """
    try:
        maker = str(json.loads(card.read_bytes())["id"])
    except (OSError, ValueError, KeyError, TypeError):
        return own
    return maker if (engines / maker / "engine.json").exists() else own


def _look(folder: Path, before: Mapping[str, Seen]) -> dict[str, Seen]:
    """Return the files of the engine in a folder, as far as they can be read."""
    hashed = {seen[:3]: seen.sha256 for seen in before.values()}
    found: dict[str, Seen] = {}
    with suppress(OSError):
        for file in engine_files(folder):
            if not is_alias(file):
                stat = file.stat()
                state = (stat.st_size, stat.st_mtime_ns, stat.st_ino)
                digest = hashed.get(state) or sha256_of(file)
                found[file.name] = Seen(*state, digest)
    return found


def _read(memory: Path) -> dict[str, dict[str, Seen]]:
    """Return what is remembered: nothing if the file is missing or damaged."""
    try:
        return _MEMORY.validate_json(memory.read_bytes())
    except (OSError, ValidationError):
        return {}
