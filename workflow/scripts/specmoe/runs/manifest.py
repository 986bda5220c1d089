"""The files of a packed campaign with their digests, so that a reader finds what changed.

Whoever wants to vouch for a campaign signs this one file.
"""

from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from specmoe.errors import DamagedFileError
from specmoe.files import replace_text, sha256_of

NAME = "manifest.json"
# SHA-256 by path in the folder.
_DIGESTS = TypeAdapter(dict[str, str])


def packed_files(folder: Path) -> list[Path]:
    """Return all files of a packed campaign but its manifest, in order."""
    return sorted(file for file in folder.rglob("*") if file.is_file() and file.name != NAME)


def write_manifest(folder: Path) -> None:
    """Write the digests of all files in a folder."""
    files = packed_files(folder)
    digests = {file.relative_to(folder).as_posix(): sha256_of(file) for file in files}
    replace_text(folder / NAME, _DIGESTS.dump_json(digests, indent=1).decode() + "\n")


def check_manifest(manifest: Path) -> None:
    """Make sure that the files beside a manifest are those that it names.

    Raises DamagedFileError with the first that is not.
    """
    again = "get the packed campaign again, or pack it again"
    try:
        digests = _DIGESTS.validate_json(manifest.read_bytes())
    except (OSError, ValidationError) as error:
        raise DamagedFileError(f"{manifest} is no list of files; {again}") from error
    for name, digest in digests.items():
        file = manifest.parent / name
        if not file.is_file():
            raise DamagedFileError(f"{file} is missing, and {NAME} names it; {again}")
        if sha256_of(file) != digest:
            raise DamagedFileError(f"{file} is not the file that {NAME} names; {again}")
