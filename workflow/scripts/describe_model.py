"""Read a model file back, check what it is, and write it down."""

import argparse
import json
from dataclasses import asdict
from pathlib import Path

from specmoe import errors
from specmoe.config.models import Family
from specmoe.files import digest_of_parts
from specmoe.models.gguf import check_family, read_card


def main() -> None:
    """Parse the command line and write the model's card."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", required=True, type=Path)
    parser.add_argument("--digests", type=Path, help="of its parts, where they are known already")
    parser.add_argument("--family", help="what the config says of its network, as JSON")
    parser.add_argument("--out", required=True, type=Path)
    args = parser.parse_args()
    card = read_card(args.model, known_digest(args.digests) if args.digests else None)
    if args.family:
        check_family(card, Family.model_validate_json(args.family), args.model)
    args.out.write_text(json.dumps(asdict(card), indent=1) + "\n")


def known_digest(digests: Path) -> str:
    """Return the digest of a model whose parts' digests are in a file, one a line."""
    return digest_of_parts([line.split()[0] for line in digests.read_text().splitlines()])


if __name__ == "__main__":
    errors.run(main)
