"""What the machines of merged campaigns measured, as text for a terminal."""

import pandas as pd

from specmoe.analysis.number_text import measured
from specmoe.analysis.registry import Analysis
from specmoe.words import counted


def describe_merged(analysis: Analysis) -> str:
    """Return one line per setting and machine of a campaign that was merged with others."""
    cells = analysis.merged
    interval = [
        measured(one, low, high)
        for one, low, high in cells[["speedup", "speedup_low", "speedup_high"]].to_numpy(float)
    ]
    shown = pd.DataFrame(
        {
            "target": cells["label"],
            "draft and γ": cells["setting"],
            "machine": cells["machine"],
            "speedup": interval,
            "accepted %": 100 * cells["acceptance_rate"].astype(float),
            "break-even %": 100 * cells["break_even"].astype(float),
            "J/token": cells["joules_per_token"].astype(float),
        }
    ).dropna(axis="columns", how="all")
    lines = shown.to_string(index=False, float_format="{:.1f}".format, na_rep="-")
    settings = counted(cells["cell"].nunique(), "setting")
    return f"{settings} on {counted(cells['machine'].nunique(), 'machine')}\n{lines}\n"
