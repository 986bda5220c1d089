"""Pack the files of a finished campaign, with a configuration that renders it."""

import argparse
import json
import shutil
import tomllib
from pathlib import Path

from specmoe import errors
from specmoe.files import read_record
from specmoe.runs.crate import seal

# Editors check the file by it, here and in resources/campaigns/<campaign>/.
SCHEMA = "# yaml-language-server: $schema=../../../config/schema.json"


def main() -> None:
    """Parse the command line, copy the files and write the configuration."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--config", required=True, type=Path, help="the campaign's config.json")
    parser.add_argument("--files", required=True, type=Path, nargs="+")
    parser.add_argument("--engines", required=True, type=Path, nargs="+", help="engine.json each")
    parser.add_argument("--divergences", type=Path, nargs="*", default=[], help="judged, by target")
    parser.add_argument("--project", required=True, type=Path, help="specmoe's pyproject.toml")
    parser.add_argument("--out", required=True, type=Path, help="folder")
    args = parser.parse_args()
    (args.out / "divergences").mkdir(parents=True)
    for file in args.files:
        shutil.copy(file, args.out)
    for file in args.divergences:
        shutil.copy(file, args.out / "divergences")
    engines = [read_record(file) for file in args.engines]
    (args.out / "engines.json").write_text(json.dumps(engines, indent=1) + "\n")
    config = read_record(args.config)
    config["campaign"]["source"] = "cached"
    # JSON is YAML, and so a file for --configfile.
    text = f"{SCHEMA}\n{json.dumps(config, indent=1)}\n"
    (args.out / "campaign.yaml").write_text(text)
    seal(args.out, tomllib.loads(args.project.read_text(encoding="utf-8"))["project"])


if __name__ == "__main__":
    errors.run(main)
