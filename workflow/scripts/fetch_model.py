"""Download a model from the hub, verify it and link it into place."""

from pathlib import Path

from specmoe.command_line import script
from specmoe.config.models import HubModel
from specmoe.files import link, replace_text
from specmoe.models.hub import fetch
from specmoe.plan.fit import check_room


@script
def main(
    entry: str, lock: Path, trust: str, plan: Path, room: str, out: Path, digests: Path
) -> None:
    check_room(plan, room)
    model = HubModel.model_validate_json(entry)
    parts = fetch(model, lock, trust)
    links = link(parts[0].path, out)
    lines = [f"{part.sha256}  {name.name}\n" for part, name in zip(parts, links, strict=True)]
    replace_text(digests, "".join(lines))
