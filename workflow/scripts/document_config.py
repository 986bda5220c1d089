"""Write the configuration's reference: the key tables of config/README.md, config/schema.json."""

from pathlib import Path

from specmoe.command_line import script
from specmoe.config.reference import json_schema, with_key_tables

FOLDER = Path(__file__).parents[2] / "config"


@script
def main() -> None:
    readme = FOLDER / "README.md"
    readme.write_text(with_key_tables(readme.read_text()))
    (FOLDER / "schema.json").write_text(json_schema())
