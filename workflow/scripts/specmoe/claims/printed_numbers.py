"""The numbers a study printed, each beside the same number computed from an analysis.

A number is known by words: a quantity and the ids it is of, such as `speedup moe_q4 draft_0.8b 16`.
`recompute` gives the numbers of an analysis by those words, `resources/reported/` the printed ones.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import nan
from pathlib import Path

import pandas as pd

from specmoe.analysis.build import Analysis
from specmoe.analysis.labelled import length_cells, table, text_cells, usual_cells
from specmoe.config.study import CELLS
from specmoe.errors import SchemaError

CLAIMS = "claims"
MODELS = "models"
TABLES = {"table3": "Table 3", "table4": "Table 4", "table5": "Table 5", "table6": "Table 6"}
_IDS = ("suite", "target", "draft", "gamma")
_COLUMNS = ["what", "source", "relation", "printed"]
_MODEL_COLUMNS = ["model", "quantity", "printed", "source"]
_ACCEPTANCE_BOUND = "acceptance_percent in any suite, highest"
"""The study's table of every cell."""

# What the study says first and last: the claims of these places are its headline.
_HEADLINE = ("Abstract", "Contribution", "Conclusion")

# The study's suites of texts with a draft.
_SUITES = ("B", "D")

# Section 5.2 of the study reckons with this cell.
_ESTIMATED = "moe_q4 draft_0.8b 16"
# And this one is all that its sweep of prompt lengths has.
_SWEPT = {"target": "moe_q4", "draft": "draft_0.8b", "gamma": 8}


@dataclass(frozen=True)
class Stated:
    """What the study's text says of how it was measured, as printed.

    - acceptance_below: percent that no acceptance rate reaches.
    - models: facts of its models, one a row: model, quantity (a column of the models' cards),
      printed, source.
    """

    acceptance_below: str
    models: pd.DataFrame


def read_stated(folder: Path) -> Stated:
    """Return what the study's text says of its method; raises SchemaError as `read_reported`."""
    models = _read(folder / f"{MODELS}.csv")
    _require_columns(models, _MODEL_COLUMNS, folder / f"{MODELS}.csv")
    claims = read_reported(folder).set_index("what")
    return Stated(str(claims.loc[_ACCEPTANCE_BOUND, "printed"]), models)


def read_reported(folder: Path) -> pd.DataFrame:
    """Return the printed numbers, one a row: what, source, relation (`=` or `<`), printed (text).

    Raises SchemaError for a file that has not the columns it should have.
    """
    parts = [_cells_of_table(folder / f"{name}.csv", title) for name, title in TABLES.items()]
    claims = _read(folder / f"{CLAIMS}.csv")
    _require_columns(claims, _COLUMNS, folder / f"{CLAIMS}.csv")
    return pd.concat([*parts, claims], ignore_index=True)


def compare(reported: pd.DataFrame, analysis: Analysis) -> pd.DataFrame:
    """Return `read_reported`'s frame with what an analysis gives for each number.

    Added columns: digits (decimals printed), recomputed (NaN where the analysis has no such
    number), equal: whether it is the printed number at its digits; for `<`, whether it is below.
    """
    values = recompute(analysis)
    compared = reported.copy()
    compared["digits"] = compared["printed"].map(_decimals)
    compared["recomputed"] = [values.get(what, nan) for what in compared["what"]]
    compared["equal"] = [
        value < float(printed) if relation == "<" else f"{value:.{digits}f}" == printed
        for relation, printed, digits, value in zip(
            compared["relation"],
            compared["printed"],
            compared["digits"],
            compared["recomputed"],
            strict=True,
        )
    ]
    return compared


