"""What `paper/site/whatif.js` predicts speedups from, at any γ, acceptance and draft cost."""

from typing import Any, TypedDict

import pandas as pd

from specmoe.analysis.cost_tables import PAIR
from specmoe.analysis.gamma_curves import LONGEST
from specmoe.analysis.registry import Analysis, Record, records

_KINDS = ("draft", "pass", "reread", "rest", "replay")
_SHORT = {"acceptance_rate": "rate", "speedup_low": "low", "speedup_high": "high"}


class Pair(TypedDict):
    """A target and draft with fitted costs.

    `knots` are the γ or widths of each kind of cost, `costs` the steps there, `without` the same as
    fitted without each repeat. `quantile` is null, and `without` empty, with a single repeat.
    `profile` has a suite's γ, and the `chances` of the tokens at each position of its drafts if all
    before them held.
    """

    target: str
    draft: str
    engine: str
    knots: dict[str, list[int]]
    costs: dict[str, list[float]]
    without: list[dict[str, list[float]]]
    replays: bool
    quantile: float | None
    widest: int
    cells: list[Record]
    profile: Record | None


def whatif_pairs(analysis: Analysis) -> list[Pair]:
    """Return the pairs whose costs were fitted, in the order of tables; names are labels."""
    pairs = analysis.fitted_costs.groupby(PAIR, sort=False)
    return [_pair(costs, analysis) for _, costs in pairs]


def _pair(costs: pd.DataFrame, analysis: Analysis) -> Pair:
    first = costs.iloc[0]
    fits = [fit for _, fit in costs.groupby("without_repeat")]
    steps, *without = (_by_kind(fit, "steps") for fit in fits)
    return Pair(
        target=first["target_label"],
        draft=first["draft_label"],
        engine=first["engine"],
        knots=_by_kind(fits[0], "at"),
        costs=steps,
        without=without,
        replays=bool(first["replays"]),
        quantile=None if pd.isna(first["quantile"]) else float(first["quantile"]),
        widest=int(first["widest"]),
        cells=_cells(_of_pair(analysis.break_even, first)),
        profile=_profile(_of_pair(analysis.positions, first)),
    )


def _of_pair(frame: pd.DataFrame, pair: pd.Series) -> pd.DataFrame:
    return frame[(frame[PAIR] == pair[PAIR]).all(axis=1)]


def _by_kind(fit: pd.DataFrame, column: str) -> dict[str, list[Any]]:
    return {kind: fit.loc[fit["kind"] == kind, column].tolist() for kind in _KINDS}


def _cells(settings: pd.DataFrame) -> list[Record]:
    """Return the cells that were measured; `own`: at the draft's own acceptance, not forced."""
    measured = settings[settings["speedup"].notna() & settings["gamma"].le(LONGEST)]
    cells = measured.assign(own=measured["forced_acceptance"].isna()).rename(columns=_SHORT)
    cells = cells[["gamma", "own", "speedup", *_SHORT.values()]].astype(object)
    return records(cells.where(cells.notna(), None))


def _profile(positions: pd.DataFrame) -> Record | None:
    """Return the profile of the longest drafts, and of these of the most rounds."""
    longest = positions[positions["gamma"] == positions["gamma"].max()]
    if longest.empty:
        return None
    _, suite = max(longest.groupby("suite"), key=lambda one: one[1]["tried"].iloc[0])
    first = suite.iloc[0]
    chances = suite["conditional"].tolist()
    return {"suite": first["suite"], "gamma": int(first["gamma"]), "chances": chances}
