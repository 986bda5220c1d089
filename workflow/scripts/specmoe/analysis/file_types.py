"""One network in files of several types: whether more bytes a pass mean a larger gain."""

from collections.abc import Mapping

import numpy as np
import pandas as pd

from specmoe.analysis.intervals import ratio_of_speedups
from specmoe.analysis.summaries import CELL
from specmoe.config.schema import Statistics

_SETTING = ["suite", "network", "draft", "gamma"]


def compare_types(
    cells: pd.DataFrame,
    compared: pd.DataFrame,
    networks: Mapping[str, str],
    pass_bytes: Mapping[str, float],
    settings: Statistics,
) -> pd.DataFrame:
    """Return the cells of networks that a suite measured as targets in files of several sizes.

    `cells` is `summarise_cells(compared)`, `networks` names each model's network, `pass_bytes` are
    the bytes that a pass over one token of each model reads. Rows are in order of these bytes
    within each suite, network, draft and γ. Columns added to those of the cells:

    - network, pass_bytes.
    - gain_ratio: the speedup over that of the file which reads the fewest bytes; gain_ratio_low,
      gain_ratio_high: its interval, null for that file itself, or with a single block.
    """
    if cells.empty:
        return cells
    cells = cells.assign(
        network=cells["target"].map(networks), pass_bytes=cells["target"].map(pass_bytes)
    )
    sizes = cells.groupby(_SETTING)["pass_bytes"].transform("nunique")
    cells = cells[sizes > 1].sort_values([*_SETTING, "pass_bytes"], ignore_index=True)
    runs = dict(list(compared.groupby(CELL)))
    ratios = []
    for _, members in cells.groupby(_SETTING):
        keys = list(members[CELL].itertuples(index=False, name=None))
        ratios += [(1.0, np.nan, np.nan)]
        ratios += [
            ratio_of_speedups(runs[key], runs[keys[0]], settings.confidence) for key in keys[1:]
        ]
    columns = ["gain_ratio", "gain_ratio_low", "gain_ratio_high"]
    return cells.join(pd.DataFrame(ratios, columns=columns, dtype=float))
