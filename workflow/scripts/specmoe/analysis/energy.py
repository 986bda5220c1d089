"""Joules a token, with a draft and without, on machines that count what they use."""

import numpy as np
import pandas as pd

from specmoe.analysis.summaries import CELL, mean_ratio
from specmoe.config.block import MEASURED_BY
from specmoe.config.schema import Statistics


def energy_of_cells(cells: pd.DataFrame, runs: pd.DataFrame, settings: Statistics) -> pd.DataFrame:
    """Return the cells whose runs and baselines all have their energy; without rows if none has.

    `cells` is `summarise_cells`'s frame of `runs`. A run's energy includes that of reading its
    prompt and of the idle machine, and so does its baseline's.
    Columns: those of the cell, protocol, engine, control; energy_source (what was counted); runs,
    blocks; joules_per_token and baseline_joules_per_token (means over runs); energy_ratio (the
    geometric mean of the first over the second, as of a speedup) with energy_ratio_low and
    energy_ratio_high, null with a single block; idle_w (mean idle power, in watts) and idle_share
    (of the energy: what the idle machine would have used in the same time), null if unknown.
    """
    if cells.empty:
        return pd.DataFrame()
    by_run = runs.set_index("run")
    energy = by_run["energy_j"].astype(float) / by_run["generated"].astype(float)
    compared = runs.assign(
        joules=runs["run"].map(energy),
        baseline_joules=runs["baseline"].map(energy),
        idle_j=runs["idle_w"] * (runs["prompt_ms"] + runs["decode_ms"]).astype(float) / 1000,
    )
    compared["energy_ratio"] = compared["joules"] / compared["baseline_joules"]
    members_of = dict(iter(compared.groupby(CELL)))
    rows = []
    for cell in cells.to_dict("records"):
        members = members_of[tuple(cell[key] for key in CELL)]
        if not np.isfinite(members["energy_ratio"]).all():
            continue
        rows.append(
            {key: cell[key] for key in [*CELL, *MEASURED_BY, "control"]}
            | {
                "energy_source": ", ".join(members["energy_source"].unique()),
                "runs": len(members),
                "blocks": members["block"].nunique(),
                "joules_per_token": members["joules"].mean(),
                "baseline_joules_per_token": members["baseline_joules"].mean(),
                **mean_ratio("energy_ratio", members, settings),
                "idle_w": members["idle_w"].mean(),
                "idle_share": members["idle_j"].sum(skipna=False) / members["energy_j"].sum(),
            }
        )
    return pd.DataFrame(rows)
