"""The numbers a study printed, each beside the same number computed from an analysis.

A number has words for a name: a quantity and its ids, such as `speedup moe_q4 draft_0.8b 16`.
`recompute` returns the numbers of an analysis by name, `resources/reported/` has the printed ones.
"""

from collections.abc import Iterable, Mapping
from math import nan
from pathlib import Path

import pandas as pd

from specmoe.analysis.drafts import by_model
from specmoe.analysis.filters import length_cells, text_cells, usual_cells
from specmoe.analysis.registry import Analysis, records
from specmoe.config.models import CELLS
from specmoe.errors import SchemaError

TABLES = {"table3": "Table 3", "table4": "Table 4", "table5": "Table 5", "table6": "Table 6"}
_IDS = ("suite", "target", "draft", "gamma")
_COLUMNS = ["what", "source", "relation", "printed"]

# The places of the study's headline claims.
_HEADLINE = ("Abstract", "Contribution", "Conclusion")
# The study's suites of texts with a draft.
_SUITES = ("B", "D")
# Section 5.2 of the study estimates times of this cell.
_ESTIMATED = "moe_q4 draft_0.8b 16"
# Section 5.1 says how long the files of these take to read.
_LARGE = ["moe_q4", "moe_q8", "dense_9b"]
# The only cell of its sweep of prompt lengths.
_SWEPT = {"target": "moe_q4", "draft": "draft_0.8b", "gamma": 8}


def read_reported(folder: Path) -> pd.DataFrame:
    """Return the printed numbers, one a row.

    Columns: what, source, relation (`=` or `<`), printed (text), because (rounding or definition,
    where that is why the rows do not give the number; else empty). Raises SchemaError for a file
    with other columns.
    """
    parts = [_cells_of_table(folder / f"{name}.csv", title) for name, title in TABLES.items()]
    numbers = pd.concat([*parts, _read(folder / "claims.csv", _COLUMNS)], ignore_index=True)
    because = _read(folder / "because.csv", ["what", "because"]).set_index("what")["because"]
    return numbers.assign(because=numbers["what"].map(because).fillna(""))


def compare(reported: pd.DataFrame, analysis: Analysis) -> pd.DataFrame:
    """Return `read_reported`'s frame with what an analysis gives for each number.

    Added columns: digits (decimals printed), recomputed (NaN where the analysis has no such
    number), equal: whether it is the printed number at its digits; for `<`, whether it is below.
    """
    compared = _with_digits(reported).assign(recomputed=_numbers(reported, analysis))
    compared["equal"] = [
        row["recomputed"] < float(row["printed"])
        if row["relation"] == "<"
        else f"{row['recomputed']:.{row['digits']}f}" == row["printed"]
        for row in records(compared)
    ]
    return compared


def compare_printed(
    reported: pd.DataFrame, own: Analysis, others: Iterable[Analysis]
) -> pd.DataFrame:
    """Return the printed cells and headline numbers beside what campaigns give for them.

    Columns: those of `read_reported`, digits (decimals printed), recomputed (from the campaign of
    the study's own rows, if it is this one or one of `others`) and measured (from this campaign, if
    it is another). Both are NaN where there is no such campaign or number. All are the study's
    quantities, see `recompute`.
    """
    headline = reported["source"].str.contains("|".join(_HEADLINE))
    chosen = reported[(reported["source"] == CELLS) | headline].reset_index(drop=True)
    of_study = (one for one in [own, *others] if one.campaign["source"].iloc[0] == "published")
    study = next(of_study, None)
    return _with_digits(
        chosen.assign(
            recomputed=_numbers(chosen, study),
            measured=_numbers(chosen, None if own is study else own),
        )
    )


def _with_digits(numbers: pd.DataFrame) -> pd.DataFrame:
    """Add the decimals of the printed numbers."""
    return numbers.assign(digits=numbers["printed"].str.partition(".")[2].str.len())


def _numbers(reported: pd.DataFrame, analysis: Analysis | None) -> "pd.Series[float]":
    """Return an analysis's numbers for printed ones; NaN where it has none, or for no analysis."""
    values = recompute(analysis) if analysis else {}
    return reported["what"].map(values).astype(float)


def recompute(analysis: Analysis) -> dict[str, float]:
    """Return the numbers of an analysis by the words of `resources/reported/`.

    Speedups and acceptance rates are the study's: a cell's mean rate over the target's mean rate
    without a draft, and the mean of the runs' own acceptance rates. By prompt length, speedups are
    against the runs without a draft of that length. Where the study's own suites measured a cell,
    its numbers are from these suites. A cell that only other suites measured, several of them, has
    no number. The study's drafts are models, so what drafts otherwise has none.
    """
    cells, key = text_cells(analysis), ["target", "draft", "gamma"]
    cells = cells[by_model(cells)]
    own = cells["suite"].isin(_SUITES)
    measured_there = pd.MultiIndex.from_frame(cells[key]).isin(
        pd.MultiIndex.from_frame(cells.loc[own, key])
    )
    cells = cells[own | ~measured_there].drop_duplicates(key, keep=False)
    cells = cells.assign(speedup=cells["speedup_unpaired"])
    runs = analysis.suites.set_index("suite")["runs"]
    values = {
        "runs total": float(runs.sum()),
        **{f"runs {suite}": count for suite, count in runs.items()},
        **_baselines(analysis),
        **_cells(cells),
        **_speedup_ranges(cells),
        **_acceptance_ranges(cells, analysis),
        **_lengths(analysis),
    }
    return {**values, **_estimates(values, analysis)}


