"""Small things about files that several modules need."""

import hashlib
from pathlib import Path

from specmoe.errors import ModelError


def sha256_of(path: Path) -> str:
    """Return the SHA-256 of a file's bytes, in hex, reading it in pieces."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def link(file: Path, out: Path) -> None:
    """Make `out` a symbolic link to an existing file; raises ModelError if there is none."""
    if not file.is_file():
        raise ModelError(f"no model file {file}; correct its path in the config")
    out.unlink(missing_ok=True)
    out.symlink_to(file.resolve())
