"""Count how often each kind of interval holds a planted truth, and how often advice is wrong.

Usage: python tests/benchmarks/interval_coverage.py [--times 1000] [--only TABLE ...]

A benchmark, not a test: it judges nothing, and takes minutes. The tables:

kinds      the share of 95 % intervals of each kind that hold the truth, in percent
answers    how often answers of `advise` are wrong, and how often right, in percent; writes the rows
           of the supplement's table, `paper/answers.tex`
"""

import argparse
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from itertools import product
from pathlib import Path
from sys import path as module_path

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
module_path[:0] = [str(ROOT), str(ROOT / "workflow/scripts")]

from tests.simulated_speedups import World, held, right_answers, wrong_answers  # noqa: E402

SEED = 1
ANSWERS = ROOT / "paper/answers.tex"


def main() -> None:
    """Parse the command line and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", type=int, default=1000, help="campaigns of each kind")
    parser.add_argument("--only", nargs="+", choices=TABLES, default=list(TABLES), metavar="TABLE")
    args = parser.parse_args()
    for name in args.only:
        TABLES[name](args.times)


def print_kinds(times: int) -> None:
    """Print how often each kind of interval holds the truth."""
    print("block prompt blocks prompts settings")
    for numbers in product((0.01, 0.05), (0.1, 0.3), (3, 5), (5, 20), (8, 29)):
        shares = held(World(*numbers, session=0.0), times=times, seed=SEED)
        words = (f"{kind} {100 * share:.1f}" for kind, share in shares.items())
        print(*numbers, *words, sep=" | ", flush=True)


def print_answers(times: int) -> None:
    """Write the rows of the supplement's table."""
    rows = []
    with ProcessPoolExecutor() as pool:
        asked = product((3, 5), (5, 12, 20), (8, 29))
        for row in pool.map(partial(answers_row, times=times), *zip(*asked, strict=True)):
            rows.append(row)
            print(row, flush=True)
    ANSWERS.write_text("\n".join([*rows, ""]))


def answers_row(blocks: int, prompts: int, settings: int, times: int) -> str:
    """Return a row of the supplement's table: whole campaigns, and behind a stroke in stages."""
    worlds = [
        World(block, prompt, blocks, prompts, settings)
        for block, prompt in product((0.01, 0.05), (0.1, 0.3))
    ]
    columns = [str(one) for one in (blocks, prompts, settings)]
    for staged in (False, True):
        asked = partial(wrong_answers, times=times, seed=SEED, staged=staged)
        wrong = np.max([asked(world) for world in worlds], axis=0)
        columns += [f"{100 * count / times:.1f}" for count in wrong]
        found = {
            speedup: np.mean(
                [
                    right_answers(world, speedup, times=times, seed=SEED, staged=staged)
                    for world in worlds
                ],
                axis=0,
            )
            for speedup in (0.9, 1.1, 1.2)
        }
        columns += [f"{100 * right[0] / times:.0f}" for right in found.values()]
    columns += [f"{count:.1f}" for count in found[1.2][1:]]
    return " & ".join(columns) + r" \\"


TABLES = {
    "kinds": print_kinds,
    "answers": print_answers,
}


if __name__ == "__main__":
    main()
