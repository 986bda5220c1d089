"""Say whether to switch speculative decoding on, for each target of a campaign."""

import argparse
import json
from pathlib import Path

from specmoe import errors
from specmoe.analysis.advice_text import advice_values, describe_advice
from specmoe.analysis.registry import Analysis
from specmoe.files import replace_text


def main() -> None:
    """Parse the command line, print the advice and write it as JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--analysis", required=True, type=Path, help="folder of the analysis")
    parser.add_argument("--out", required=True, type=Path, help="the advice as JSON")
    args = parser.parse_args()
    analysis = Analysis.read(args.analysis)
    replace_text(args.out, json.dumps(advice_values(analysis), indent=1, allow_nan=False) + "\n")
    print(describe_advice(analysis), end="")


if __name__ == "__main__":
    errors.run(main)
