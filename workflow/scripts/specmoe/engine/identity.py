"""The id of an engine: its name, its backend and a digest of its config entry and files.

Two configurations may give two engines one name. The Snakefile needs the ids whenever it is parsed,
so digests of an engine's files are kept in a file.
"""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path

from specmoe.config.backend import Backend
from specmoe.config.engines import ID_DIGITS, Engine, PathEngine
from specmoe.config.schema import Config
from specmoe.engine.binaries import ALL_BINARIES, measuring_files
from specmoe.file_states import file_digests, remembered_digests


def engine_ids(config: Config, backend: Backend, memory: Path) -> dict[str, str]:
    """Return the ids of a campaign's engines by their names; the campaign's own engine is first.

    `memory` is the folder that keeps digests. A campaign that is not measured here needs no
    engine, so no engine's files are read for it.
    """
    measured = config.campaign.source == "measured"
    ids = {}
    for name in config.used_engines:
        entry = config.engines[name]
        files = {}
        if measured and isinstance(entry, PathEngine):
            files = digests_of_engine(Path(entry.path), memory)
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


def digests_of_engine(folder: Path, memory: Path) -> dict[str, str]:
    """Return the SHA-256 of each file of the engine in a folder, by name.

    For a folder without programs, such as one on a disk that is not mounted, the digests are the
    last known ones, so that campaigns measured with that engine do not become stale. `memory` is
    the folder that keeps them.
    """
    place = hashlib.sha256(str(folder.absolute()).encode()).hexdigest()[:ID_DIGITS]
    kept = memory / f"{folder.name}-{place}.json"
    files = measuring_files(folder)
    if not {file.name for file in files} & set(ALL_BINARIES):
        return remembered_digests(kept)
    return file_digests(files, kept)


def maker_of(card: Path, engines: Path, own: str) -> str:
    """Return the id of the engine that made a model, from the engine card beside the model.

    If there is no card, or the folder `engines` no longer has that engine, the id is `own`.
    """
    try:
        maker = str(json.loads(card.read_bytes())["id"])
    except (OSError, ValueError, KeyError, TypeError):
        return own
    return maker if (engines / maker / "engine.json").exists() else own
