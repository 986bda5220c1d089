"""Acceptance by position of a draft: how far drafts hold."""

from collections.abc import Iterable, Sequence

import numpy as np
import pandas as pd

from specmoe.analysis.registry import TABLES
from specmoe.analysis.summaries import CELL
from specmoe.config.block import NO_DRAFT, WAY


def acceptance_by_position(runs: pd.DataFrame) -> pd.DataFrame:
    """Return one row per cell and position, from runs that accept what matches.

    `runs` are `schema.read_runs`'s. Columns: those of the cell, protocol, engine; position (from
    1); tried (rounds that drafted a token there and accepted all before it); accepted (those
    that accepted it too); conditional (accepted / tried: the chance of a token whose predecessors
    were accepted); joint (the product up to the position: the chance that a draft so long is
    accepted as a whole). Positions that were never tried are left out.
    """
    counted = runs[(runs["draft"] != NO_DRAFT) & runs["tried_per_position"].notna()]
    rows = []
    for cell, members in counted.groupby(CELL, sort=False):
        tried = sum_lists(members["tried_per_position"])
        accepted = sum_lists(members["accepted_per_position"])
        conditional = accepted[tried > 0] / tried[tried > 0]
        for position, (chance, joint) in enumerate(
            zip(conditional, np.cumprod(conditional), strict=True)
        ):
            rows.append(
                dict(zip(CELL, cell, strict=True))
                | members.iloc[0][WAY].to_dict()
                | {
                    "position": position + 1,
                    "tried": int(tried[position]),
                    "accepted": int(accepted[position]),
                    "conditional": chance,
                    "joint": joint,
                }
            )
    return pd.DataFrame(rows, columns=TABLES["positions"].columns)


def sum_lists(lists: Iterable[Sequence[int]]) -> np.ndarray:
    """Return the sums by position of lists of the same length."""
    total: np.ndarray = np.sum([np.asarray(one, dtype=int) for one in lists], axis=0)
    return total
