"""Quantize a model with the engine's llama-quantize."""

import argparse
from pathlib import Path

from specmoe import errors
from specmoe.models.converter import quantize


def main() -> None:
    """Parse the command line and quantize the model."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--engine", required=True, type=Path, help="engine.json")
    parser.add_argument("--source", required=True, type=Path)
    parser.add_argument("--type", required=True, help="as llama-quantize names it, e.g. Q4_K_M")
    parser.add_argument("--imatrix", type=Path, help="importance matrix")
    parser.add_argument("--out", required=True, type=Path)
    parser.add_argument("--log", required=True, type=Path, help="llama-quantize's output")
    args = parser.parse_args()
    binaries = args.engine.parent / "bin"
    quantize(binaries, args.source, args.out, args.type, args.log, args.imatrix)


if __name__ == "__main__":
    errors.run(main)
