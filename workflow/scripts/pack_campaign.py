"""Pack the files of a finished campaign, with a configuration that renders it."""

import json
import shutil
from pathlib import Path

from specmoe.command_line import script
from specmoe.files import read_record
from specmoe.runs.manifest import write_manifest

# Editors check the file by it, here and in resources/campaigns/<campaign>/.
SCHEMA = "# yaml-language-server: $schema=../../../config/schema.json"


@script
def main(
    config: Path,
    files: tuple[Path, ...],
    engines: tuple[Path, ...],
    out: Path,
    divergences: tuple[Path, ...] = (),
) -> None:
    (out / "divergences").mkdir(parents=True)
    for file in files:
        shutil.copy(file, out)
    for file in divergences:
        shutil.copy(file, out / "divergences")
    engines = [read_record(file) for file in engines]
    (out / "engines.json").write_text(json.dumps(engines, indent=1) + "\n")
    config = read_record(config)
    config["campaign"]["source"] = "cached"
    # JSON is YAML, and so a file for --configfile.
    text = f"{SCHEMA}\n{json.dumps(config, indent=1)}\n"
    (out / "campaign.yaml").write_text(text)
    write_manifest(out)
