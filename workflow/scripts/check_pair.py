"""Make sure that a draft fits its target: its vocabulary, and what its methods need."""

import argparse
from pathlib import Path

from specmoe import errors
from specmoe.config.methods import Method, is_ngram
from specmoe.config.models import NgramCache
from specmoe.files import named_if_damaged, read_record
from specmoe.models.card import load_card
from specmoe.models.drafting import check_fit
from specmoe.models.gguf import check_same_vocabulary
from specmoe.models.gguf_header import read_header


def main() -> None:
    """Parse the command line and compare the two; the files are read only if the cards differ."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--target", required=True, type=Path, help="GGUF")
    parser.add_argument("--target-card", required=True, type=Path, help="its card")
    parser.add_argument("--draft", required=True, type=Path, help="GGUF, or a file of n-grams")
    parser.add_argument("--draft-card", required=True, type=Path, help="its card")
    parser.add_argument("--out", required=True, type=Path, help="made if they agree")
    parser.add_argument("--methods", required=True, nargs="+", type=Method, help="it drafts by")
    args = parser.parse_args()
    target_vocabulary = load_card(args.target_card).vocabulary_sha256
    if target_vocabulary != vocabulary_of(args.draft, args.draft_card):
        check_same_vocabulary(args.target, args.draft)
    for method in args.methods:
        if not is_ngram(method):
            check_fit(read_header(args.target), read_header(args.draft), method, args.draft)
    args.out.touch()


def vocabulary_of(draft: Path, card: Path) -> str | None:
    """Return the digest of a draft's vocabulary; a file of n-grams has a card of its own kind."""
    if draft.suffix != NgramCache.suffix:
        return load_card(card).vocabulary_sha256
    with named_if_damaged(card):
        digest: str | None = read_record(card)["vocabulary_sha256"]
    return digest


if __name__ == "__main__":
    errors.run(main)
