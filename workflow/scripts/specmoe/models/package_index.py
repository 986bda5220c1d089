"""Files of packages of the Python package index, which pip downloads and does not install."""

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Final, Literal

from specmoe.config.environment import build_environment
from specmoe.errors import DownloadError

# What pip prints, and the reason in our words; the first match counts.
_REASONS: Final = (
    (
        # pip's last line of progress before the digest, or what later versions say at once.
        r" ([\d.]+)/(?!\1 )([\d.]+ \w+)[^\n]*\n\s*ERROR: THESE|received \(([^/]+)/([^)]+)\)",
        "interrupted: {0} of {1} came; the same command downloads it again",
    ),
    (
        # The index announces the digest that the config names, so the file is not another one.
        r"#sha256=([0-9a-f]{64})\b[\s\S]*?Expected sha256 \1\s+Got",
        "damaged on the way; the same command downloads it again",
    ),
    (
        r"DO NOT MATCH THE HASHES[\s\S]*?Got +([0-9a-f]{64})",
        "another file than the config names: SHA-256 {0}; correct the version or the digest",
    ),
    (r"No space left on device", "the disk of {folder} is full; make room and run again"),
    (
        r"connection broken by|Failed to establish|TimeoutError|timed out|Could not fetch URL"
        r"|ConnectionError|SSLError|ProxyError",
        "the package index cannot be reached; check the network, the proxy and pip's own settings",
    ),
    (
        r"No matching distribution found",
        "pip finds no such package or version, or no {kind} that fits this Python; correct them, or"
        " name an index that has them (PIP_INDEX_URL)",
    ),
    (r"No module named pip", "this Python has no pip; install it with `python -m ensurepip`"),
)


Kind = Literal["source distribution", "wheel"]
"""What to download of a package."""


def download(
    kind: Kind, package: str, version: str, sha256: str, folder: Path, output: int
) -> Path:
    """Download one file of a package into an empty folder, and return its path.

    pip checks the digest. The file `output` receives what it prints. Raises DownloadError, in one
    line, without a network, for a package or version that does not exist, or for another digest.
    """
    requirement = folder / "requirement.txt"
    requirement.write_text(f"{package}=={version} --hash=sha256:{sha256}\n")
    into = folder / "downloaded"
    # `--no-binary :all:` would also build the build tools from source, CMake among them.
    only = ["--only-binary", ":all:"] if kind == "wheel" else ["--no-binary", package]
    command = [sys.executable, "-m", "pip", "download", "--no-deps", *only, "--require-hashes"]
    done = subprocess.run(
        [*command, "--requirement", str(requirement), "--dest", str(into)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        # pip's own copy of the file needs the room that `folder` has.
        env=build_environment(os.environ) | {"TMPDIR": str(folder)},
        check=False,
    )
    os.write(output, done.stdout)
    if done.returncode != 0:
        reason = _reason(done.stdout.decode(errors="replace"), kind, folder)
        raise DownloadError(f"{package} {version}: {reason}")
    [file] = into.iterdir()
    return file


def _reason(printed: str, kind: Kind, folder: Path) -> str:
    for pattern, reason in _REASONS:
        if found := re.search(pattern, printed):
            return reason.format(*filter(None, found.groups()), kind=kind, folder=folder)
    errors = re.findall(r"^ERROR: (.+)$", printed, re.MULTILINE) or ["see its log"]
    return f"pip download failed: {errors[-1]}"
