"""Write a draft that is constructed for a synthetic target."""

from pathlib import Path

from specmoe.command_line import script
from specmoe.config.models import SyntheticDraft
from specmoe.config.parse import parse
from specmoe.config.synthetic_recipe import Recipe
from specmoe.models.synthetic_drafts import write_draft


@script
def main(entry: str, target: str, out: Path) -> None:
    entry = parse(SyntheticDraft, entry)
    write_draft(out, parse(Recipe, target), entry.method, entry.block_size)
