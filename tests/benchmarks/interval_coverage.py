"""Count how often intervals hold and answers are wrong on simulated targets.

Usage: python tests/benchmarks/interval_coverage.py [--times 2000] [--noise FOLDER]
       python tests/benchmarks/interval_coverage.py --kinds [--times 2000]

A benchmark, not a test: it judges nothing. It prints a row of Markdown for each world, and writes
`paper/answers.tex`, the rows of the supplement's table. Worlds with recorded noise are drawn from
the residuals of shipped campaigns, and from `--noise`, a folder with CSV files of rates: columns
baseline and drafting, in order of time.
"""

import argparse
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from sys import path as module_path

import numpy as np
import pandas as pd

ROOT = Path(__file__).resolve().parents[2]
module_path[:0] = [str(ROOT), str(ROOT / "workflow/scripts")]

from tests import simulated_speedups as simulated  # noqa: E402
from tests.simulated_speedups import WORLDS, World  # noqa: E402

from specmoe.analysis.summaries import SETTING, with_conditions, with_speedups  # noqa: E402
from specmoe.runs.schema import read_runs  # noqa: E402

SEED = 1
MANY = 100  # gains, of which a share is printed
ANSWERS = ROOT / "paper/answers.tex"
SPEEDUPS = (0.8, 0.9, 1.2, 1.3)
REPEATS = (1, 2, 3, 6)
# The speedups of the best setting on each kind of prompts; in the first two they are alike.
KINDS = {"1.0": [1.0] * 5, "1.1": [1.1] * 5}
KINDS |= {"1.3 once": [1.3, *[0.8] * 4], "1.3 twice": [1.3, 1.3, *[0.8] * 3]}
KINDS |= {"2.0 once": [2.0, *[0.8] * 4]}
OF_KINDS = ("quiet", "as usual", "noisy", "prompts differ", "1 setting")
HEADS = [
    *("world", "these prompts", "like these", "best of these", "best of like these"),
    *("on", "gain", "no gain", *map(str, SPEEDUPS), "repeats"),
]


def main() -> None:
    """Parse the command line, and print and write the rows."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", type=int, default=2000, help="targets of each kind")
    parser.add_argument("--noise", type=Path, help="folder of recorded rates")
    parser.add_argument("--kinds", action="store_true", help="how often it is on by kind")
    given = parser.parse_args()
    if given.kinds:
        for name in OF_KINDS:
            print(" | ".join(row_of_kinds(name, given.times)), flush=True)
        return
    worlds = dict(WORLDS)
    for folder in sorted((ROOT / "resources/campaigns").iterdir()):
        if recorded := [*residuals(folder)]:  # of several repeats
            worlds[f"runs of {folder.name}"] = World(recorded=recorded)
    if given.noise:
        worlds["recorded noise"] = World(recorded=[*series(given.noise, World.settings)])
    print(" | ".join(HEADS))
    print(" | ".join(["---"] * len(HEADS)))
    rows = []
    with ProcessPoolExecutor() as pool:
        for row in pool.map(partial(row_of, times=given.times), worlds, worlds.values()):
            rows.append(" & ".join(row).replace("%", r"\,\%").replace(r" \,", r"\,") + r" \\")
            print(" | ".join(row), flush=True)
    ANSWERS.write_text("\n".join([*rows, ""]))


def row_of_kinds(name: str, times: int) -> list[str]:
    """Return a world's row: the shares that are *on by kind*, and the fewest gains that hold."""
    how, cells, least = {"times": times, "seed": SEED}, [name], 1.0
    for speedups in KINDS.values():
        found = [
            simulated.found_by_kind(WORLDS[name], speedups, one, **how) for one in (1, 2, 3, 5)
        ]
        cells.append(" ".join(f"{100 * said:.1f}" for said, _ in found))
        least = min([least, *(held for said, held in found if said * times >= MANY)])
    return [*cells, f"{100 * least:.1f}"]


def row_of(name: str, world: World, times: int) -> list[str]:
    """Return a world's row: coverage, wrong and right answers, and repeats at 1.2."""
    how = {"times": times, "seed": SEED}
    shares = [simulated.held(world, repeats, **how) for repeats in REPEATS]
    # After one repeat these prompts have the wider interval of prompts like these.
    kinds = [*shares[0]]
    lowest = [min(one[kind] for one in shares) for kind in (kinds[0], kinds[2], *kinds[1::2])]
    columns = [name, *(f"{100 * share:.1f}" for share in lowest)]
    wrong = simulated.wrong_answers(world, **how)
    columns += [f"{100 * wrong[kind]:.1f}" for kind in ("on", "gain", "no gain")]
    right = [simulated.right_answers(world, one, **how) for one in SPEEDUPS]
    columns += [f"{100 * found[0]:.0f}" for found in right]
    columns.append(f"{right[SPEEDUPS.index(1.2)][1]:.1f}")
    return columns


def residuals(folder: Path) -> Iterator[np.ndarray]:
    """Return what the runs of each target's settings differ by from the mean of their prompt.

    Those of a setting are in order of time. Where the settings of a target have runs in different
    numbers, those of most count.
    """
    pairs = with_speedups(with_conditions(read_runs(folder / "runs.parquet")))
    pairs = pairs[pairs["paired"].astype(bool)].assign(log=lambda own: np.log(own["speedup"]))
    keys = [*SETTING, "condition", "forced_acceptance"]
    cells = pairs.groupby([*keys, "prompt"], dropna=False)["log"]
    count = cells.transform("size")
    pairs["off"] = (pairs["log"] - cells.transform("mean")) * np.sqrt(count / (count - 1))
    pairs = pairs[count > 1].sort_values("started_at")
    for _, own in pairs.groupby(["suite", "target"]):
        rows = [one["off"].to_numpy(float) for _, one in own.groupby(keys, dropna=False)]
        longest = max(map(len, rows))
        yield np.array([one for one in rows if len(one) == longest])


def series(folder: Path, settings: int) -> Iterator[np.ndarray]:
    """Return recorded speedups by file, as so many settings meet them one after the other."""
    for file in sorted(folder.glob("*.csv")):
        rates = pd.read_csv(file)
        logs = np.log(rates["drafting"] / rates["baseline"]).to_numpy()
        places = np.add.outer(np.arange(settings), settings * np.arange(len(logs)))
        yield (logs - logs.mean())[places % len(logs)]


if __name__ == "__main__":
    main()
