"""What rounds of speculation were like: how often there was one, how far it got, who drafted it."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd

from specmoe.analysis.registry import TABLES
from specmoe.analysis.summaries import CELL, by_group
from specmoe.config.block import MEASURED_BY, NO_DRAFT

# The numbers of accepted tokens that are counted together, by their least: long drafts are rare.
_LEAST = (0, 1, 2, 3, 4, 5, 9, 17)

_CELL = [*CELL, *MEASURED_BY]


def drafting_share(runs: pd.DataFrame) -> "pd.Series[float]":
    """Return, by cell, the share of the target's steps in which it verified a draft.

    `runs` drafted under protocol `paired`. A step is a round, or a pass over one token where the
    method found no draft; a replay belongs to its round. Each run's first token comes from its
    prompt's pass; a step gives one token, and each accepted token or replay that gave a token
    saves a step. Null where a count is not known.
    """
    replays = (runs["replays"] - runs["replays_rejected"]).fillna(0)
    steps = runs["generated"] - 1 - runs["accepted"] - replays
    cells = runs.assign(steps=steps).astype({"steps": float, "rounds": float}).groupby(CELL)
    share: pd.Series[float] = cells["rounds"].sum(min_count=1) / cells["steps"].sum(min_count=1)
    return share


def acceptance_by_position(runs: pd.DataFrame) -> pd.DataFrame:
    """Return one row per cell and position, from runs that accept what matches.

    `runs` are `schema.read_runs`'s. Columns: those of the cell, protocol, engine; position (from
    1); tried (rounds that drafted a token there and accepted all before it); accepted (those
    that accepted it too); conditional (accepted / tried: the chance of a token whose predecessors
    were accepted); joint (the product up to the position: the chance that a draft so long is
    accepted as a whole). Positions that were never tried are left out.
    """
    counted = runs[(runs["draft"] != NO_DRAFT) & runs["tried_per_position"].notna()]

    def rows(members: pd.DataFrame) -> Iterator[dict[str, Any]]:
        tried = sum_lists(members["tried_per_position"])
        known = tried > 0
        tried, accepted = tried[known], sum_lists(members["accepted_per_position"])[known]
        conditional = accepted / tried
        positions = np.flatnonzero(known) + 1
        columns = zip(positions, tried, accepted, conditional, np.cumprod(conditional), strict=True)
        names = ("position", "tried", "accepted", "conditional", "joint")
        return (dict(zip(names, row, strict=True)) for row in columns)

    return by_group(counted, _CELL, rows, TABLES["positions"].columns)


def accepted_lengths(runs: pd.DataFrame) -> pd.DataFrame:
    """Return how many of the rounds of each cell accepted how many tokens.

    `runs` are runs with a draft. One row per cell and number of tokens, or range of numbers.
    Columns: those of the cell, protocol, engine; rounds (all of the cell); least, most (the range;
    most is null in the last, which is open), lengths (words for it); counted (rounds in it); share
    (of the rounds). Cells whose rounds were not logged, or that had none, are left out.
    """

    def rows(members: pd.DataFrame) -> Iterator[dict[str, Any]]:
        lengths = sum_lists(members["accepted_lengths"])
        rounds = int(lengths.sum())
        for least, beyond in zip(_LEAST, (*_LEAST[1:], None), strict=True):
            if rounds and least < len(lengths):
                most, counted = beyond and beyond - 1, int(lengths[least:beyond].sum())
                yield {
                    "rounds": rounds,
                    "least": least,
                    "most": most,
                    "lengths": _range(least, most),
                    "counted": counted,
                    "share": counted / rounds,
                }

    logged, columns = runs[runs["accepted_lengths"].notna()], TABLES["accepted_lengths"].columns
    return by_group(logged, _CELL, rows, columns).astype({"most": "Int64"})


def _range(least: int, most: int | None) -> str:
    if most is None:
        return f"{least}+"
    return str(least) if least == most else f"{least}–{most}"


def sum_lists(lists: Iterable[Sequence[int]]) -> np.ndarray:
    """Return the sums by position of lists of the same length."""
    total: np.ndarray = np.sum([np.asarray(one, dtype=int) for one in lists], axis=0)
    return total