def compare_printed(
    reported: pd.DataFrame, own: Analysis, others: Iterable[Analysis]
) -> pd.DataFrame:
    """Return the printed cells and headline numbers beside what campaigns give for them.

    Columns: those of `read_reported`, digits (decimals printed), recomputed (from the campaign of
    the study's own rows, if it is this one or one of `others`) and measured (from this campaign, if
    it is another); NaN where there is none, or it has no such number. All are the study's
    quantities, see `recompute`.
    """
    headline = reported["source"].str.contains("|".join(_HEADLINE))
    chosen = reported[(reported["source"] == CELLS) | headline].reset_index(drop=True)
    study = next((one for one in [own, *others] if _is_study(one)), None)
    for column, found in [("recomputed", study), ("measured", None if own is study else own)]:
        values = {} if found is None else recompute(found)
        chosen[column] = [values.get(what, nan) for what in chosen["what"]]
    chosen["digits"] = chosen["printed"].map(_decimals)
    return chosen


def _is_study(analysis: Analysis) -> bool:
    return bool(analysis.campaign["source"].iloc[0] == "published")


def recompute(analysis: Analysis) -> dict[str, float]:
    """Return the numbers of an analysis by the words of `resources/reported/`.

    Speedups and acceptance rates are the study's: a cell's mean rate over the target's mean rate
    without a draft, and the mean of the runs' own acceptance rates. By prompt length, speedups are
    against the runs without a draft of that length. Where the study's own suites measured a cell,
    its numbers are theirs; one that several other suites give is none.
    """
    cells, key = text_cells(analysis), ["target", "draft", "gamma"]
    own = cells["suite"].isin(_SUITES)
    measured_there = pd.MultiIndex.from_frame(cells[key]).isin(
        pd.MultiIndex.from_frame(cells.loc[own, key])
    )
    cells = cells[own | ~measured_there].drop_duplicates(key, keep=False)
    values = {
        **_runs(analysis),
        **_baselines(analysis),
        **_cells(cells),
        **_speedup_ranges(cells),
        **_acceptance_ranges(cells, analysis),
        **_lengths(analysis),
    }
    return {**values, **_estimates(values, analysis)}


def _read(path: Path) -> pd.DataFrame:
    return pd.read_csv(path, dtype=str, keep_default_na=False)


def _decimals(printed: str) -> int:
    return len(printed.partition(".")[2])


def _require_columns(frame: pd.DataFrame, columns: list[str], path: Path) -> None:
    if list(frame.columns) != columns:
        raise SchemaError(f"{path}: columns are not {', '.join(columns)}")


def _cells_of_table(path: Path, title: str) -> pd.DataFrame:
    frame = _read(path)
    ids = [column for column in _IDS if column in frame.columns]
    if not ids:
        raise SchemaError(f"{path}: has none of the columns {', '.join(_IDS)}")
    long = frame.melt(ids, var_name="quantity", value_name="printed")
    long["what"] = long[["quantity", *ids]].agg(" ".join, axis=1)
    return long.assign(source=title, relation="=")[_COLUMNS]


def _runs(analysis: Analysis) -> dict[str, float]:
    runs = table(analysis, "suites").set_index("suite")["runs"]
    return {"runs total": float(runs.sum())} | {f"runs {suite}": n for suite, n in runs.items()}


def _baselines(analysis: Analysis) -> dict[str, float]:
    rates = table(analysis, "baselines").drop_duplicates("target", keep=False).set_index("target")
    models = table(analysis, "models").set_index("model")
    values = {}
    for target in rates.index:
        for quantity in ("tokens_per_second", "tokens_per_second_sd"):
            values[f"{quantity} {target}"] = rates.loc[target, quantity]
        for share in ("active", "total"):
            values[f"{share}_billions {target}"] = models.loc[target, f"parameters_{share}"] / 1e9
    return values


