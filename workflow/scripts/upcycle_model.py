"""Make an MoE of equal experts from a dense model."""

from pathlib import Path

from specmoe.command_line import script
from specmoe.config.models import UpcycleModel
from specmoe.models.upcycle import upcycle


@script
def main(entry: str, source: Path, out: Path) -> None:
    upcycle(source, UpcycleModel.model_validate_json(entry), out)
