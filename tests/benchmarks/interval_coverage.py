"""Count how often advice is wrong on simulated targets: rows of the supplement's table.

Usage: python tests/benchmarks/interval_coverage.py [--times 1000]

A benchmark, not a test: it judges nothing, and takes minutes. It writes `paper/answers.tex`: how
often answers of `advise` are wrong, and how often right, in percent.
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

from tests.simulated_speedups import World, right_answers, wrong_answers  # noqa: E402

SEED = 1
ANSWERS = ROOT / "paper/answers.tex"


def main() -> None:
    """Parse the command line, and print and write the rows."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", type=int, default=1000, help="campaigns of each kind")
    times = parser.parse_args().times
    sizes = zip(*product((3, 5), (5, 12, 20), (8, 29)), strict=True)
    rows = []
    with ProcessPoolExecutor() as pool:
        for row in pool.map(partial(answers_row, times=times), *sizes):
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
        count = partial(wrong_answers, times=times, seed=SEED, staged=staged)
        wrong = np.max([count(world) for world in worlds], axis=0)
        columns += [f"{100 * one / times:.1f}" for one in wrong]
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
    columns += [f"{measured:.1f}" for measured in found[1.2][1:]]
    return " & ".join(columns) + r" \\"


if __name__ == "__main__":
    main()
