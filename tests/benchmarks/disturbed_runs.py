"""Simulation of rules that exclude disturbed runs, with loads planted on recorded runs.

Prints, by rule, over all loads: the least coverage of an interval of a setting's mean (nine pairs,
four settings, Student's t), its mean width over that if every run counts, and the most settings
that lose so many pairs that they have no interval. Arguments: folders with `runs.parquet`.
"""

import argparse
from pathlib import Path
from sys import path as module_path

import numpy as np
import pandas as pd
from scipy.stats import t as student

ROOT = Path(__file__).resolve().parents[2]
module_path.insert(0, str(ROOT / "workflow/scripts"))

from specmoe.analysis.summaries import SETTING  # noqa: E402
from specmoe.engine.disturbance import WAIT_SHARE  # noqa: E402
from specmoe.runs.schema import USUAL, read_runs  # noqa: E402

SHIPPED = [ROOT / "resources/campaigns" / name for name in ("demo", "methods")]
SETTINGS, PAIRS = 4, 9
RULES = {  # a quantile of the machine's waits, and how much more is excluded
    "every run counts": None,
    "every disturbed run is excluded": (0, 0),
    f"quantile {USUAL} and the limit, the package's": (USUAL, WAIT_SHARE),
    f"quantile {USUAL} and twice the limit": (USUAL, 2 * WAIT_SHARE),
    "median and twice the limit": (0.5, 2 * WAIT_SHARE),
    "quantile 0.9 and the limit": (0.9, WAIT_SHARE),
}
# Share of the runs that a load hits, the share that it takes of them, and whether it hits any run
# or those of one setting alone.
LOADS = [(0, 0, False), (0.1, 0.12, False)]
LOADS += [(hit, 0.3, False) for hit in (0.1, 0.25, 0.35, 0.5)]
LOADS += [(hit, took, True) for hit, took in [(0.2, 0.12), (0.4, 0.12), (0.2, 0.2), (0.4, 0.2)]]
LOADS += [(0.2, 0.3, True), (0.4, 0.4, True)]


def recorded(folder: Path) -> np.ndarray:
    """Return a campaign's runs: how far the log of the speed is from its setting's, and waiting."""
    runs = read_runs(folder / "runs.parquet").dropna(subset=["wait_share", "tokens_per_second"])
    log = np.log(runs["tokens_per_second"].astype(float))
    own = log.groupby([runs[name] for name in [*SETTING, "prompt", "level"]], dropna=False)
    count = own.transform("size")
    rest = (log - own.transform("mean")) * np.sqrt(count / (count - 1).clip(lower=1))
    return np.stack([rest, runs["wait_share"]], axis=1)[count >= 3]


def simulate(
    pool: np.ndarray, load: tuple[float, float, bool], times: int, random: np.random.Generator
) -> pd.DataFrame:
    """Return, by rule, how often the interval holds the truth, its width, and how many are lost."""
    share, took, one_setting = load
    found = []
    for _ in range(times):
        drawn = pool[random.integers(len(pool), size=(2, SETTINGS, PAIRS))]
        log, waits = np.moveaxis(drawn, -1, 0)
        hit = random.random(waits.shape) < share
        if one_setting:
            hit[0] = hit[:, 1:] = False
        taken = hit * took * random.uniform(0.6, 1.4, waits.shape)
        log, waits = log + np.log1p(-taken), np.maximum(waits, taken)
        for rule, given in RULES.items():
            kept = np.ones(waits.shape, dtype=bool)
            if given is not None:
                usual = np.quantile(waits, given[0]) if given[0] else 0
                kept = (waits <= WAIT_SHARE) | (waits - usual <= given[1])
            # Of the first setting, the one that is hit where only one is.
            ratio = (log[1] - log[0])[0][kept.all(axis=0)[0]]
            if len(ratio) < 2:
                found.append((rule, np.nan, np.nan, 1))
                continue
            error = ratio.std(ddof=1) / np.sqrt(len(ratio))
            reach = student.ppf(0.975, len(ratio) - 1) * error
            found.append((rule, float(abs(ratio.mean()) <= reach), reach, 0))
    table = pd.DataFrame(found, columns=["rule", "coverage", "reach", "lost"])
    return table.groupby("rule", sort=False).mean()


def main() -> None:
    """Print the table of all campaigns and loads."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folders", nargs="*", type=Path, default=SHIPPED)
    parser.add_argument("--times", type=int, default=2000)
    given, random, tables = parser.parse_args(), np.random.default_rng(1), []
    for folder in given.folders:
        for load in LOADS:
            table = simulate(recorded(folder), load, given.times, random)
            tables.append(table.assign(reach=table["reach"] / table["reach"].iloc[0]))
    whole = pd.concat(tables).groupby("rule", sort=False)
    print(whole.agg({"coverage": ["min", "max"], "reach": "mean", "lost": "max"}).round(3))


if __name__ == "__main__":
    main()
