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
from specmoe.config.differences import differences
from specmoe.config.schema import Config
from specmoe.errors import ConfigError

# Of `measurement`; what else it has is the machine's, or how often and in what order it measured.
_CONDITIONS = ("protocol", "n_predict", "temperature", "seed", "context", "stop")
_SHOWN = 3  # of settings that only one campaign has


def identity(runs: pd.DataFrame, config: Config) -> pd.DataFrame:
    """Return what identifies a campaign's measurements beside the machine: names and values.

    Weights and prompts are what its rows say. A digest that no row has is left out.
    """
    facts = {name: str(getattr(config.measurement, name)) for name in _CONDITIONS}
    facts["engine_commit"] = ", ".join(runs["engine_commit"].unique())
    facts["engine_options"] = config.option_setting("").text
    facts["prompts"] = ", ".join(sorted(runs["prompt"].unique()))
    for model, digest in (("target_model", "target_sha256"), ("draft_model", "draft_sha256")):
        weights = runs[[model, digest]].dropna().drop_duplicates()
        facts |= {f"model {name}": value for name, value in weights.itertuples(index=False)}
    of_prompt = runs.groupby(["target_model", "prompt"])[["n_prompt", "prompt_sha256"]].first()
    for (target, prompt), tokens, digest in of_prompt.itertuples(name=None):
        facts[f"tokens of prompt {prompt} for {target}"] = str(tokens)
        if isinstance(digest, str):
            facts[f"text of prompt {prompt} for {target}"] = digest
    return pd.DataFrame(facts.items(), columns=["name", "value"])


def refuse_unlike(analyses: Sequence[Analysis]) -> None:
    """Raise ConfigError if campaigns differ in more than their machine, naming what differs."""
    if len(analyses) < 2:
        raise ConfigError("merge joins several campaigns; name the others in compare_with")
    if reason := difference(analyses):
        raise ConfigError(f"{reason}; only campaigns that differ in their machine alone are merged")


def difference(analyses: Sequence[Analysis]) -> str:
    """Return the first thing beside the machine in which campaigns differ; empty if nothing.

    A prompt is compared by the digest of its tokens where both have it.
    """
    first = analyses[0]
    for other in analyses[1:]:
        names = f"campaigns {first.name} and {other.name}"
        own, its = (
            dict(zip(one.identity["name"], one.identity["value"], strict=True))
            for one in (first, other)
        )
        if unlike := differences(its, {name: own[name] for name in own if name in its}):
            name, found, asked = unlike[0]
            return f"{names} differ in {name}: {asked or 'none'!s} and {found or 'none'!s}"
        if apart := sorted(_matrix(first) ^ _matrix(other)):
            shown = ", ".join(apart[:_SHOWN]) + (", ..." if len(apart) > _SHOWN else "")
            return f"{names} differ in {len(apart)} settings of their matrix: {shown}"
    return ""


def merged(analyses: Sequence[Analysis]) -> pd.DataFrame:
    """Return one row per cell and campaign; without rows unless only the machine differs.

    machine is the chip, or the GPU where it computes, and the campaign's name;
    break_even is the acceptance rate from which the pair gains, null where its campaign has no
    such measurement.
    """
    if len(analyses) < 2 or difference(analyses):
        return pd.DataFrame()
    return pd.concat(map(_cells, analyses), ignore_index=True)[TABLES["merged"].columns]


def _cells(analysis: Analysis) -> pd.DataFrame:
    machine = machine_of(records(analysis.campaign)[0])
    keys = [*MEASURED_BY, "target", "draft", "gamma"]
    pays = analysis.break_even.drop_duplicates(keys)
    values = ["break_even", "break_even_low", "break_even_high"]
    return (
        usual_cells(analysis)
        .merge(pays[[*keys, *values]], how="left", on=keys)
        .assign(campaign=analysis.name, machine=f"{machine} ({analysis.name})")
    )


def _matrix(analysis: Analysis) -> set[str]:
    """Return the settings that a campaign measured, as words."""
    return {"/".join(map(str, cell)) for cell in usual_cells(analysis)[CELL].to_numpy()}
