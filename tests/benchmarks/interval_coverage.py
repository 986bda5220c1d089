"""Count how often each kind of interval holds a planted truth, and how often advice is wrong.

Usage: python tests/benchmarks/interval_coverage.py [--times 1000] [--only TABLE ...] [--estimate]

A benchmark, not a test: it judges nothing, and takes minutes. Spreads are those of the shipped
campaigns (`tests/planted_speedups.py`); errors of blocks are normal, or Student's with 3 degrees of
freedom. The tables:

speedups   the share of 95 % intervals that hold the truth, in percent, with their mean half width
           of the logarithm; the last two are joint intervals, which have to hold all at once
answers    the share of campaigns in which an answer of `advise` is wrong, in percent, see
           `planted_speedups.Errors`: the rows of the supplement's table
costs      intervals of the cost model, from runs with noise of 5 % and a drift of as much between
           repeats
unlike     joint intervals of settings that spread unlike each other
predicted  intervals of speedups that readings and timed passes predict
disturbed  the advised speedup where the machine slowed some runs down: its bias and coverage with
           all pairs, without the disturbed ones, and then with blocks compared at the same prompts
marks      the same where the audit marks pairs by their speed: without their prompts in all
           repeats, and by the rule of `analysis.sound_prompts`

--estimate prints the spreads of the shipped rows instead.
"""

import argparse
import math
from collections.abc import Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import astuple
from functools import partial
from itertools import product
from pathlib import Path
from sys import path as module_path

import numpy as np
import pandas as pd

ROOT = Path(__file__).resolve().parents[2]
module_path[:0] = [str(ROOT), str(ROOT / "workflow/scripts")]

from tests.planted_disturbances import (  # noqa: E402
    SPREAD,
    Cells,
    Found,
    disturbed,
    marked,
    simulate,
)
from tests.planted_speedups import (  # noqa: E402
    KINDS,
    SPREADS,
    Coverage,
    cover,
    errors,
    estimated_spread,
)
from tests.unit import simulated_rounds  # noqa: E402

from specmoe.analysis.cost_tables import (  # noqa: E402
    break_even,
    fit_pairs,
    round_costs,
    verification,
)
from specmoe.analysis.gamma_curves import gamma_curves  # noqa: E402
from specmoe.analysis.intervals import Estimate, joint_quantile, student_quantile  # noqa: E402
from specmoe.analysis.summaries import with_speedups  # noqa: E402
from specmoe.audit.reading import readings_of  # noqa: E402
from specmoe.config.schema import Statistics  # noqa: E402
from specmoe.runs.schema import read_runs  # noqa: E402

REPEATS = (3, 5, 10)
SETTINGS = (1, 2, 6, 8)
TAILS = (None, 3)
SEED = 1


def main() -> None:
    """Parse the command line and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", type=int, default=1000, help="campaigns of each kind")
    parser.add_argument("--only", nargs="+", choices=TABLES, default=list(TABLES), metavar="TABLE")
    parser.add_argument("--estimate", action="store_true")
    args = parser.parse_args()
    if args.estimate:
        print_estimates()
        return
    for name in args.only:
        TABLES[name](args.times)


def print_speedups(times: int) -> None:
    """Print how often intervals of speedups hold the planted one."""
    kinds = product(SPREADS, TAILS, REPEATS, SETTINGS)
    asked = [(*kind, times, SEED + number) for number, kind in enumerate(kinds)]
    print(" | ".join(["spread      ", "tails ", "repeats", "settings", *KINDS]))
    with ProcessPoolExecutor() as pool:
        for row in pool.map(speedup_row, *zip(*asked, strict=True)):
            print(row, flush=True)


def speedup_row(
    spread: str, tails: int | None, repeats: int, settings: int, times: int, seed: int
) -> str:
    """Return a line of the table of speedups."""
    covered = cover(SPREADS[spread], repeats, settings, tails=tails, times=times, seed=seed)
    return " | ".join(
        [
            f"{spread:12}",
            f"{'normal' if tails is None else f't, {tails}':6}",
            f"{repeats:7}",
            f"{settings:8}",
            *(shown(covered[kind]).rjust(len(kind)) for kind in KINDS),
        ]
    )


def shown(coverage: Coverage) -> str:
    """Return a share in percent, and the half width."""
    if not coverage.count:
        return "-"
    return f"{100 * coverage.share:.1f} ±{coverage.half_width:.2f}"


def print_answers(times: int) -> None:
    """Print how often each answer is given where it is wrong."""
    asked = [
        *product(("synthetic D", "synthetic B"), (4, 50), (1,)),
        *product(("synthetic D",), (4, 50), (6,)),
    ]
    with ProcessPoolExecutor() as pool:
        for row in pool.map(partial(answers_row, times=times), *zip(*asked, strict=True)):
            print(row, flush=True)


def answers_row(spread: str, prompts: int, settings: int, times: int) -> str:
    """Return a row of the supplement's table."""
    planted = SPREADS[spread]
    found = errors(planted, prompts, settings, times=times, seed=SEED)
    spreads = (f"{100 * sd:.0f}" for sd in (planted.block, planted.prompt))
    shares = (f"{100 * wrong / times:.1f}" for wrong in astuple(found))
    return " & ".join([*spreads, str(prompts), str(settings), *shares]) + r" \\"


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
    drafting = round_costs(fitted).set_index("gamma").loc[4]
    pays = break_even(fitted, runs.iloc[:0]).set_index("gamma").loc[4]
    rows = [passes.loc[5], passes.loc[17], drafting, pays, pays]
    names = ["steps", "steps", "draft_steps", "ceiling", "break_even"]
    return [
        Estimate(row[name], *row[[f"{name}_low", f"{name}_high"]].fillna(math.inf))
        for row, name in zip(rows, names, strict=True)
    ]


