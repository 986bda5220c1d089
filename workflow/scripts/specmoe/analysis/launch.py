"""Lines to be pasted into a shell: llama-server as it was measured, and more repeats."""

import shlex
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from specmoe.config.block import Arm
from specmoe.config.methods import BY_TYPE, PARAMETERS
from specmoe.config.models import HubModel, PathModel
from specmoe.config.schema import Config
from specmoe.engine.job import computing_flags, speculation_flags
from specmoe.files import parts_of


def launch_line(
    config: Config, target: str, setting: Mapping[str, Any] | None = None, *, gpu: bool
) -> str:
    """Return the line for a target alone, or with what a run that drafts had; `gpu`: the backend.

    `setting` has the columns of such a run. The line has the flags of speculation, of the GPU and
    of options as they were measured. It leaves out flags that only measuring needs, such as
    counters and one slot.
    """
    layers = config.measurement.gpu_layers if gpu else 0
    flags = computing_flags(layers, config.measurement.engine_args)
    words = ["llama-server", "-m", file_of(config, target), *flags]
    if setting is not None:
        file = setting["draft_model"]
        file = None if pd.isna(file) else file_of(config, file)
        given_to = {name: setting[name] for name in PARAMETERS if pd.notna(setting[name])}
        numbers: dict[str, Any] = {
            name: PARAMETERS[name].number(value) for name, value in given_to.items()
        }
        arm = Arm(int(setting["gamma"]), method=BY_TYPE[setting["method"]], **numbers)
        words += speculation_flags(arm, file, layers)
    return shlex.join(words)


CONFIGFILES = "--configfile CAMPAIGN.yaml "
"""What a line to be pasted has for the files that configure the campaign, see `with_files`."""


def measuring_line(comparisons: Iterable[str], repeats: int) -> str:
    """Return the line that brings comparisons to so many repeats, and advises again."""
    keys = ", ".join(f"{comparison}: {repeats}" for comparison in sorted(set(comparisons)))
    wanted = shlex.quote(f"measurement={{more_repeats: {{{keys}}}}}")
    return f"snakemake --cores 1 advise {CONFIGFILES}--config {wanted}"


def with_files(line: str, files: Iterable[Path]) -> str:
    """Return a line with the files that configured this call of snakemake; there may be none."""
    named = shlex.join(map(str, files))
    return line.replace(CONFIGFILES, f"--configfile {named} " if named else "")


def file_of(config: Config, model: str) -> str:
    """Return where a model's file is, from the folder in which snakemake was called.

    For a split model of the hub it is the name of the first part. All parts are in the hub's cache,
    and llama.cpp finds the others by that name.
    """
    entry = config.models[model]
    if isinstance(entry, PathModel):
        return entry.path
    if isinstance(entry, HubModel) and len(parts_of(entry.file)) > 1:
        return entry.file
    return f"results/models/{config.campaign.models}/{model}.gguf"
