"""The id of an engine: its name, its backend and a digest of its config entry and files.

Two configurations may give two engines one name. The Snakefile needs the ids whenever it is parsed,
so digests of an engine's files are kept in a file.
"""

import hashlib
import json
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from pydantic import TypeAdapter, ValidationError

from specmoe.config.backend import Backend
from specmoe.config.engines import ID_DIGITS, Engine, PathEngine
from specmoe.config.schema import Config
from specmoe.engine.binaries import ALL_BINARIES, NGRAM_MAKER, engine_files, is_alias
from specmoe.files import replace_text, sha256_of


class Seen(NamedTuple):
    """The state of a file when it was hashed."""

    size: int
    mtime_ns: int
    ctime_ns: int  # nobody can set it back
    inode: int
    sha256: str


# By folder, then by name.
_MEMORY = TypeAdapter(dict[str, dict[str, Seen]])


def engine_ids(config: Config, backend: Backend, memory: Path) -> dict[str, str]:
    """Return the ids of a campaign's engines by their names; the campaign's own engine is first.

    `memory` is the file that keeps the digests. A campaign that is not measured here needs no
    engine, so no engine's files are read for it.
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


def engine_id(name: str, backend: Backend, entry: Engine, files: Mapping[str, str]) -> str:
    """Return `<name>-<backend>-<digits>`; the digits are a digest of the config entry and files.

    `files` holds the digests, by name, of an engine built elsewhere. If it has any, the engine's
    folder does not count. Keys with their default value do not count either, so that a new key of
    the configuration changes no id.
    """
    passive = {"path"} if files else set()
    facts = entry.model_dump(exclude_defaults=True, exclude=passive) | {"files": dict(files)}
    digest = hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()
    return f"{name}-{backend}-{digest[:ID_DIGITS]}"


def file_digests(folder: Path, memory: Path) -> dict[str, str]:
    """Return the SHA-256 of each file of the engine in a folder, by name.

    A file is hashed only if it changed since `memory` was written. For a folder without programs,
    such as one on a disk that is not mounted, the digests are the last known ones, so that
    campaigns measured with that engine do not become stale.
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
    """Return the id of the engine that made a model, from the engine card beside the model.

    If there is no card, or the folder `engines` no longer has that engine, the id is `own`.
    """
    try:
        maker = str(json.loads(card.read_bytes())["id"])
    except (OSError, ValueError, KeyError, TypeError):
        return own
    return maker if (engines / maker / "engine.json").exists() else own


def _look(folder: Path, before: Mapping[str, Seen]) -> dict[str, Seen]:
    """Return the readable files of the engine in a folder."""
    hashed = {seen[:4]: seen.sha256 for seen in before.values()}
    found: dict[str, Seen] = {}
    with suppress(OSError):
        for file in engine_files(folder):
            if not is_alias(file) and file.name != NGRAM_MAKER:
                stat = file.stat()
                state = (stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns, stat.st_ino)
                digest = hashed.get(state) or sha256_of(file)
                found[file.name] = Seen(*state, digest)
    return found


def _read(memory: Path) -> dict[str, dict[str, Seen]]:
    """Return the remembered digests; empty if the file is missing or damaged."""
    try:
        return _MEMORY.validate_json(memory.read_bytes())
    except (OSError, ValidationError):
        return {}
