"""Files of rendered campaigns, and an engine as if built here, for tests of the workflow."""

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

from specmoe.config.engines import Backend, PypiEngine
from specmoe.engine.identity import engine_id

ENTRY = {"source": "pypi", "version": "0.0.1", "sha256": "0" * 64, "commit": "0123456"}


def pages(pdf: Path) -> int:
    """Return how many pages a PDF file has."""
    done = subprocess.run(["pdfinfo", str(pdf)], capture_output=True, text=True, check=True)
    return int(re.search(r"^Pages: +(\d+)$", done.stdout, re.MULTILINE)[1])


def built_from_source(config: dict[str, Any], folder: Path, engine_bin: Path) -> None:
    """Let a campaign in a folder take the tests' engine for one that was built there."""
    config["engines"]["built"] = ENTRY
    built = folder / "results/engines" / engine_id("built", Backend.CPU, PypiEngine(**ENTRY), {})
    built.mkdir(parents=True)
    for part in engine_bin.parent.iterdir():
        (built / part.name).symlink_to(part)
    own, description = built / "engine.json", engine_bin.parent / "engine.json"
    own.unlink()
    own.write_text(json.dumps(json.loads(description.read_text()) | {"id": built.name}))
    shutil.copystat(description, own)  # or the programs beside it would be built again
