"""Simulation of rules that exclude disturbed runs, with loads planted on recorded runs.

Prints, by rule, over all loads: the coverage of the interval of a setting's mean (nine pairs, four
settings, Student's t), its width over that if every run counts, and the share of settings that
lose their interval. Arguments: folders with `runs.parquet`, else two shipped campaigns.
"""

from itertools import product
from pathlib import Path
from sys import argv
from sys import path as module_path

import numpy as np
import pandas as pd
from scipy.stats import t as student

ROOT = Path(__file__).resolve().parents[2]
module_path.insert(0, str(ROOT / "workflow/scripts"))

from specmoe.analysis.summaries import SETTING  # noqa: E402
from specmoe.engine.disturbance import WAIT_SHARE  # noqa: E402
from specmoe.runs.schema import USUAL, read_runs  # noqa: E402

TIMES, PAIRS, SETTINGS = 2000, 9, 4
# A quantile of the machine's waits, and how much more is excluded.
RULES = {"no rule": (0, 1), "every disturbed run": (0, 0), "the package's": (USUAL, WAIT_SHARE)}
RULES |= {"twice its limit": (USUAL, 2 * WAIT_SHARE), "by the median": (0.5, 2 * WAIT_SHARE)}
# The share of the runs that a load hits, the share that it takes of them, and of which settings.
LOADS = [(0, 0, 4), (0.1, 0.12, 4), *product((0.1, 0.25, 0.35, 0.5), [0.3], [4])]
LOADS += [*product((0.2, 0.4), (0.12, 0.2), [1]), (0.2, 0.3, 1), (0.4, 0.4, 1)]


def recorded(folder: Path) -> np.ndarray:
    """Return a campaign's runs: how far the log of the speed is from its setting's, and waiting."""
    runs = read_runs(folder / "runs.parquet").dropna(subset=["wait_share", "tokens_per_second"])
    log = np.log(runs["tokens_per_second"].astype(float))
    own = log.groupby([runs[name] for name in [*SETTING, "prompt", "level"]], dropna=False)
    count = own.transform("size")
    rest = (log - own.transform("mean")) * np.sqrt(count / (count - 1).clip(lower=1))
    return np.stack([rest, runs["wait_share"]])[:, count >= 3]


random, found = np.random.default_rng(1), []
shipped = [ROOT / "resources/campaigns" / name for name in ("demo", "methods")]
for pool in map(recorded, map(Path, argv[1:] or shipped)):
    for (share, took, settings), _ in product(LOADS, range(TIMES)):
        log, waits = pool[:, random.integers(pool.shape[1], size=(2, SETTINGS, PAIRS))]
        hit = random.random(waits.shape) < share
        if settings == 1:  # the first one, and not its baseline
            hit[0] = hit[:, 1:] = False
        taken = hit * took * random.uniform(0.6, 1.4, waits.shape)
        ratio, waits = np.diff(log + np.log1p(-taken), axis=0)[0, 0], np.maximum(waits, taken)
        for rule, (quantile, more) in RULES.items():
            beyond = waits - (np.quantile(waits, quantile) if quantile else 0) > more
            kept = ratio[~(beyond & (waits > WAIT_SHARE))[:, 0].any(axis=0)]
            reach = np.nan
            if len(kept) > 1:
                reach = student.ppf(0.975, len(kept) - 1) * kept.std(ddof=1) / len(kept) ** 0.5
            held = abs(kept.mean()) <= reach if len(kept) > 1 else np.nan
            found.append((id(pool), share, took, settings, rule, held, reach, len(kept) < 2))
world = ["pool", "share", "took", "settings"]
table = pd.DataFrame(found, columns=[*world, "rule", "coverage", "width", "lost"])
means = table.astype({"coverage": float}).groupby([*world, "rule"], sort=False).mean()
means["width"] /= means["width"].groupby(world).transform("first")
by_rule = means.groupby("rule", sort=False)
print(by_rule.agg({"coverage": ["min", "max"], "width": "mean", "lost": "max"}).round(3))
