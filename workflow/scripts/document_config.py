"""Write the configuration's reference: the key tables of config/README.md, config/schema.json."""

import argparse
from pathlib import Path

from specmoe import errors
from specmoe.config.reference import json_schema, with_key_tables

FOLDER = Path(__file__).parents[2] / "config"


def main() -> None:
    """Write both files; the command line has no options."""
    argparse.ArgumentParser(description=__doc__).parse_args()
    readme = FOLDER / "README.md"
    readme.write_text(with_key_tables(readme.read_text()))
    (FOLDER / "schema.json").write_text(json_schema())


if __name__ == "__main__":
    errors.run(main)
