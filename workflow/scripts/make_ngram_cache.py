"""Make a file of n-grams from a text with the engine's llama-lookup-create, and its card."""

import json
from pathlib import Path

from specmoe.command_line import script
from specmoe.engine.ngram_cache import describe_ngram_cache, make_ngram_cache
from specmoe.models.card import load_card


@script
def main(
    engine: Path,
    tokenizer: Path,
    tokenizer_card: Path,
    text: Path,
    out: Path,
    card: Path,
    log: Path,
) -> None:
    make_ngram_cache(engine.parent / "bin", tokenizer, text, out, log)
    facts = describe_ngram_cache(out, load_card(tokenizer_card))
    card.write_text(json.dumps(facts, indent=1) + "\n")
