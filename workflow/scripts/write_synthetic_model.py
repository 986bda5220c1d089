"""Write a model with random weights."""

import argparse
from pathlib import Path

from specmoe import errors
from specmoe.config.parse import parse
from specmoe.config.synthetic_recipe import Recipe
from specmoe.models.synthetic import write_model


def main() -> None:
    """Parse the command line and write the model."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--recipe", required=True, help="fields of Recipe, as JSON")
    parser.add_argument("--out", required=True, type=Path)
    args = parser.parse_args()
    write_model(args.out, parse(Recipe, args.recipe))


if __name__ == "__main__":
    errors.run(main)
