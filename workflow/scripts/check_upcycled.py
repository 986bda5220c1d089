"""Make sure that an upcycled model computes what its dense model does before it is measured."""

import argparse
import json
from collections.abc import Sequence
from pathlib import Path

from specmoe import errors
from specmoe.engine.machine_id import physical_cores
from specmoe.engine.server import Server, server_command
from specmoe.files import engine_path
from specmoe.measure.upcycled import CONTEXT, check_upcycled
from specmoe.models.card import load_card


def main() -> None:
    """Parse the command line, read a text with both models, write down how far they agree."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--engine", required=True, type=Path, help="engine.json")
    parser.add_argument("--source", required=True, type=Path, help="GGUF of the dense model")
    parser.add_argument("--model", required=True, type=Path, help="GGUF of the upcycled model")
    parser.add_argument("--card", required=True, type=Path, help="of the upcycled model")
    parser.add_argument("--text", required=True, type=Path, help="its start is the prompt")
    parser.add_argument("--environment", required=True, type=json.loads, help="JSON")
    parser.add_argument("--gpu-layers", required=True, type=int)
    parser.add_argument("--start-limit-s", required=True, type=float)
    parser.add_argument("--run-limit-s", required=True, type=float)
    parser.add_argument("--log", required=True, type=Path, help="of each server, one after another")
    parser.add_argument("--out", required=True, type=Path)
    args = parser.parse_args()

    def start(model: Path, words: Sequence[str]) -> Server:
        command = server_command(
            args.engine.parent / "bin/llama-server",
            engine_path(model),
            context=CONTEXT,
            threads=physical_cores(),
            gpu_layers=args.gpu_layers,
            extra_args=words,
        )
        limits = args.start_limit_s, args.run_limit_s
        return Server(command, args.log, *limits, args.environment)

    text = args.text.read_text(encoding="utf-8")
    card = load_card(args.card)
    found = check_upcycled(start, args.source, args.model, card, text)
    args.out.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    errors.run(main)
