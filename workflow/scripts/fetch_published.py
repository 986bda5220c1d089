"""Get the published study's rows: download them or take a local file, and check their digest."""

import argparse
from pathlib import Path

from specmoe import errors
from specmoe.config.schema import Published
from specmoe.runs.download import download


def main() -> None:
    """Parse the command line and get the file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--entry", required=True, help="config section `published`, as JSON")
    parser.add_argument("--out", required=True, type=Path)
    args = parser.parse_args()
    entry = Published.model_validate_json(args.entry)
    source = entry.file or f"https://github.com/{entry.repository}/raw/{entry.commit}/{entry.path}"
    download(source, entry.sha256, args.out)


if __name__ == "__main__":
    errors.run(main)
