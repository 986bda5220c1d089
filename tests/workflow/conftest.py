"""What the files and verdicts of rendered campaigns are, for tests of the workflow."""

import re
import subprocess
from pathlib import Path

import pandas as pd


def pages(pdf: Path) -> int:
    """Return how many pages a PDF file has."""
    done = subprocess.run(["pdfinfo", str(pdf)], capture_output=True, text=True, check=True)
    return int(re.search(r"^Pages: +(\d+)$", done.stdout, re.MULTILINE)[1])


def files_of(folder: Path) -> dict[Path, bytes]:
    """Return the contents of a folder's files, by path in the folder."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    return {path.relative_to(folder): path.read_bytes() for path in files}


# What the audit says of the shipped demo, by checks that use counts and tokens, and no times.
SOUND = {
    ("accounting", "pass"): 498,
    ("determinism", "pass"): 498,
    ("failed_decodes", "pass"): 498,
    ("losslessness", "not applicable"): 204,  # runs without a draft
    ("losslessness", "pass"): 294,
}


def untimed_verdicts(campaign: Path) -> dict[tuple[str, str], int]:
    """Return the number of runs of a campaign for each verdict of the checks of `SOUND`."""
    audit = pd.read_parquet(campaign / "audit/audit.parquet")
    untimed = audit[audit["check"].isin({check for check, _ in SOUND})]
    counts: dict[tuple[str, str], int] = untimed[["check", "verdict"]].value_counts().to_dict()
    return counts
