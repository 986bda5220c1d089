"""Write a draft that is constructed for a synthetic target."""

import argparse
from pathlib import Path

from specmoe import errors
from specmoe.config.models import SyntheticDraft
from specmoe.config.parse import parse
from specmoe.config.synthetic_recipe import Recipe
from specmoe.models.synthetic_drafts import write_draft


def main() -> None:
    """Parse the command line and write the draft."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--entry", required=True, help="fields of SyntheticDraft, as JSON")
    parser.add_argument("--target", required=True, help="the target's recipe, as JSON")
    parser.add_argument("--out", required=True, type=Path)
    args = parser.parse_args()
    entry = parse(SyntheticDraft, args.entry)
    write_draft(args.out, parse(Recipe, args.target), entry.method, entry.block_size)


if __name__ == "__main__":
    errors.run(main)
