"""Claim `paper/` for a campaign, and keep what is rendered there of another one."""

import argparse
from pathlib import Path

from specmoe import errors
from specmoe.paper.rendered import claim


def main() -> None:
    """Parse the command line, keep what another campaign has rendered, and say so."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--campaign", required=True)
    parser.add_argument("--results", required=True, type=Path, help="folder of all campaigns")
    parser.add_argument("--out", required=True, type=Path, help="file that names the campaign")
    args = parser.parse_args()
    kept = claim(args.out, args.campaign, args.results)
    if kept:
        print(
            f"{args.out.parent}/ now holds campaign {args.campaign}; what was rendered there of"
            f" campaign {kept.parent.name} is kept in {kept}"
        )


if __name__ == "__main__":
    errors.run(main)
