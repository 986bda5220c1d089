"""The study's printed numbers, compared with the same numbers of an analysis.

The name of a number is a quantity and its ids, such as `speedup moe_q4 draft_0.8b 16`.
"""

from collections.abc import Iterable
from math import nan

import pandas as pd

from specmoe.analysis.registry import Analysis, records
from specmoe.analysis.summaries import by_model
from specmoe.analysis.views import length_settings, text_settings, usual_settings
from specmoe.config.models import CELLS
from specmoe.models.reported import FOLDER
from specmoe.study.study_rows import SUITES

_SETTING = ["target", "draft", "gamma"]
# The places of the study's headline claims.
_HEADLINE = "Abstract|Contribution|Conclusion"
# The study's draft models.
_DRAFTS = ["draft_0.8b", "draft_2b"]
# Section 5.2 of the study estimates times of this setting.
_ESTIMATED = "moe_q4 draft_0.8b 16"
# The only setting of its sweep of prompt lengths.
_SWEPT = {"target": "moe_q4", "draft": "draft_0.8b", "gamma": 8}


def read_reported() -> pd.DataFrame:
    """Return the printed numbers, one a row.

    Columns: what, source, relation (`=` or `<`), printed (text), digits (decimals printed), because
    (rounding or definition, where that is why the rows do not give the number; else empty).
    """
    parts = []
    for number in (3, 4, 5, 6):
        settings = _read(f"table{number}")
        ids = [column for column in ("suite", *_SETTING) if column in settings.columns]
        parts.append(_with_names(settings, ids).assign(source=f"Table {number}", relation="="))
    numbers = pd.concat([*parts, _read("claims")], ignore_index=True)
    numbers = numbers[["what", "source", "relation", "printed"]]
    numbers = numbers.merge(_read("because"), "left", "what").fillna({"because": ""})
    return numbers.assign(digits=numbers["printed"].str.partition(".")[2].str.len())


def compare_all(reported: pd.DataFrame, analysis: Analysis) -> pd.DataFrame:
    """Return the table `reported`: `read_reported`'s frame with the same numbers of an analysis."""
    compared = reported.assign(recomputed=_numbers(reported, analysis))
    compared["equal"] = [
        row["recomputed"] < float(row["printed"])
        if row["relation"] == "<"
        else f"{row['recomputed']:.{row['digits']}f}" == row["printed"]
        for row in records(compared)
    ]
    return compared


def compare_printed(
    reported: pd.DataFrame, judged: Analysis, others: Iterable[Analysis]
) -> pd.DataFrame:
    """Return the table `comparison`: printed settings and headline numbers, and measured ones."""
    source = reported["source"]
    chosen = reported[(source == CELLS) | source.str.contains(_HEADLINE)].reset_index(drop=True)
    # The last of a source counts: the judged one.
    by_source = {analysis.campaign["source"].iloc[0]: analysis for analysis in [*others, judged]}
    study = by_source.get("study_rows")
    measured = _numbers(chosen, None if judged is study else judged)
    digits = chosen.pop("digits")  # comes last
    return chosen.assign(recomputed=_numbers(chosen, study), measured=measured, digits=digits)


def _numbers(reported: pd.DataFrame, analysis: Analysis | None) -> "pd.Series[float]":
    """Return an analysis's numbers for printed ones; NaN where it has none, or for no analysis."""
    return reported["what"].map(recompute(analysis) if analysis else {}).astype(float)


def recompute(analysis: Analysis) -> dict[str, float]:
    """Return the numbers of an analysis by the names of `resources/reported/`.

    Speedups and acceptance rates are the study's: a setting's mean rate over the target's mean
    baseline rate (by prompt length, over that of the same length), and the mean of the runs' own
    acceptance rates. The study's own suites decide, else a suite that measured the setting alone.
    Only draft models have numbers.
    """
    settings = text_settings(analysis)
    settings = settings.assign(
        own=settings["suite"].isin([SUITES["B"], SUITES["D"]]),
        speedup=settings["speedup_unpaired"],
        gain_percent=100 * (settings["speedup_unpaired"] - 1),
        acceptance_percent=100 * settings["acceptance_rate_mean"],
    )
    settings = settings[by_model(settings)]
    settings = settings[settings["own"] == settings.groupby(_SETTING)["own"].transform("any")]
    settings = settings.drop_duplicates(_SETTING, keep=False)
    rates = analysis.baselines.drop_duplicates("target", keep=False)
    rates = rates.assign(
        active_billions=rates["parameters_active"] / 1e9,
        total_billions=rates["parameters_total"] / 1e9,
    )
    of_settings = ["tokens_per_second", "speedup", "gain_percent", "acceptance_percent"]
    of_rates = ["tokens_per_second", "tokens_per_second_sd", "active_billions", "total_billions"]
    letters = {name: letter for letter, name in SUITES.items()}
    values = {
        "runs total": float(analysis.suites["runs"].sum()),
        **_by_name(analysis.suites.replace({"suite": letters}), ["suite"], ["runs"]),
        **_by_name(rates, ["target"], of_rates),
        **_by_name(settings, _SETTING, [*of_settings, "tokens_per_round"]),
        **_by_name(analysis.models, ["model"], ["experts", "experts_used"]),
        **_ranges(settings, usual_settings(analysis)),
        **_lengths(analysis),
    }
    return {**values, **_estimates(values, analysis)}


