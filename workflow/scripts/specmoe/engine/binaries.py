"""The files of an engine: its programs, and the libraries that they load from their folder."""

import shutil
from pathlib import Path

from specmoe.errors import EngineError

BINARIES = ("llama-server", "llama-quantize", "llama-bench")
# Only protocol `published` needs it; an engine built elsewhere may lack it.
EXTRA_BINARIES = ("llama-speculative",)
# Makes files of n-grams and measures nothing, so an engine is the same with and without it.
NGRAM_MAKER = "llama-lookup-create"
ALL_BINARIES = (*BINARIES, *EXTRA_BINARIES, NGRAM_MAKER)
# Shared libraries (RPATH $ORIGIN), and on a Mac the GPU's kernels: compiled, or as source with its
# headers.
_LIBRARIES = ("lib*.so*", "*.dylib", "*.metallib", "ggml-metal*", "ggml-common.h")


def engine_files(folder: Path) -> list[Path]:
    """Return the engine's programs and libraries in a folder.

    They include links from one name of a library to another, see `is_alias`.
    """
    programs = [folder / name for name in ALL_BINARIES]
    libraries = {file for pattern in _LIBRARIES for file in folder.glob(pattern)}
    return [file for file in [*programs, *sorted(libraries)] if file.is_file()]


def measuring_files(folder: Path) -> list[Path]:
    """Return the engine's files on which a measurement depends, each once."""
    files = engine_files(folder)
    return [file for file in files if not is_alias(file) and file.name != NGRAM_MAKER]


def is_alias(file: Path) -> bool:
    """Return whether a file of an engine is a link to a library in the same folder."""
    return (
        file.name not in ALL_BINARIES
        and file.is_symlink()
        and str(file.readlink()) == file.readlink().name
    )


def require_programs(folder: Path) -> None:
    """Raise EngineError if one of `BINARIES` is missing in a folder."""
    for name in BINARIES:
        if not (folder / name).is_file():
            fault = f"no {name} in {folder}; give the folder of a complete llama.cpp build"
            raise EngineError(fault)


def install(built: Path, binaries: Path) -> None:
    """Copy the engine's files from `built` to the folder `binaries`, and delete what it had.

    Raises EngineError if one of `BINARIES` is missing.
    """
    require_programs(built)
    # The programs must not load libraries of an earlier build.
    shutil.rmtree(binaries, ignore_errors=True)
    binaries.mkdir(parents=True)
    for file in engine_files(built):
        shutil.copy2(file, binaries / file.name, follow_symlinks=not is_alias(file))
