"""Link a user's model file into place."""

from pathlib import Path

from specmoe.command_line import script
from specmoe.files import link


@script
def main(path: Path, out: Path) -> None:
    link(path, out)
