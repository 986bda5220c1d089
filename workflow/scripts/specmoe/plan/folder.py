"""The folder that snakemake works in: whether it can, and locks that nobody holds any more."""

import fcntl
import os
import sys
from contextlib import suppress
from pathlib import Path

from specmoe.errors import ConfigError
from specmoe.files import free_bytes, gigabytes

LOCKS = Path(".snakemake/locks")
"""Where snakemake lists what its processes read and write."""
LEAST_BYTES = 2**21


def check_folder(root: Path) -> None:
    """Raise ConfigError if snakemake cannot work here with the workflow of the folder `root`."""
    if {"{", "}"} & set(str(root)):
        raise ConfigError(f"{root} has braces, by which snakemake names wildcards; rename it")
    for place in filter(os.path.exists, (".", ".snakemake", "results", "paper")):
        if not Path(place).is_dir():
            raise ConfigError(f"{place} is a file where a folder belongs; move it away")
        if not os.access(place, os.W_OK):
            raise ConfigError(
                f"{Path(place).absolute()} is another user's, or write-protected; give a folder of"
                " your own: --directory"
            )
    if (free := free_bytes(Path())) < LEAST_BYTES:
        raise ConfigError(
            f"the disk of {Path.cwd()} has {gigabytes(free)} free, less than snakemake's own notes"
            " may need; make room, or give a folder on another disk: --directory"
        )
    if (encoding := sys.getfilesystemencoding()) != "utf-8":
        raise ConfigError(
            f"this locale's texts are {encoding}, and labels may have any character; export"
            " PYTHONUTF8=1"
        )


def drop_other_packages() -> None:
    """Forget PYTHONPATH, here and in jobs: what is there may be of other versions.

    Not where snakemake itself is there.
    """
    theirs = [place for place in os.environ.get("PYTHONPATH", "").split(os.pathsep) if place]
    if not any(Path(place, "snakemake").is_dir() for place in theirs):
        os.environ.pop("PYTHONPATH", None)
        sys.path[:] = [place for place in sys.path if place not in theirs]


def drop_stale_locks(locks: Path = LOCKS) -> None:
    """Delete the locks of a snakemake that was killed, so that the same command goes on.

    Each process holds a share of the folder of locks until it ends, however it ends. One that can
    have it for itself is alone, and what it finds there is stale. Where the file system has no
    such locks, nothing is deleted.
    """
    with suppress(OSError):
        locks.mkdir(parents=True, exist_ok=True)
        share = os.open(locks, os.O_RDONLY)  # stays open
        with suppress(BlockingIOError):
            fcntl.flock(share, fcntl.LOCK_EX | fcntl.LOCK_NB)
            for lock in locks.iterdir():
                lock.unlink()
        fcntl.flock(share, fcntl.LOCK_SH | fcntl.LOCK_NB)
