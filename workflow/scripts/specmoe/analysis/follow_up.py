"""Measurements that would decide more, and the lines for a shell that follow from an answer."""

import math
import shlex
from collections.abc import Mapping
from enum import StrEnum
from typing import Any

import numpy as np
import pandas as pd
import yaml

from specmoe.analysis.decision import Answer, confidence_of_look, find_answer, find_ends
from specmoe.analysis.intervals import SAME_SESSION, Mean, Session
from specmoe.config.block import Arm
from specmoe.config.methods import PARAMETERS, methods_of
from specmoe.config.models import HubModel, PathModel
from specmoe.config.schema import Config, Repeats
from specmoe.engine.job import computing_flags, speculation_flags
from specmoe.files import parts_of
from specmoe.yaml_files import in_a_word

MOST_REPEATS = 30  # asked for at most: more take days


class Need(StrEnum):
    """What would help where an answer is undecided, or about the prompts that were sent alone."""

    REPEATS = "more repeats"
    MINUTES = "more minutes"  # which ended the repeats
    PROMPTS = "more prompts"
    DAY = "another day"  # the session's part outweighs what repeats leave unsure


def what_helps(
    answer: Answer, usable: pd.DataFrame, dropped: int, session: Session, config: Config
) -> tuple[Need | None, int | None]:
    """Return what would help an answer, and how many more repeats of all if it is these.

    `usable` are the settings that it was chosen from, and so many that were dropped. Speedups are
    taken to stay, and their errors to shrink as the root of repeats grows.
    """
    if answer == Answer.HERE:
        return Need.PROMPTS, None
    if answer != Answer.UNDECIDED:
        return None, None
    asked, done = config.measurement, int(usable["repeats"].min())
    confidence = confidence_of_look(config.statistics.confidence, asked.looks)

    def decides(repeats: int, session: Session) -> bool:
        logs = np.log(usable["speedup"].to_numpy(float))
        errors = usable["these_error"].to_numpy(float) * math.sqrt(done / repeats)
        mean = Mean(logs, errors, usable["these_degrees"].to_numpy(float) * repeats / done)
        # A gain on these prompts is an answer, whatever is known of others.
        ends = find_ends(mean, mean, confidence, len(usable) + dropped, session)
        return str(find_answer(ends)) != Answer.UNDECIDED

    for repeats in range(done + 1, MOST_REPEATS + 1):
        if decides(repeats, session):
            ended = asked.minutes is not None and done < asked.most
            return Need.MINUTES if ended else Need.REPEATS, repeats - done
    return (Need.DAY if decides(MOST_REPEATS, SAME_SESSION) else None), None


def launch_line(config: Config, target: str, run: Mapping[str, Any], *, gpu: bool) -> str:
    """Return the line that starts llama-server with a target; `gpu`: whether the backend is one.

    `run` has the columns of a run; without a method it gives the line without speculation. The line
    has no flags that only measuring needs, such as counters and one slot.
    """
    layers = config.measurement.gpu_layers if gpu else 0
    words = tuple(shlex.split(run["engine_options"]))
    flags = computing_flags(layers, words)
    if config.measurement.memory:  # of which the context takes a part
        flags += ["--ctx-size", str(config.measurement.context)]
    line = ["llama-server", "-m", model_file(config, target), *flags]
    if "method" in run:
        file = run["draft_model"]
        given = {name: run[name] for name in PARAMETERS if pd.notna(run.get(name))}
        method, partner = (*methods_of(run["method"]), None)[:2]
        arm = Arm(run["gamma"], method=method, partner=partner, engine_args=words, **given)
        line += speculation_flags(arm, None if pd.isna(file) else model_file(config, file), layers)
    return shlex.join(line)


# What a line has for the files that configure the campaign, see `with_options`.
_CONFIGFILES = "--configfile CAMPAIGN.yaml "


def measuring_line(config: Config, done: int, more: int) -> str:
    """Return the line that measures so many repeats more than were done, and advises again."""
    asked, repeats = config.measurement, str(done + more)
    if isinstance(asked.repeats, Repeats):
        repeats = f"{{most: {max(done + more, asked.repeats.most)}}}"
    words = [f"measurement={{repeats: {repeats}}}"]
    if asked.minutes:
        words.insert(0, f"minutes={math.ceil(asked.minutes * (done + more) / done)}")
    return f"snakemake --cores 1 advise {_CONFIGFILES}--config {shlex.join(words)}"


def with_options(line: str, options: str) -> str:
    """Return a line with this call's `options_of_call`; what it has itself replaces theirs."""
    start, place, own = line.partition(f"{_CONFIGFILES}--config ")
    files, option, given = options.rpartition("--config ")
    words: dict[str, str] = {}
    for word in shlex.split(given + own) if place else ():
        key, _, value = word.partition("=")
        sections = [yaml.safe_load(text) for text in (words.pop(key, ""), value)]
        whole = isinstance(sections[0], dict) and isinstance(sections[1], dict)
        words[key] = in_a_word(sections[0] | sections[1]) if whole else value
    said = shlex.join(f"{key}={value}" for key, value in words.items())
    return f"{start}{files}{option}{said}" if place else line


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
