"""Cut a draft from a model: its first layers, with its embedding, norm and head."""

from pathlib import Path

from specmoe.command_line import script
from specmoe.models.truncate import truncate


@script
def main(source: Path, layers: int, out: Path) -> None:
    truncate(source, layers, out)
