"""Read a model file back, check what it is, and write it down."""

import argparse
from dataclasses import replace
from pathlib import Path

from specmoe import errors
from specmoe.config.models import Family
from specmoe.files import digest_of_parts
from specmoe.measure.file_state import remember
from specmoe.models.card import save_card
from specmoe.models.gguf import check_digest, check_family, describe_clock, read_card


def main() -> None:
    """Parse the command line and write the model's card."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", required=True, type=Path)
    parser.add_argument("--digests", type=Path, help="of its parts if known, one a line")
    parser.add_argument("--sha256", nargs="+", help="of its parts, as the config says")
    parser.add_argument("--family", help="what the config says of its network, as JSON")
    parser.add_argument("--origin", default="", help="where it is from, for its card")
    parser.add_argument("--licence", default="", help="of its weights, for its card")
    parser.add_argument("--out", required=True, type=Path)
    args = parser.parse_args()
    digest = None
    if args.digests:
        lines = args.digests.read_text().splitlines()
        digest = digest_of_parts([line.split()[0] for line in lines])
    card = read_card(args.model, digest)
    if args.sha256:
        check_digest(card, digest_of_parts(args.sha256), args.model)
    if args.family:
        check_family(card, Family.model_validate_json(args.family), args.model)
    save_card(replace(card, origin=args.origin, licence=args.licence), args.out)
    remember(args.model, str(card.sha256))
    if clock := describe_clock(args.model):
        print(clock)


if __name__ == "__main__":
    errors.run(main)
