"""A finished campaign packed: the files from which it is rendered, with its configuration."""

import json
import shutil
from collections.abc import Iterable
from pathlib import Path

from specmoe.files import read_record
from specmoe.runs.manifest import write_manifest

# Editors check the file by it, here and in resources/campaigns/<campaign>/.
SCHEMA = "# yaml-language-server: $schema=../../../config/schema.json"


def pack_campaign(
    campaign: Path,
    files: Iterable[Path],
    engines: Iterable[Path],
    divergences: Iterable[Path],
    out: Path,
) -> None:
    """Pack a campaign into a folder; `campaign` is its campaign.json, `engines` are engine.json."""
    (out / "divergences").mkdir(parents=True)
    for file in files:
        shutil.copy(file, out)
    for file in divergences:
        shutil.copy(file, out / "divergences")
    described = [read_record(file) for file in engines]
    (out / "engines.json").write_text(json.dumps(described, indent=1) + "\n")
    config = read_record(campaign)
    config["campaign"]["source"] = "cached"
    # JSON is YAML, and so a file for --configfile.
    (out / "campaign.yaml").write_text(f"{SCHEMA}\n{json.dumps(config, indent=1)}\n")
    write_manifest(out)