def print_unlike(times: int) -> None:
    """Print how often joint intervals fail if settings spread unlike, the worst of many cases."""
    generator = np.random.default_rng(SEED)
    print(
        "\njoint intervals of unlike settings, worst of 75 cases: repeats settings quantile"
        " (Bonferroni's) failures (%)"
    )
    for repeats, settings in product((2, 3, 4, 5, 10), (2, 4, 6, 8, 12, 24)):
        quantile = joint_quantile(repeats - 1, settings, 0.95)
        worst = 0.0
        for wide in sorted({1, 2, settings // 4 or 1, settings // 2, settings - 1}):
            for ratio, shared in product((0.1, 0.3, 0.5, 0.7, 1.0), (0.0, 0.9, 0.99)):
                spread = np.where(np.arange(settings) < wide, 1.0, ratio)
                common = generator.standard_normal((times, repeats, 1))
                own = generator.standard_normal((times, repeats, settings))
                errors = (math.sqrt(shared) * common + math.sqrt(1 - shared) * own) * spread
                variances = errors.var(axis=1, ddof=1)
                larger = np.maximum(variances, variances.mean(axis=1, keepdims=True))
                out = np.abs(errors.mean(axis=1)) > quantile * np.sqrt(larger / repeats)
                worst = max(worst, float(out.any(axis=1).mean()))
        bonferroni = student_quantile(repeats - 1, 1 - 0.05 / settings)
        line = f"{repeats:3}{settings:4}{quantile:8.2f} ({bonferroni:.2f}) {100 * worst:5.1f}"
        print(line, flush=True)


def print_disturbed(times: int) -> None:
    """Print what is advised where 5 % of the runs were slowed down, see `planted_disturbances`."""
    print(f"\nrepeats prompts slowed {ADVISED_OF_PLANTED}")
    ways = ["all pairs", "pairs out, plain", "pairs out"]
    for repeats, prompts, factor in product((3, 10), (4, 24), (1.5, 3.0)):
        plant = partial(disturbed, share=0.05, factor=factor)
        of_ways = simulate(plant, ways, repeats=repeats, prompts=prompts, times=times, seed=SEED)
        print_found(f"{repeats:7} {prompts:7} {factor:6.1f}", of_ways)


def print_marks(times: int) -> None:
    """Print what is advised where the audit marks pairs by their speed."""
    print(f"\nmarked, share (%), repeats {ADVISED_OF_PLANTED}")
    ways = ["all pairs", "prompts out", "the rule"]
    for of, share, repeats in product(("fast", "slow", "fast prompts"), (0.002, 0.01), (3, 10)):

        def plant(
            _: np.random.Generator, cells: Cells, of: str = of, share: float = share
        ) -> Cells:
            return marked(cells, share=share, of=of, spread=SPREAD)

        of_ways = simulate(plant, ways, repeats=repeats, prompts=24, times=times, seed=SEED)
        print_found(f"{of:12} {100 * share:4.1f} {repeats:3}", of_ways)


ADVISED_OF_PLANTED = "| way | bias (%), held (%), half width, useless on (%), nothing left (%)"


def print_found(case: str, of_ways: Mapping[str, Found]) -> None:
    """Print a line for each way of leaving pairs out."""
    for way, found in of_ways.items():
        known = f"{100 * found.bias:7.1f} {100 * found.coverage:7.1f} {found.half_width:7.3f}"
        shares = (100 * count / found.count for count in (found.on, found.none))
        print(f"{case} | {way:16} {known}", *(f"{share:7.1f}" for share in shares), flush=True)


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
    "speedups": print_speedups,
    "answers": print_answers,
    "costs": print_costs,
    "unlike": lambda times: print_unlike(5 * times),
    "predicted": print_predicted,
    "disturbed": lambda times: print_disturbed(times // 2),
    "marks": lambda times: print_marks(times // 2),
}


def print_estimates() -> None:
    """Print the spread of each suite of the shipped campaigns."""
    for folder in sorted((ROOT / "resources/campaigns").iterdir()):
        compared = with_speedups(read_runs(folder / "runs.parquet"))
        for suite, members in compared.groupby("suite"):
            spread = estimated_spread(members)
            values = (spread.block, spread.shared, spread.prompt, spread.rest)
            words = ", ".join(
                f"{name} {value:.2f}"
                for name, value in zip(("block", "shared", "prompt", "rest"), values, strict=True)
            )
            print(f"{folder.name} {suite}: {words}")


if __name__ == "__main__":
    main()
