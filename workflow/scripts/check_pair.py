"""Make sure that a draft speaks its target's vocabulary."""

import argparse
from pathlib import Path

from specmoe import errors
from specmoe.models.card import load_card
from specmoe.models.gguf import check_same_vocabulary


def main() -> None:
    """Parse the command line and compare the two; the files are read only if the cards differ."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--target", required=True, type=Path, help="GGUF")
    parser.add_argument("--target-card", required=True, type=Path, help="its card")
    parser.add_argument("--draft", required=True, type=Path, help="GGUF")
    parser.add_argument("--draft-card", required=True, type=Path, help="its card")
    parser.add_argument("--out", required=True, type=Path, help="made if they agree")
    args = parser.parse_args()
    target, draft = load_card(args.target_card), load_card(args.draft_card)
    if target.vocabulary_sha256 != draft.vocabulary_sha256:
        check_same_vocabulary(args.target, args.draft)
    args.out.touch()


if __name__ == "__main__":
    errors.run(main)
