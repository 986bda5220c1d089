"""Write a model with random weights."""

from pathlib import Path

from specmoe.command_line import script
from specmoe.config.parse import parse
from specmoe.config.synthetic_recipe import Recipe
from specmoe.models.synthetic import write_model


@script
def main(recipe: str, out: Path) -> None:
    write_model(out, parse(Recipe, recipe))
