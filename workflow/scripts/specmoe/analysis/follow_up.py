"""Measurements that would decide more, and the lines for a shell that follow from an answer.

Repeats are planned by the deviation of speedups and never by their size: results do not decide what
is measured longer.
"""

import math
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np
import pandas as pd

from specmoe.analysis.intervals import Mean, mean_speedup
from specmoe.analysis.noise import session_of
from specmoe.analysis.summaries import SETTING, by_group, usual
from specmoe.config.block import Arm
from specmoe.config.methods import BY_TYPE, PARAMETERS
from specmoe.config.models import HubModel, PathModel
from specmoe.config.schema import Config, Statistics
from specmoe.engine.job import computing_flags, speculation_flags
from specmoe.files import parts_of

# With one degree of freedom a deviation is below a tenth of the true one in 8 of 100 settings.
FEWEST_REPEATS = 3
MOST_REPEATS = 30  # asked for at most: more take days


def planning_sds(pairs: pd.DataFrame) -> "pd.Series[float]":
    """Return by SETTING the deviation of its speedup that repeats are planned with.

    `pairs` are `with_speedups`. A deviation is of the logarithm, so about relative: 0.02 is 2 %. It
    is the larger of that between the setting's blocks and that of all settings of the suite and
    target, pooled, because few blocks can agree by luck.
    """

    def row(members: pd.DataFrame) -> Iterator[dict[str, Any]]:
        mean = mean_speedup(members)
        yield {"sd": mean.error * math.sqrt(mean.number), "degrees": mean.degrees}

    sds = by_group(pairs, [*SETTING, "condition"], row)
    sds["squares"] = sds["sd"] ** 2 * sds["degrees"]
    both = sds.groupby(["suite", "target"])[["squares", "degrees"]].transform("sum")
    sds["sd"] = np.fmax(sds["sd"], np.sqrt(both["squares"] / both["degrees"]))
    return usual(sds).set_index(SETTING)["sd"]


def repeats_to_decide(usable: pd.DataFrame, statistics: Statistics) -> int | None:
    """Return how many repeats of all would decide, if speedups and deviations stay; None: none.

    `usable` are the settings on the same prompts, the fastest first. That one has to gain for sure;
    if it loses, all settings that do not surely lose have to.
    """
    gains = usable["speedup"].iloc[0] > 1
    open_ones = usable.head(1) if gains else usable[~(usable["setting_high"] < 1)]
    among = len(usable) if gains else 1
    first = max(FEWEST_REPEATS, int(usable["blocks"].min()) + 1)
    sizes = abs(np.log(open_ones["speedup"].to_numpy(float)))
    sds = open_ones["planning_sd"].to_numpy(float)
    for count in range(first, MOST_REPEATS + 1):
        found = Mean(sizes, sds / math.sqrt(count), count - 1)
        if (sizes > found.reach(statistics.confidence, among, session_of(statistics))).all():
            return count if len(open_ones) else None
    return None


def launch_line(
    config: Config, target: str, setting: Mapping[str, Any] | None = None, *, gpu: bool
) -> str:
    """Return the line that starts llama-server with a target; `gpu`: whether the backend is one.

    `setting` has the columns of a run that speculates; None gives the line without speculation. The
    line has no flags that only measuring needs, such as counters and one slot.
    """
    layers = config.measurement.gpu_layers if gpu else 0
    flags = computing_flags(layers, config.measurement.engine_args)
    line = ["llama-server", "-m", model_file(config, target), *flags]
    if setting is not None:
        file = setting["draft_model"]
        parameters: dict[str, Any] = {
            name: parameter.number(setting[name])
            for name, parameter in PARAMETERS.items()
            if pd.notna(setting[name])
        }
        arm = Arm(int(setting["gamma"]), method=BY_TYPE[setting["method"]], **parameters)
        line += speculation_flags(arm, None if pd.isna(file) else model_file(config, file), layers)
    return shlex.join(line)


# What a line has for the files that configure the campaign, see `with_options`.
_CONFIGFILES = "--configfile CAMPAIGN.yaml "


def measuring_line(comparisons: Iterable[str], repeats: int) -> str:
    """Return the line that brings comparisons to so many repeats, and advises again."""
    keys = ", ".join(f"{comparison}: {repeats}" for comparison in sorted(set(comparisons)))
    wanted = shlex.quote(f"measurement={{more_repeats: {{{keys}}}}}")
    return f"snakemake --cores 1 advise {_CONFIGFILES}--config {wanted}"


def with_options(line: str, options: str) -> str:
    """Return a line with this call's `options_of_call`; minutes that it has replace those."""
    if "minutes: " in line:
        options = re.sub(r"(?<= )minutes=\S+ ", "", options)
    return line.replace(f"{_CONFIGFILES}--config ", options)


def model_file(config: Config, model: str) -> str:
    """Return where a model's file is, from the folder in which snakemake was called.

    For a split model of the hub it is the name of the first part: all parts are in the hub's cache,
    and llama.cpp finds the others by that name.
    """
    entry = config.models[model]
    if isinstance(entry, PathModel):
        return entry.path
    if isinstance(entry, HubModel) and len(parts_of(entry.file)) > 1:
        return entry.file
    return f"results/models/{config.campaign.models}/{model}.gguf"
