"""Read answers that were produced anywhere with a draft: what would it have gained on them."""

import argparse
from pathlib import Path

from specmoe import errors
from specmoe.audit.answers_text import describe_answers
from specmoe.engine.reading import read_answers
from specmoe.errors import ConfigError
from specmoe.measure.agreement import Reader

LIMIT_S = 86400.0  # whoever reads many answers is there to stop it


def main() -> None:
    """Parse the command line, read the answers, print the rounds of every draft length."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draft", type=Path, nargs="?", help="GGUF")
    parser.add_argument("--answers", type=Path, nargs="?", help="JSON lines of token ids or texts")
    parser.add_argument("--program", required=True, type=Path, help="read_agreement")
    parser.add_argument("--threads", required=True, type=int)
    parser.add_argument("--gpu-layers", required=True, type=int)
    parser.add_argument("--log", required=True, type=Path, help="of the program")
    args = parser.parse_args()
    if args.draft is None or args.answers is None:
        raise ConfigError("give both files: --config draft=DRAFT.gguf answers=ANSWERS.jsonl")
    texts = read_answers(args.answers)
    reader = Reader(args.program, args.draft, args.log, LIMIT_S, args.threads, args.gpu_layers, {})
    print(describe_answers(reader.read(texts)), end="")


if __name__ == "__main__":
    errors.run(main)
