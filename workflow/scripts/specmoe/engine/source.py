"""llama.cpp's sources: fetched, checked, and unpacked."""

import logging
import subprocess
import tarfile
import tempfile
from pathlib import Path

from specmoe.config.engines import GitEngine, PypiEngine
from specmoe.engine.process import run_build_tool
from specmoe.errors import EngineError
from specmoe.models.package import download

PYPI_PACKAGE = "llama-cpp-python"
PYPI_PART = "/vendor/llama.cpp/"

_logger = logging.getLogger(__name__)


def fetch(engine: PypiEngine | GitEngine, work: Path, output: int) -> Path:
    """Return the folder of llama.cpp's sources in `work`, fetched unless it has this commit.

    The file `output` receives what the tools print. Raises EngineError, and DownloadError for a
    source distribution that cannot be downloaded.
    """
    source = work / f"source-{engine.commit}"
    if not source.exists():
        _logger.info("fetching llama.cpp %s", engine.commit)
        with tempfile.TemporaryDirectory(dir=work) as scratch:
            if isinstance(engine, PypiEngine):
                fetched = _fetch_pypi(engine, Path(scratch), output)
            else:
                fetched = _fetch_git(engine, Path(scratch), output)
            fetched.rename(source)
    return source


def _fetch_pypi(engine: PypiEngine, folder: Path, output: int) -> Path:
    pinned = PYPI_PACKAGE, engine.version, engine.sha256
    archive = download("source distribution", *pinned, folder, output)
    unpack(archive, folder, PYPI_PART)
    [unpacked] = folder.glob("*/vendor/llama.cpp")
    return unpacked


def unpack(archive: Path, folder: Path, part: str) -> None:
    """Unpack the files and folders of a tar archive whose names contain `part`.

    Raises EngineError for a name that leads out of `folder`. Python's own check (`filter="data"`)
    came with 3.11.4, and Debian 12 has 3.11.2.
    """
    inside = folder.resolve()
    with tarfile.open(archive) as tar:
        for member in tar:
            if part not in member.name or not (member.isfile() or member.isdir()):
                continue
            if not (inside / member.name).resolve().is_relative_to(inside):
                raise EngineError(f"{archive.name} holds {member.name!r}, which leads out of it")
            member.mode = 0o755 if member.isdir() or member.mode & 0o100 else 0o644
            tar.extract(member, inside, set_attrs=True)


def _fetch_git(engine: GitEngine, folder: Path, output: int) -> Path:
    clone = folder / "clone"
    command = ["git", "clone", "--depth", "1", "--branch", engine.tag, "--", engine.url, str(clone)]
    run_build_tool(command, output, f"{engine.url} could not be cloned")
    head = subprocess.run(
        ["git", "-C", str(clone), "rev-parse", "HEAD"], capture_output=True, text=True, check=True
    ).stdout.strip()
    if not head.startswith(engine.commit):
        raise EngineError(
            f"tag {engine.tag} of {engine.url} is commit {head}, the config says {engine.commit}"
        )
    return clone
