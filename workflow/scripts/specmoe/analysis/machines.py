"""Several machines in one campaign: each of them by itself, and the machine as what varies.

A block compares its runs on one machine, so a speedup is always within a machine. Machines of one
kind differ less than their blocks do, or a campaign would not call them one kind. Machines of any
kind may have speedups of their own: more blocks then do not tell what another machine would
measure, only more machines do. `tests/benchmarks/interval_coverage.py` shows how often either
interval holds the truth.
"""

from collections.abc import Mapping
from typing import Any

import pandas as pd

from specmoe.analysis.registry import TABLES
from specmoe.analysis.sittings import joined_blocks
from specmoe.analysis.summaries import CELL, summarise_cells
from specmoe.config.backend import Backend
from specmoe.config.schema import Config, Hosts, Statistics


def machine_varies(runs: pd.DataFrame, config: Config) -> bool:
    """Return whether the machine is what varies in a campaign: several measured, of any kind."""
    return config.campaign.hosts == Hosts.ANY and runs["host"].nunique() > 1


def by_machine(runs: pd.DataFrame) -> pd.DataFrame:
    """Return runs in which all blocks of a comparison on one machine are a single block."""
    return joined_blocks(runs, runs["host"])


def machine_of(campaign: Mapping[str, Any]) -> str:
    """Return the name of what computed in a campaign, from the row of `Analysis.campaign`."""
    gpu, backend = campaign.get("host_gpu"), str(campaign["backend"])
    return computing_chip(str(campaign["host_chip"]), gpu, backend)


def computing_chip(chip: str, gpu: str | float | None, backend: str) -> str:
    """Return the name of what computes: the processor, or the GPU (null if none) if that does."""
    return chip if backend == Backend.CPU or pd.isna(gpu) else str(gpu)


def cells_of_machines(
    compared: pd.DataFrame, cells: pd.DataFrame, host: Mapping[str, Any], settings: Statistics
) -> pd.DataFrame:
    """Return one row per cell and machine; without rows where one machine measured all.

    `compared` is `with_speedups`'s frame as measured, `cells` is `summarise_cells` of all machines,
    `host` is `host.json`. machine is `computing_chip`, with the id where several
    machines have it; speedup has an interval over the machine's own blocks, null with a single one;
    of_all is that of all machines.
    """
    if compared.empty or compared["host"].nunique() < 2:
        return pd.DataFrame(columns=TABLES["machines"].columns)
    frame = summarise_cells(compared, settings, [*CELL, "host"])
    of_all = cells.rename(columns=lambda name: name.replace("speedup", "of_all"))
    known = {one["id"]: one for one in host.get("machines", [host])}
    chips = frame["host"].map(lambda name: known.get(name, {}).get("chip") or name)
    gpus = frame["host"].map(lambda name: known.get(name, {}).get("gpu"))
    backends = frame["host"].map(compared.groupby("host")["backend"].first())
    named = pd.Series(map(computing_chip, chips, gpus, backends), index=frame.index)
    shared = frame["host"].groupby(named).transform("nunique") > 1
    machine = named.where(~shared, named + " (" + frame["host"] + ")")
    return frame.assign(chip=chips, gpu=gpus, machine=machine).merge(
        of_all[[*CELL, "of_all", "of_all_low", "of_all_high"]], how="left", on=CELL
    )[TABLES["machines"].columns]
