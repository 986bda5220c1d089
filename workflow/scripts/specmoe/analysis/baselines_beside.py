"""The A/A control: baselines beside one setting over those beside the others of the same target.

Where each setting has baseline runs of its own, those of one prompt in one block differ in nothing
but what was measured before them. So their ratio must be 1: else the order of runs, or what a
setting leaves behind it in the machine, is in the speedups.
"""

import math

import numpy as np
import pandas as pd

from specmoe.analysis.intervals import mean_speedup, moderated
from specmoe.analysis.state import with_other_baselines
from specmoe.analysis.summaries import SETTING
from specmoe.config.block import MEASURED_BY, Protocol
from specmoe.config.schema import Statistics

TOLERANCE = 0.02
"""A ratio that surely differs from 1 by more fails: a fifth of the gain that is worth having
(`decision.LITTLE`), as the speedups of the setting are wrong by just as much."""


def baselines_beside(pairs: pd.DataFrame, statistics: Statistics) -> pd.DataFrame:
    """Return the table `baselines_beside` of the pairs that count at the campaign's conditions."""
    own = with_other_baselines(pairs[pairs["protocol"] == Protocol.PAIRED])
    own = own.drop_duplicates([*SETTING, "baseline"]).drop_duplicates("baseline", keep=False)
    found = own.assign(speedup=np.exp(own["own"] - own["other"]))
    rows = []
    for _, of_target in found.groupby("target"):
        settings = dict(iter(of_target.groupby([*MEASURED_BY, *SETTING])))
        means = moderated([*map(mean_speedup, settings.values())])
        for (key, its), mean in zip(settings.items(), means, strict=True):
            low, high = mean.interval(statistics.confidence, len(settings))
            rows.append(
                dict(zip([*MEASURED_BY, *SETTING], key, strict=True))
                | {"runs": len(its), "blocks": its["block"].nunique()}
                | {"ratio": math.exp(mean.log), "ratio_low": low, "ratio_high": high}
                | {"failed": low > 1 + TOLERANCE or high < 1 / (1 + TOLERANCE)}
            )
    return pd.DataFrame(rows)
