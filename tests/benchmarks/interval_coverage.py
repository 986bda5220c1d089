"""Count how often each kind of interval holds a planted truth, and how often advice is wrong.

Usage: python tests/benchmarks/interval_coverage.py [--times 1000] [--only TABLE ...]

A benchmark, not a test: it judges nothing, and takes minutes. The tables:

kinds      the share of 95 % intervals of each kind that hold the truth, in percent
answers    how often answers of `advise` are wrong, and how often right, in percent; writes the rows
           of the supplement's table, `paper/answers.tex`
costs      intervals of the cost model, from runs with noise of 5 % and a drift of as much between
           repeats
predicted  intervals of speedups that readings and timed passes predict
"""

import argparse
import math
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import product
from pathlib import Path
from sys import path as module_path

import numpy as np
import pandas as pd

ROOT = Path(__file__).resolve().parents[2]
module_path[:0] = [str(ROOT), str(ROOT / "workflow/scripts")]

from tests.planted_speedups import World, held, right_answers, wrong_answers  # noqa: E402
from tests.unit import simulated_rounds  # noqa: E402

from specmoe.analysis.cost_tables import (  # noqa: E402
    break_even,
    fit_pairs,
    verification,
)
from specmoe.analysis.gamma_curves import gamma_curves  # noqa: E402
from specmoe.analysis.intervals import Estimate  # noqa: E402
from specmoe.analysis.summaries import with_speedups  # noqa: E402
from specmoe.audit.reading import readings_of  # noqa: E402
from specmoe.config.measurement import Statistics  # noqa: E402

REPEATS = (3, 5, 10)
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


@dataclass
class Coverage:
    """How often intervals held the truth, and how wide they are."""

    held: int = 0
    count: int = 0
    widths: float = 0.0

    def add(self, interval: Iterable[float], truth: float) -> None:
        """Count an interval, given the truth."""
        low, high = interval
        self.held += bool(low <= truth <= high)
        self.count += 1
        self.widths += math.log(high / low) / 2 if low > 0 and high < math.inf else math.nan

    @property
    def share(self) -> float:
        """The share that held the truth."""
        return self.held / self.count

    @property
    def half_width(self) -> float:
        """The mean half width, of the logarithm."""
        return self.widths / self.count


def shown(coverage: Coverage) -> str:
    """Return a share in percent, and the half width."""
    if not coverage.count:
        return "-"
    return f"{100 * coverage.share:.1f} ±{coverage.half_width:.2f}"


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
    cells = [str(one) for one in (blocks, prompts, settings)]
    for staged in (False, True):
        asked = partial(wrong_answers, times=times, seed=SEED, staged=staged)
        wrong = np.max([asked(world) for world in worlds], axis=0)
        cells += [f"{100 * count / times:.1f}" for count in wrong]
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
        cells += [f"{100 * right[0] / times:.0f}" for right in found.values()]
    cells += [f"{count:.1f}" for count in found[1.2][1:]]
    return " & ".join(cells) + r" \\"


COSTS = ["pass v(5)", "pass v(17)", "drafted c(4)", "ceiling at 4", "break-even at 4"]
NOISE = 0.05


def print_costs(times: int) -> None:
    """Print how often intervals of the cost model hold what it finds without noise."""
    print("\nrepeats | " + " | ".join(COSTS))
    with ProcessPoolExecutor() as pool:
        for row in pool.map(cost_row, REPEATS, [times] * len(REPEATS)):
            print(row, flush=True)


def cost_row(repeats: int, times: int) -> str:
    """Return a line of the table of costs."""
    generator = np.random.default_rng(SEED)
    truth = cost_estimates(generator, repeats, 0.0)
    covered = [Coverage() for _ in COSTS]
    for _ in range(times):
        estimates = cost_estimates(generator, repeats, NOISE)
        for one, estimate, true in zip(covered, estimates, truth, strict=True):
            one.add((estimate.low, estimate.high), true.value)
    cells = [shown(one).rjust(len(name)) for name, one in zip(COSTS, covered, strict=True)]
    return " | ".join([f"{repeats:7}", *cells])


def cost_estimates(generator: np.random.Generator, repeats: int, noise: float) -> list[Estimate]:
    """Return the values named in COSTS."""
    runs = simulated_rounds.frame(
        simulated_rounds.imposed(repeats=repeats, noise=noise, drift=noise, generator=generator)
    )
    times = simulated_rounds.pass_times(repeats=repeats, noise=noise, generator=generator)
    fitted = fit_pairs(with_speedups(runs), runs, times, Statistics())
    passes = verification(fitted, {}, None, 0).set_index("width")
    drafting = passes.loc[5]
    pays = break_even(fitted, runs.iloc[:0]).set_index("gamma").loc[4]
    rows = [passes.loc[5], passes.loc[17], drafting, pays, pays]
    names = ["steps", "steps", "draft_steps", "ceiling", "break_even"]
    return [
        Estimate(row[name], *row[[f"{name}_low", f"{name}_high"]].fillna(math.inf))
        for row, name in zip(rows, names, strict=True)
    ]


def print_predicted(times: int) -> None:
    """Print how often a predicted speedup's interval holds the measured one."""
    generator = np.random.default_rng(SEED)
    print("\nrepeats of passes, noise of passes, error of the prediction, held (%)")
    for repeats, noise, error in product((1, 3), (0.02, 0.08), (0.04, 0.08, 0.12)):
        held = predictions_held(repeats, noise=noise, error=error, times=times, generator=generator)
        print(f"{repeats} {noise:.2f} {error:.2f} {100 * held:6.1f}", flush=True)


def predictions_held(
    repeats: int, *, noise: float, error: float, times: int, generator: np.random.Generator
) -> float:
    """Return how often the interval of a predicted speedup holds the measured one.

    Passes are timed in so many repeats with a noise, and what rounds take beside them moves the
    measured speedup by an error; both are deviations of a logarithm.
    """
    agrees = list(np.random.default_rng(3).random(simulated_rounds.N_PREDICT) < 0.75)
    runs = simulated_rounds.frame(simulated_rounds.agreed("B", "moe_q4", (4,), agrees))
    readings = readings_of(simulated_rounds.agreement("moe_q4", agrees))

    def predicted(passes: pd.DataFrame) -> pd.Series:
        tables = gamma_curves(with_speedups(runs), runs, readings, [], passes, Statistics())
        return tables["gamma_curves"].set_index("gamma").loc[4]

    truth = predicted(simulated_rounds.pass_times())["predicted"]
    held = 0
    for _ in range(times):
        measured = truth * math.exp(error * generator.standard_normal())
        passes = simulated_rounds.pass_times(repeats=repeats, noise=noise, generator=generator)
        found = predicted(passes)
        held += found["predicted_low"] <= measured <= found["predicted_high"]
    return held / times


TABLES = {
    "kinds": print_kinds,
    "answers": print_answers,
    "costs": print_costs,
    "predicted": print_predicted,
}


if __name__ == "__main__":
    main()
