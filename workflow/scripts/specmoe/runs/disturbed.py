"""Which runs count: a run that the machine disturbed at every attempt does not, nor does its pair.

The rule that finds them (`engine.disturbances`) sees counters of the system and no speed, so
leaving them out selects no result. Their rows stay, and the audit names them.
"""

import pandas as pd

DISTURBED = "the machine was disturbed"


def undisturbed(runs: pd.DataFrame) -> pd.DataFrame:
    """Return the runs that estimates may use: undisturbed ones, but for those without a pair.

    A run that is compared with a disturbed baseline leaves with it. A baseline stays for the other
    runs that are compared with it. `runs` are those of a whole campaign.
    """
    return runs[~_excluded(runs)]


def excluded(runs: pd.DataFrame) -> pd.DataFrame:
    """Return the others."""
    return runs[_excluded(runs)]


def count_excluded(
    cells: pd.DataFrame, excluded_runs: pd.DataFrame, keys: list[str]
) -> pd.DataFrame:
    """Return cells with `excluded`, how many of their pairs do not count, and `pairs`, of how many.

    `excluded_runs` are those with a draft, `keys` the columns that make a cell; `cells` has its
    `runs`, which count. `excluded` is null where it would be zero, so that tables may leave it out.
    """
    if cells.empty:
        return cells
    sizes = excluded_runs.groupby(keys).size()
    at = pd.MultiIndex.from_frame(cells[keys])
    lost = pd.Series(sizes.reindex(at, fill_value=0).to_numpy(), index=cells.index, dtype="Int64")
    return cells.assign(excluded=lost.where(lost > 0), pairs=cells["runs"] + lost)


def _excluded(runs: pd.DataFrame) -> "pd.Series[bool]":
    disturbed = runs["taken_away"].notna()
    return disturbed | runs["baseline"].isin(runs.loc[disturbed, "run"])
