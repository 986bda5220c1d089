"""Download a model from the hub, verify it and link it into place."""

import argparse
from pathlib import Path

from specmoe import errors
from specmoe.config.models import HubModel
from specmoe.files import link, replace_text
from specmoe.models.hub import fetch
from specmoe.plan.fit import check_room


def main() -> None:
    """Parse the command line and fetch the model."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--entry", required=True, help="the model's entry in the config, as JSON")
    parser.add_argument("--lock", required=True, type=Path, help="digests of first downloads")
    parser.add_argument("--trust", required=True, help="config or first-use")
    parser.add_argument("--plan", required=True, type=Path, help="plan.json, if it exists")
    parser.add_argument("--room", required=True, help="checked or ignored")
    parser.add_argument("--out", required=True, type=Path)
    parser.add_argument("--digests", required=True, type=Path, help="as sha256sum writes them")
    args = parser.parse_args()
    check_room(args.plan, args.room)
    model = HubModel.model_validate_json(args.entry)
    parts = fetch(model, args.lock, args.trust)
    links = link(parts[0].path, args.out)
    lines = [f"{part.sha256}  {name.name}\n" for part, name in zip(parts, links, strict=True)]
    replace_text(args.digests, "".join(lines))


if __name__ == "__main__":
    errors.run(main)
