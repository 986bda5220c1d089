"""Campaigns of several machines joined: what each machine measured of the same settings.

Only campaigns that differ in nothing but their machine are joined: the same llama.cpp, model files
and matrix. Nothing is averaged over machines, which may be of any kind.
"""

from collections.abc import Sequence

import pandas as pd

from specmoe.analysis.filters import usual_cells
from specmoe.analysis.machines import machine_of
from specmoe.analysis.registry import TABLES, Analysis, records
from specmoe.analysis.summaries import CELL
from specmoe.config.block import MEASURED_BY
from specmoe.errors import ConfigError

_CONDITIONS = ("protocol", "engine_commit", "n_predict", "temperature", "engine_options")
_SHOWN = 3  # of settings that only one campaign has


def refuse_unlike(analyses: Sequence[Analysis]) -> None:
    """Raise ConfigError if campaigns differ in more than their machine, naming what differs."""
    if len(analyses) < 2:
        raise ConfigError("merge joins several campaigns; name the others in compare_with")
    if reason := difference(analyses):
        raise ConfigError(f"{reason}; only campaigns that differ in their machine alone are merged")


def difference(analyses: Sequence[Analysis]) -> str:
    """Return the first thing beside the machine in which campaigns differ; empty if nothing."""
    first = analyses[0]
    for other in analyses[1:]:
        names = f"campaigns {first.name} and {other.name}"
        own, its = (one.campaign.iloc[0] for one in (first, other))
        for condition in _CONDITIONS:
            if own[condition] != its[condition]:
                return (
                    f"{names} differ in {condition}: {own[condition] or 'none'!s} and"
                    f" {its[condition] or 'none'!s}"
                )
        if unlike := sorted({name for name, _ in _files(first) ^ _files(other)}):
            return f"{names} differ in their models: {', '.join(unlike)}"
        if apart := sorted(_matrix(first) ^ _matrix(other)):
            shown = ", ".join(apart[:_SHOWN]) + (", ..." if len(apart) > _SHOWN else "")
            return f"{names} differ in {len(apart)} settings of their matrix: {shown}"
    return ""


def merged(analyses: Sequence[Analysis]) -> pd.DataFrame:
    """Return one row per cell and campaign; without rows unless only the machine differs.

    machine is the chip, or the GPU where it computes, and the campaign's name;
    break_even is the acceptance rate from which the pair gains, joules_per_token that with the
    draft; each is null where its campaign has no such measurement.
    """
    if len(analyses) < 2 or difference(analyses):
        return pd.DataFrame()
    return pd.concat(map(_cells, analyses), ignore_index=True)[TABLES["merged"].columns]


def _cells(analysis: Analysis) -> pd.DataFrame:
    machine = machine_of(records(analysis.campaign)[0])
    keys = [*MEASURED_BY, "target", "draft", "gamma"]
    pays = analysis.break_even.drop_duplicates(keys)
    values = ["break_even", "break_even_low", "break_even_high"]
    joules = analysis.energy
    return (
        usual_cells(analysis)
        .merge(pays[[*keys, *values]], how="left", on=keys)
        .merge(joules[[*CELL, "joules_per_token"]], how="left", on=CELL)
        .assign(campaign=analysis.name, machine=f"{machine} ({analysis.name})")
    )


def _files(analysis: Analysis) -> set[tuple[str, str]]:
    """Return the models of a campaign, each with its digest."""
    models = analysis.models
    return set(zip(models["of_model"], models["sha256"], strict=True))


def _matrix(analysis: Analysis) -> set[str]:
    """Return the settings that a campaign measured, as words."""
    return {"/".join(map(str, cell)) for cell in usual_cells(analysis)[CELL].to_numpy()}
