"""Make sure that a model's weights are numbers before anything is measured with them."""

import argparse
import json
from pathlib import Path

from specmoe import errors
from specmoe.engine.tensor_check import check_tensors


def main() -> None:
    """Parse the command line and let the engine read every tensor."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--engine", required=True, type=Path, help="engine.json")
    parser.add_argument("--model", required=True, type=Path, help="GGUF")
    parser.add_argument("--environment", required=True, type=json.loads, help="JSON")
    parser.add_argument("--limit-s", required=True, type=float)
    parser.add_argument("--log", required=True, type=Path)
    parser.add_argument("--out", required=True, type=Path, help="made if they are")
    args = parser.parse_args()
    server = args.engine.parent / "bin/llama-server"
    check_tensors(server, args.model, args.log, args.limit_s, args.environment)
    args.out.touch()


if __name__ == "__main__":
    errors.run(main)
