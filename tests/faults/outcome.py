"""How the workflow ended: with a line of ours, silently, with a traceback, or not at all."""

import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

# A fault is told within a minute on any machine; two cores that are busy otherwise take longer.
LIMIT_S = 300

_OURS = re.compile(r"^\w*Error: .+|^config: .+", re.MULTILINE)
_TRACEBACK = re.compile(r"Traceback \(most recent call last\)|failed in a way it does not foresee")


class Outcome(NamedTuple):
    """The end of a call of snakemake."""

    word: str  # "said", "silent", "traceback", "hang" or "unclear"
    failed: bool
    line: str  # the first line of ours, if there is one
    printed: str


def outcome_of(
    snakefile: Path, folder: Path, environment: Mapping[str, str], *args: str, under=()
) -> Outcome:
    """Run snakemake in a folder, perhaps under another command, and return how it ended."""
    command = [*under, sys.executable, "-m", "snakemake", "--cores", "2"]
    command += ["--snakefile", str(snakefile), "--directory", str(folder), *args]
    caught = {"capture_output": True, "text": True, "check": False}
    try:
        done = subprocess.run(command, **caught, timeout=LIMIT_S, env=os.environ | environment)
    except subprocess.TimeoutExpired as error:
        return Outcome("hang", True, "", str(error.stdout))
    printed = done.stdout + done.stderr
    said = _OURS.search(printed)
    line = said[0] if said else ""
    if _TRACEBACK.search(printed):
        word = "traceback"
    elif done.returncode == 0:
        word = "silent"
    else:
        word = "said" if said else "unclear"
    return Outcome(word, done.returncode != 0, line, printed)
