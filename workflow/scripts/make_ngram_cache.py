"""Make a file of n-grams from a text with the engine's llama-lookup-create, and its card."""

import argparse
import json
from pathlib import Path

from specmoe import errors
from specmoe.engine.ngram_cache import describe_ngram_cache, make_ngram_cache
from specmoe.models.card import load_card


def main() -> None:
    """Parse the command line and make the file and its card."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--engine", required=True, type=Path, help="engine.json")
    parser.add_argument("--tokenizer", required=True, type=Path, help="a model with the vocabulary")
    parser.add_argument("--tokenizer-card", required=True, type=Path)
    parser.add_argument("--text", required=True, type=Path)
    parser.add_argument("--out", required=True, type=Path)
    parser.add_argument("--card", required=True, type=Path)
    parser.add_argument("--log", required=True, type=Path, help="the tool's output")
    args = parser.parse_args()
    binaries = args.engine.parent / "bin"
    make_ngram_cache(binaries, args.tokenizer, args.text, args.out, args.log)
    card = describe_ngram_cache(args.out, load_card(args.tokenizer_card))
    args.card.write_text(json.dumps(card, indent=1) + "\n")


if __name__ == "__main__":
    errors.run(main)
