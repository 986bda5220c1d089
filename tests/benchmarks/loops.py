"""Print how well loops are found: misses on planted ones, false alarms on text that people want.

Usage: python tests/benchmarks/loops.py --engine results/engines/ID --model MODEL.gguf
       [--texts 40]

A benchmark, not a test: it judges nothing. MODEL, a chat model, gives the tokens. The tables:

- wanted: pieces of 64 to 512 tokens of files of this repository and of `tests/refrains.yaml`, by
  kind: repeated 4-grams, text in loops (mean and highest), and the share of pieces of which more
  than some share loops: false alarms, if that share were the limit.
- planted: prose that goes over to repeating a few tokens, by length of the text, where the
  loop begins, period, and noise in the loop (tokens replaced, inserted or lost): how much of the
  text was found to loop, and the share of texts in which more than the limit was: the others are
  misses where more was planted, and false alarms where less was.

Nothing is timed, so the machine may be busy.
"""

import argparse
import random
from collections.abc import Iterator, Sequence
from itertools import product
from pathlib import Path
from sys import path as module_path
from tempfile import TemporaryDirectory

import numpy as np
import pandas as pd
import yaml

ROOT = Path(__file__).resolve().parents[2]
module_path.insert(0, str(ROOT / "workflow/scripts"))

from specmoe.audit.repetition import looping, repetition  # noqa: E402
from specmoe.config.audit import AuditSettings  # noqa: E402
from specmoe.engine.machine import physical_cores  # noqa: E402
from specmoe.engine.server import Server, server_command  # noqa: E402

LIMIT = AuditSettings().looping_share
LENGTHS = (64, 128, 256, 512)
LIMITS = (0.1, 0.2, 0.3, 0.5)
PERIODS = (1, 2, 4, 8, 16, 32, 64, 128)
STARTS = (0.0, 0.25, 0.5, 0.75, 0.9)  # where the loop begins, as a share of the text
NOISES = (0.0, 0.01, 0.02, 0.05)  # tokens replaced, inserted or lost in the loop
FILES = {
    "prose": ["resources/prompts/passage.txt", "*.md"],
    "tables in Markdown": ["config/README.md"],
    "Python": ["workflow/scripts/specmoe/*/*.py", "tests/unit/*/*.py"],
    "YAML": ["config/*.yaml", "paper/tables.yaml"],
    "CSV": ["resources/reported/*.csv"],
    "JSON": ["config/schema.json"],
    "pinned versions": ["requirements.txt"],
    "BibTeX": ["paper/references.bib"],
    "LaTeX": ["paper/*.tex"],
    "HTML, CSS, JavaScript": ["paper/site/*.j2", "paper/site/*.css", "paper/site/*.js"],
}

Texts = dict[str, list[list[int]]]  # token ids by kind


def main() -> None:
    """Parse the command line and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--engine", required=True, type=Path, help="its folder, with `bin`")
    parser.add_argument("--model", required=True, type=Path, help="GGUF of a chat model")
    parser.add_argument("--texts", type=int, default=40, help="planted texts of each setting")
    args = parser.parse_args()
    command = server_command(
        args.engine / "bin/llama-server",
        args.model,
        context=4096,
        threads=physical_cores(),
        gpu_layers=0,
    )
    with TemporaryDirectory() as folder, Server(command, Path(folder, "log"), 600, 600) as server:
        texts = wanted(server)
        print_wanted(texts)
        print_planted(texts["prose"], args.texts)


def wanted(server: Server) -> Texts:
    """Return the texts that repeat themselves because someone wants them to."""
    texts = {
        kind: [
            server.tokenize(file.read_text()) for name in names for file in sorted(ROOT.glob(name))
        ]
        for kind, names in FILES.items()
    }
    refrains = yaml.safe_load((ROOT / "tests/refrains.yaml").read_text())
    return texts | {
        f"refrains: {kind}": [server.tokenize(text) for text in named.values()]
        for kind, named in refrains.items()
    }


def pieces(texts: Sequence[list[int]]) -> Iterator[list[int]]:
    """Yield pieces of each length, and what is left of a text if it is not shorter than any."""
    for tokens in texts:
        for length in LENGTHS:
            for start in range(0, len(tokens), length):
                piece = tokens[start : start + length]
                if len(piece) >= min(LENGTHS):
                    yield piece


def print_wanted(texts: Texts) -> None:
    """Print the table of texts that people want."""
    print("wanted\nkind\tpieces\trepeated\tloops\thighest\t" + "\t".join(f">{x}" for x in LIMITS))
    for kind, members in texts.items():
        cut = list(pieces(members))
        shares = np.array([looping(piece) for piece in cut])
        repeated = np.mean([repetition(piece) for piece in cut])
        over = "\t".join(f"{np.mean(shares > limit):.2%}" for limit in LIMITS)
        print(
            f"{kind}\t{len(cut)}\t{repeated:.2f}\t{shares.mean():.3f}\t{shares.max():.2f}\t{over}"
        )


def print_planted(prose: Sequence[list[int]], count: int) -> None:
    """Print what was found of planted loops, by each of their properties."""
    chance = random.Random(0)
    tokens = [token for text in prose for token in text]
    rows = []
    for length, start, period, noise in product(LENGTHS, STARTS, PERIODS, NOISES):
        for _ in range(count):
            share = looping(planted(tokens, length, start, period, noise, chance))
            rows.append((length, start, period, noise, share, share > LIMIT))
    names = ["tokens", "begins at", "period", "noise", "in loops", "over the limit"]
    found = pd.DataFrame(rows, columns=names)
    clean = found[found["noise"] == 0]
    print(f"\nplanted, {count} texts each, limit {LIMIT}")
    for words, value, members, index in (
        ("mean text in loops, without noise", "in loops", clean, ["tokens", "begins at"]),
        ("texts over the limit, without noise", "over the limit", clean, ["tokens", "begins at"]),
        ("mean text in loops, all lengths", "in loops", found, ["begins at", "noise"]),
        ("texts over the limit, all lengths", "over the limit", found, ["begins at", "noise"]),
    ):
        table = members.pivot_table(value, index, "period", aggfunc="mean")
        print(f"\n{words}, by period\n{table.round(2).to_string()}")


def planted(
    tokens: Sequence[int],
    length: int,
    start: float,
    period: int,
    noise: float,
    chance: random.Random,
) -> list[int]:
    """Return a piece of prose that, from `start` on, repeats so many tokens of its own."""
    first = chance.randrange(len(tokens) - length - period)
    begin = first + round(start * length)
    text, turn = list(tokens[first:begin]), tokens[begin : begin + period]
    place = 0
    while len(text) < length:
        token = turn[place % period]
        place += 1
        if chance.random() >= noise:
            text.append(token)
            continue
        kind = chance.randrange(3)
        if kind < 2:  # replaced, or inserted before it
            text.append(chance.choice(tokens))
        if kind == 1:
            text.append(token)
    return text[:length]


if __name__ == "__main__":
    main()