def _cells(cells: pd.DataFrame) -> dict[str, float]:
    values = {}
    for row in cells.to_dict("records"):
        cell = f"{row['target']} {row['draft']} {row['gamma']}"
        values[f"tokens_per_second {cell}"] = row["tokens_per_second"]
        values[f"speedup {cell}"] = row["speedup_unpaired"]
        values[f"gain_percent {cell}"] = 100 * (row["speedup_unpaired"] - 1)
        values[f"acceptance_percent {cell}"] = 100 * row["acceptance_rate_mean"]
        values[f"tokens a round {cell}"] = row["mean_accepted_length"]
    return values


def _speedup_ranges(cells: pd.DataFrame) -> dict[str, float]:
    moe = cells[cells["family"] == "moe"]
    chosen = moe[(moe["draft"] == "draft_0.8b") & moe["gamma"].isin([8, 16])]
    by_draft = {
        draft: moe[moe["draft"] == draft].set_index(["target", "gamma"])["speedup_unpaired"]
        for draft in ("draft_0.8b", "draft_2b")
    }
    lead = by_draft["draft_0.8b"] - by_draft["draft_2b"]
    rising = [
        members.sort_values("gamma")["speedup_unpaired"].is_monotonic_increasing
        for _, members in cells.groupby(["target", "draft"])
    ]
    return {
        "speedup of MoE, lowest": moe["speedup_unpaired"].min(),
        "speedup of MoE, highest": moe["speedup_unpaired"].max(),
        "speedup of MoE with draft_0.8b at gamma 8 and 16, lowest": chosen[
            "speedup_unpaired"
        ].min(),
        "speedup of draft_0.8b less that of draft_2b, lowest": lead.min(),
        "speedup of draft_0.8b less that of draft_2b, highest": lead.max(),
        "speedup curves that rise with gamma": float(sum(rising)) if rising else nan,
        **{
            f"speedup of {target}, highest": members["speedup_unpaired"].max()
            for target, members in cells.groupby("target")
        },
    }


def _acceptance_ranges(cells: pd.DataFrame, analysis: Analysis) -> dict[str, float]:
    chosen = {
        "in suites B and D": cells[cells["suite"].isin(_SUITES)],
        "in any suite": usual_cells(analysis),
        "at gamma 4": cells[cells["gamma"] == 4],
        "at gamma 16": cells[cells["gamma"] == 16],
    }
    return {
        f"acceptance_percent {where}, highest": 100 * members["acceptance_rate_mean"].max()
        for where, members in chosen.items()
    }


def _lengths(analysis: Analysis) -> dict[str, float]:
    cells = length_cells(analysis)
    of_study = (cells[list(_SWEPT)] == pd.Series(_SWEPT)).all(axis=1)
    cells = cells[of_study].drop_duplicates("n_prompt", keep=False)
    speedups = cells.set_index("n_prompt")["speedup"]
    low, high = speedups.min(), speedups.max()
    return {
        "speedup by prompt length, lowest": low,
        "speedup by prompt length, highest": high,
        "speedup by prompt length, highest less lowest": high - low,
        **{f"speedup by prompt length {length}": value for length, value in speedups.items()},
    }


def _estimates(values: Mapping[str, float], analysis: Analysis) -> dict[str, float]:
    """Return what Section 5.2 of the study estimates, from rates, rounds and the file's size."""
    sizes = table(analysis, "models").set_index("model")["size_bytes"]
    baseline = values.get("tokens_per_second moe_q4", nan)
    rate = values.get(f"tokens_per_second {_ESTIMATED}", nan)
    tokens_a_round = values.get(f"tokens a round {_ESTIMATED}", nan)
    n_predict = float(analysis.campaign["n_predict"].iloc[0])
    return {
        "milliseconds a token moe_q4": 1000 / baseline,
        "gigabytes a second moe_q4": sizes.get("moe_q4", nan) * baseline / 1e9,
        f"seconds a run {_ESTIMATED}": n_predict / rate,
        f"rounds a run {_ESTIMATED}": n_predict / tokens_a_round,
        f"milliseconds a round {_ESTIMATED}": 1000 * tokens_a_round / rate,
    }
