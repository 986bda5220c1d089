"""Files of rendered campaigns, for tests of the workflow."""

import re
import subprocess
from pathlib import Path


def pages(pdf: Path) -> int:
    """Return how many pages a PDF file has."""
    done = subprocess.run(["pdfinfo", str(pdf)], capture_output=True, text=True, check=True)
    return int(re.search(r"^Pages: +(\d+)$", done.stdout, re.MULTILINE)[1])


def files_of(folder: Path) -> dict[Path, bytes]:
    """Return the contents of a folder's files, by path in the folder."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    return {path.relative_to(folder): path.read_bytes() for path in files}