def _read(path: Path, columns: list[str] | None = None) -> pd.DataFrame:
    frame = pd.read_csv(path, dtype=str, keep_default_na=False)
    if columns and list(frame.columns) != columns:
        raise SchemaError(f"{path}: columns are not {', '.join(columns)}")
    return frame


def _cells_of_table(path: Path, title: str) -> pd.DataFrame:
    frame = _read(path)
    ids = [column for column in _IDS if column in frame.columns]
    if not ids:
        raise SchemaError(f"{path}: has none of the columns {', '.join(_IDS)}")
    long = frame.melt(ids, var_name="quantity", value_name="printed")
    long["what"] = long[["quantity", *ids]].agg(" ".join, axis=1)
    return long.assign(source=title, relation="=")[_COLUMNS]


def _baselines(analysis: Analysis) -> dict[str, float]:
    rates = analysis.baselines.drop_duplicates("target", keep=False).set_index("target")
    models = analysis.models.set_index("model")
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
        values[f"speedup {cell}"] = row["speedup"]
        values[f"gain_percent {cell}"] = 100 * (row["speedup"] - 1)
        values[f"acceptance_percent {cell}"] = 100 * row["acceptance_rate_mean"]
        values[f"tokens a round {cell}"] = row["tokens_per_round"]
    return values


def _speedup_ranges(cells: pd.DataFrame) -> dict[str, float]:
    moe = cells[cells["family"] == "moe"]
    chosen = moe[(moe["draft"] == "draft_0.8b") & moe["gamma"].isin([8, 16])]
    by_draft = moe.set_index(["target", "gamma"])[["draft", "speedup"]]
    small, large = (
        by_draft.loc[by_draft["draft"] == draft, "speedup"] for draft in ("draft_0.8b", "draft_2b")
    )
    rising = [
        members.sort_values("gamma")["speedup"].is_monotonic_increasing
        for _, members in cells.groupby(["target", "draft"])
        if len(members) > 1
    ]
    best = cells.groupby("target")["speedup"].max()
    return {
        **_range("speedup of MoE", moe["speedup"]),
        "speedup of MoE with draft_0.8b at gamma 8 and 16, lowest": chosen["speedup"].min(),
        **_range("speedup of draft_0.8b less that of draft_2b", small - large),
        "speedup curves that rise with gamma": float(sum(rising)) if rising else nan,
        **{f"speedup of {target}, highest": value for target, value in best.items()},
    }


def _acceptance_ranges(cells: pd.DataFrame, analysis: Analysis) -> dict[str, float]:
    usual = usual_cells(analysis)
    chosen = {
        "in suites B and D": cells[cells["suite"].isin(_SUITES)],
        "in any suite": usual[by_model(usual)],
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
    return {
        **_range("speedup by prompt length", speedups),
        "speedup by prompt length, highest less lowest": speedups.max() - speedups.min(),
        **{f"speedup by prompt length {length}": value for length, value in speedups.items()},
    }


def _range(name: str, values: "pd.Series[float]") -> dict[str, float]:
    return {f"{name}, lowest": values.min(), f"{name}, highest": values.max()}


def _estimates(values: Mapping[str, float], analysis: Analysis) -> dict[str, float]:
    """Return what the study estimates from rates, rounds and sizes, and how long it took."""
    sizes = analysis.models.set_index("model")["size_bytes"]
    campaign = analysis.campaign.iloc[0]
    bandwidth = campaign.get("host_memory_bandwidth_bytes_per_second") or nan
    to_read = 1000 * sizes.reindex(_LARGE).astype(float) / bandwidth
    baseline = values.get("tokens_per_second moe_q4", nan)
    rate = values.get(f"tokens_per_second {_ESTIMATED}", nan)
    tokens_a_round = values.get(f"tokens a round {_ESTIMATED}", nan)
    n_predict = float(campaign["n_predict"])
    return {
        "minutes from the first run to the last": (
            (campaign["ended_at"] - campaign["started_at"]).total_seconds() / 60
        ),
        **_range("milliseconds to read a file of the MoE or the 9B", to_read),
        "milliseconds a token moe_q4": 1000 / baseline,
        "gigabytes a second moe_q4": sizes.get("moe_q4", nan) * baseline / 1e9,
        f"seconds a run {_ESTIMATED}": n_predict / rate,
        f"rounds a run {_ESTIMATED}": n_predict / tokens_a_round,
        f"milliseconds a round {_ESTIMATED}": 1000 * tokens_a_round / rate,
    }
