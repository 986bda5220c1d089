"""The files of an engine: its programs, and what they load from beside them."""

import shutil
from pathlib import Path

from specmoe.errors import EngineError

BINARIES = ("llama-server", "llama-quantize", "llama-bench")
# An engine built elsewhere may lack it, and then cannot do protocol `published`.
EXTRA_BINARIES = ("llama-speculative",)
ALL_BINARIES = (*BINARIES, *EXTRA_BINARIES)
# Shared libraries (RPATH $ORIGIN), and on a Mac the GPU's kernels: compiled, or as their source
# with the headers it includes.
_LIBRARIES = ("lib*.so*", "*.dylib", "*.metallib", "ggml-metal*", "ggml-common.h")


def engine_files(folder: Path) -> list[Path]:
    """Return the programs of an engine that are in a folder, and the libraries beside them.

    A link from one name of a library to another is among them, see `is_alias`.
    """
    programs = [folder / name for name in ALL_BINARIES]
    libraries = {file for pattern in _LIBRARIES for file in folder.glob(pattern)}
    return [file for file in [*programs, *sorted(libraries)] if file.is_file()]


def is_alias(file: Path) -> bool:
    """Return whether a file of an engine is another name of a library beside it."""
    return (
        file.name not in ALL_BINARIES
        and file.is_symlink()
        and str(file.readlink()) == file.readlink().name
    )


def install(built: Path, binaries: Path) -> None:
    """Make `binaries` a folder with copies of the engine's files in `built`.

    Raises EngineError if a program is missing that every engine has.
    """
    for name in BINARIES:
        if not (built / name).is_file():
            raise EngineError(
                f"no {name} in {built}; give the folder of a complete llama.cpp build"
            )
    # Libraries of an earlier build must not be loaded by this one's programs.
    shutil.rmtree(binaries, ignore_errors=True)
    binaries.mkdir(parents=True)
    for file in engine_files(built):
        shutil.copy2(file, binaries / file.name, follow_symlinks=not is_alias(file))
