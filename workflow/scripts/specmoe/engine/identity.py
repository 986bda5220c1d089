"""The identity of an engine: its files, its id, and its description.

Two configurations may give two engines one name, so an id has a digest of the config entry and the
files. The Snakefile needs the ids whenever it is parsed: digests of files are kept in a file, and
little is imported here.
"""

import json
import os
import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from specmoe.config.engines import ID_DIGITS, NGRAM_MAKER, Backend, Engine, PathEngine
from specmoe.config.schema import Config
from specmoe.errors import EngineError
from specmoe.files import file_digests, named_if_damaged, read_record, sha256_of_text

# Engines built elsewhere may lack all but the first.
BINARIES = ("llama-server", "llama-quantize", "llama-bench", "llama-speculative", NGRAM_MAKER)
# Shared libraries (RPATH $ORIGIN), and on a Mac the GPU's kernels: compiled, or as source with its
# headers.
_LIBRARIES = ("lib*.so*", "*.dylib", "*.metallib", "ggml-metal*", "ggml-common.h")
# Where installed programs find those of llama.cpp, among others (RPATH $ORIGIN/../lib).
_INSTALLED = ("../lib/libllama*", "../lib/libggml*", "../lib/libmtmd*")


def engine_files(folder: Path) -> list[Path]:
    """Return the programs in a folder, and the libraries they load with links between these."""
    programs = [folder / name for name in BINARIES]
    libraries = {file for pattern in (*_LIBRARIES, *_INSTALLED) for file in folder.glob(pattern)}
    return [file for file in [*programs, *sorted(libraries)] if file.is_file()]


def measuring_files(folder: Path) -> list[Path]:
    """Return the engine's files on which a measurement depends, each once."""
    files = engine_files(folder)
    return [file for file in files if not is_alias(file) and file.name != NGRAM_MAKER]


def is_alias(file: Path) -> bool:
    """Return whether a file of an engine is a link to a library in the same folder."""
    linked = file.is_symlink() and file.readlink().parent == Path()
    return linked and file.name not in BINARIES


def require_programs(folder: Path, needed: Iterable[str]) -> None:
    """Raise EngineError if one of the programs that are needed is missing in a folder."""
    if missing := [name for name in needed if not (folder / name).is_file()]:
        raise EngineError(
            f"no {', '.join(missing)} in {folder}, and this campaign needs it; name the folder of a"
            " llama.cpp that has it, or delete that of an engine that is built here"
        )


def require_compiler() -> None:
    """Raise EngineError if there is no C++ compiler, with which llama.cpp is built."""
    known = [os.environ.get("CXX", "c++").split()[0], "c++", "g++", "clang++"]
    if not any(map(shutil.which, known)):
        raise EngineError(
            "no C++ compiler found, with which llama.cpp is built; install one"
            " (`apt-get install build-essential`, or `xcode-select --install`)"
        )


def install(built: Path, binaries: Path) -> None:
    """Copy the engine's files from `built` to the folder `binaries`, and delete what it had."""
    # The programs must not load libraries of an earlier build.
    for folder in (binaries, binaries.with_name("lib")):
        shutil.rmtree(folder, ignore_errors=True)
    for file in engine_files(built):
        place = binaries / file.relative_to(built)  # of an installed library, in `../lib`
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(file, place, follow_symlinks=not is_alias(file))


def engine_ids(config: Config, backend: Backend, memory: Path) -> dict[str, str]:
    """Return the ids of a campaign's engines by their names; the campaign's own engine is first.

    `memory` is the folder that keeps digests. No engine's files are read for a shipped campaign.
    """
    ids = {}
    for name in config.used_engines:
        entry, files = config.engines[name], dict[str, str]()
        if config.campaign.source == "measured" and isinstance(entry, PathEngine):
            files = digests_of_engine(entry, memory)
        ids[name] = engine_id(name, backend, entry, files)
    return ids


def engine_id(name: str, backend: Backend, entry: Engine, files: Mapping[str, str]) -> str:
    """Return `<name>-<backend>-<digits>`; the digits are a digest of the config entry and files.

    `files` holds the digests, by name, of an engine built elsewhere, and replaces its folder. Keys
    with their default value do not count, so that a new key of the configuration changes no id.
    """
    passive = {"path"} if files else set()
    facts = entry.model_dump(exclude_defaults=True, exclude=passive) | {"files": dict(files)}
    digest = sha256_of_text(json.dumps(facts, sort_keys=True))
    return f"{name}-{backend}-{digest[:ID_DIGITS]}"


def digests_of_engine(entry: PathEngine, memory: Path) -> dict[str, str]:
    """Return the SHA-256 of each file of an engine built elsewhere, by name.

    Without its programs, on an unmounted disk say, they are the last known ones in `memory`, so
    that campaigns measured with that engine do not become stale.
    """
    given = Path(entry.path)
    place = sha256_of_text(str(given.absolute()))[:ID_DIGITS]
    files = measuring_files(entry.folder)
    programs = {file.name for file in files} & set(BINARIES)
    return file_digests(files if programs else [], memory / f"{given.name}-{place}.json")


def fact(description: Path, key: str) -> Any:
    """Return what the description of an engine or a model says; measuring needs little of it."""
    with named_if_damaged(description):
        return read_record(description)[key]
