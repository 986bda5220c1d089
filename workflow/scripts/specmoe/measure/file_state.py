"""Whether a model's files are still those that its card describes.

Hashing weights takes a minute, so files are hashed only when their state is not the last known one,
which is kept beside the card, in a file that no rule has as its input.
"""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from specmoe.errors import MeasurementError
from specmoe.files import digest_of_parts, files_of_model, replace_text, sha256_of

# Of each file of a model, with links followed: size in bytes, mtime_ns, ctime_ns, inode, device.
# Whoever edits a file in place can set the first time back, and not the second.
State = tuple[tuple[int, int, int, int, int], ...]


def state_of(model: Path) -> State:
    """Return the state of a model's files."""
    stats = [file.stat() for file in files_of_model(model)]
    return tuple((s.st_size, s.st_mtime_ns, s.st_ctime_ns, s.st_ino, s.st_dev) for s in stats)


def remember(model: Path, sha256: str) -> None:
    """Keep the state in which a model's files had a digest."""
    replace_text(_memory(model), _noted(sha256, state_of(model)))


@contextmanager
def unchanged(digests: Mapping[Path, str]) -> Iterator[None]:
    """Make sure that models have their cards' digests, and do not change meanwhile.

    `digests` are the cards' by model file. Raises MeasurementError.
    """
    before = {model: _checked(model, sha256) for model, sha256 in digests.items()}
    yield
    for model, state in before.items():
        # A new link to the file, or other permissions, change the second time and no weights.
        if state_of(model) != state and _digest(model) != digests[model]:
            raise MeasurementError(
                f"{model} changed while it was measured, so these runs are no measurement of it;"
                " leave the file alone and run snakemake again"
            )


def _checked(model: Path, sha256: str) -> State:
    """Return the state of a model's files, which have the digest `sha256`."""
    state = state_of(model)
    memory = _memory(model)
    if not memory.is_file() or memory.read_bytes() != _noted(sha256, state).encode():
        found = _digest(model)
        if found != sha256:
            raise MeasurementError(
                f"{model} is no longer the file that {model.with_suffix('.json').name} describes"
                f" (SHA-256 {found}, not {sha256}); bring that file back, or delete the card to"
                " measure the new one"
            )
        remember(model, sha256)
    return state


def _digest(model: Path) -> str:
    return digest_of_parts([sha256_of(file) for file in files_of_model(model)])


def _noted(sha256: str, state: State) -> str:
    return json.dumps({"sha256": sha256, "files": state}, separators=(",", ":")) + "\n"


def _memory(model: Path) -> Path:
    return model.parent / "states" / f"{model.stem}.json"