def _by_name(frame: pd.DataFrame, ids: list[str], columns: list[str]) -> dict[str, float]:
    """Return the numbers of columns of a frame by their words."""
    long = _with_names(frame[[*ids, *columns]], ids)
    return dict(zip(long["what"], long["printed"], strict=True))


def _with_names(frame: pd.DataFrame, ids: list[str]) -> pd.DataFrame:
    """Return each number of a frame in a row of its own: what (its words), printed (the number)."""
    long = frame.melt(ids, var_name="quantity", value_name="printed")
    words = long[["quantity", *ids]].itertuples(index=False)
    return long.assign(what=[" ".join(map(str, parts)) for parts in words])


def _read(name: str) -> pd.DataFrame:
    return pd.read_csv(FOLDER / f"{name}.csv", dtype=str, keep_default_na=False)


def _ranges(settings: pd.DataFrame, usual: pd.DataFrame) -> dict[str, float]:
    """Return the ends of what settings gained and accepted; those of all suites are `usual`."""
    moe = settings[settings["family"] == "moe"]
    chosen = moe[(moe["draft"] == _DRAFTS[0]) & moe["gamma"].isin([8, 16])]
    by_draft = moe.pivot(index=["target", "gamma"], columns="draft", values="speedup")
    small, large = (by_draft.reindex(columns=_DRAFTS)[draft] for draft in _DRAFTS)
    curves = settings.sort_values("gamma").groupby(["target", "draft"])["speedup"]
    rising = curves.is_monotonic_increasing[curves.size() > 1]
    best = settings.groupby("target")["speedup"].max()
    accepting = {
        "in suites B and D": settings[settings["own"]],
        "in any suite": usual[by_model(usual)],
        **{f"at gamma {gamma}": settings[settings["gamma"] == gamma] for gamma in (4, 16)},
    }
    return {
        **_range("speedup of MoE", moe["speedup"]),
        "speedup of MoE with draft_0.8b at gamma 8 and 16, lowest": chosen["speedup"].min(),
        **_range("speedup of draft_0.8b less that of draft_2b", small - large),
        "speedup curves that rise with gamma": float(rising.sum()) if len(rising) else nan,
        **{f"speedup of {target}, highest": value for target, value in best.items()},
        **{
            f"acceptance_percent {where}, highest": 100 * members["acceptance_rate_mean"].max()
            for where, members in accepting.items()
        },
    }


def _lengths(analysis: Analysis) -> dict[str, float]:
    settings, name = length_settings(analysis), "speedup by prompt length"
    of_study = (settings[list(_SWEPT)] == pd.Series(_SWEPT)).all(axis=1)
    settings = settings[of_study].drop_duplicates("n_prompt", keep=False)
    speedups = settings["speedup"]
    return {
        **_range(name, speedups),
        f"{name}, highest less lowest": speedups.max() - speedups.min(),
        **_by_name(settings.rename(columns={"speedup": name}), ["n_prompt"], [name]),
    }


def _range(name: str, values: "pd.Series[float]") -> dict[str, float]:
    return {f"{name}, lowest": values.min(), f"{name}, highest": values.max()}


def _estimates(values: dict[str, float], analysis: Analysis) -> dict[str, float]:
    """Return what the study estimates from rates, rounds and sizes, and how long it took."""
    sizes = analysis.models.set_index("model")["size_bytes"]
    campaign = analysis.campaign.iloc[0]
    bandwidth = campaign.get("machine_memory_bandwidth_bytes_per_second") or nan
    # Section 5.1 says how long these files take to read.
    large = sizes.reindex(["moe_q4", "moe_q8", "dense_9b"]).astype(float)
    baseline = values.get("tokens_per_second moe_q4", nan)
    rate = values.get(f"tokens_per_second {_ESTIMATED}", nan)
    tokens_a_round = values.get(f"tokens_per_round {_ESTIMATED}", nan)
    n_predict = float(campaign["n_predict"])
    took = campaign["ended_at"] - campaign["started_at"]
    return {
        "minutes from the first run to the last": took.total_seconds() / 60,
        **_range("milliseconds to read a file of the MoE or the 9B", 1000 * large / bandwidth),
        "milliseconds a token moe_q4": 1000 / baseline,
        "gigabytes a second moe_q4": sizes.get("moe_q4", nan) * baseline / 1e9,
        f"seconds a run {_ESTIMATED}": n_predict / rate,
        f"rounds a run {_ESTIMATED}": n_predict / tokens_a_round,
        f"milliseconds a round {_ESTIMATED}": 1000 * tokens_a_round / rate,
    }
