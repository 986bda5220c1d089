"""The paired protocol: a llama-server process for each side of a block, on the same prompts.

Speculation flags are the only difference of a run and its baseline. Where memory holds them, all
servers are live and take turns, so that the two are seconds apart.
"""

import logging
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from typing import Any

from specmoe.config.block import Arrangement, Block, Side
from specmoe.config.measurement import Gate
from specmoe.engine.disturbances import measure_undisturbed
from specmoe.engine.job import Job
from specmoe.engine.machine import bytes_together, host_id
from specmoe.measure.live_side import LiveSide, describe_run, started
from specmoe.measure.load import measure_load
from specmoe.measure.requests import prompt_ids
from specmoe.measure.turns import Turn, about_run, turns_in_turn, turns_together

_logger = logging.getLogger(__name__)


Run = dict[str, Any]
# By prompt: the tokens of the target alone until it ends its text, and why they are no more.


class _MemoryExceededError(Exception):
    """The sides that are live so far leave too little memory for the others."""


def measure(block: Block, job: Job) -> dict[str, Any]:
    """Do all runs of a block and return its record: its sides, and the raw answers.

    Raises MeasurementError, with the end of the server's log, if any run is not a measurement.
    """
    arrangement = arrange(block, job)
    try:
        measured = _measure_sides(block, job, arrangement)
    except _MemoryExceededError:
        _logger.info("memory does not hold all sides of %s at once", block.block)
        arrangement = Arrangement.IN_TURN
        measured = _measure_sides(block, job, arrangement)
    return {"arrangement": arrangement, "host": host_id(), **measured}


def arrange(block: Block, job: Job) -> Arrangement:
    """Return how a block's sides share the machine: as configured, or as memory allows."""
    if block.arrangement != Arrangement.AUTO:
        return block.arrangement
    if len(block.sides) == 1:
        return Arrangement.TOGETHER
    files = {**job.drafts, block.target: job.target}
    sizes = {model: file.stat().st_size for model, file in files.items()}
    needed = bytes_together(block, block.sides, sizes, job.backend)
    return Arrangement.TOGETHER if needed <= job.usable_memory else Arrangement.IN_TURN


def _measure_sides(block: Block, job: Job, arrangement: Arrangement) -> dict[str, Any]:
    """Return the sides, and their runs in order."""
    if arrangement == Arrangement.TOGETHER:
        turns = turns_together(block)
        # Those with a draft start first: they need most.
        groups = [sorted(block.sides, key=lambda side: not side.speculates)]
    else:
        turns = turns_in_turn(block)
        groups = [[side] for side in dict.fromkeys(turn.side for turn in turns)]
    sides: dict[Side, LiveSide] = {}
    runs: list[Run] = []
    for group in groups:
        live, of_group = _measure_group(group, turns, block, job)
        sides |= live
        runs += of_group
    return {"sides": [sides[side].record() for side in block.sides], "runs": runs}


def _measure_group(
    group: Sequence[Side], turns: Sequence[Turn], block: Block, job: Job
) -> tuple[dict[Side, LiveSide], list[Run]]:
    """Return some sides that are live at once, and their runs."""
    live: dict[Side, LiveSide] = {}
    with ExitStack() as servers:
        for side in group:
            live[side] = servers.enter_context(started(block, side, job))
            if block.arrangement == Arrangement.AUTO and len(group) > 1:
                _refuse_excess(live.values(), len(group), job)
        server = live[group[0]].server
        prompts = {one.prompt: prompt_ids(server, one, block, job.root) for one in block.prompts}
        for one in live.values():
            one.prompts = prompts
            one.warm_up()
        runs = _measure_turns(live, turns, job)
    for one in live.values():
        one.add_traces(runs)
    return live, runs


def _measure_turns(live: Mapping[Side, LiveSide], turns: Sequence[Turn], job: Job) -> list[Run]:
    """Return the runs of those turns whose side is live; the sides are warm."""
    block = next(iter(live.values())).block
    at_once = block.concurrency is not None
    runs = []
    for number, turn in enumerate(turns):
        if turn.side in live:
            one, order = live[turn.side], number * len(turn.sources)
            runs += measure_load(one, turn, order) if at_once else [_measure_run(one, turn, order)]
    return runs


def _refuse_excess(live: Iterable[LiveSide], sides: int, job: Job) -> None:
    """Raise _MemoryExceededError if all sides as large as the largest live one exceed the memory.

    Mapped weights are shared; what a process has copied of them is its own.
    """
    private = max(one.server.private_bytes() or 0 for one in live)
    mapped = job.target.stat().st_size
    if private * sides + mapped > job.usable_memory:
        raise _MemoryExceededError


def summary(runs: Sequence[Mapping[str, Any]]) -> str:
    """Return the rate of each side of a block, as text."""
    by_side: dict[str, list[Mapping[str, Any]]] = {}
    for run in runs:
        by_side.setdefault(run["side"], []).append(run)
    rates = [f"{side} {_rate(of_side):.1f}" for side, of_side in by_side.items()]
    return f"{', '.join(rates)} tok/s"


def _rate(runs: Sequence[Mapping[str, Any]]) -> float:
    """Return the mean throughput of loads, or the rate of requests one after the other."""
    if "load_tokens_per_second" in runs[0]:
        return sum(float(run["load_tokens_per_second"]) for run in runs) / len(runs)
    answers = [run["answer"] for run in runs]
    tokens = sum(len(answer["tokens"]) - 1 for answer in answers)
    seconds = sum(float(answer["timings"]["predicted_ms"]) for answer in answers) / 1000
    return tokens / seconds if tokens else 0.0


def _measure_run(one: LiveSide, turn: Turn, order: int) -> Run:
    block, [source] = one.block, turn.sources
    seed = block.run_seed(turn.number)
    about = about_run(block, turn, source, order) | {"seed": seed}
    measured = measure_undisturbed(
        lambda: _attempt(one, source.prompt, seed),
        one.prepare,
        Gate.model_validate(block.gate),
        lambda at, why: _logger.debug("attempt %d at %s: %s", at, about["run"], why),
    )
    run = about | measured.result | measured.columns
    if len(run["answer"]["tokens"]) > 1:  # a single one needs no round
        one.refuse_undrafted(f"run {run['run']}", run["metrics"])
    _logger.debug(describe_run(block, run))
    return run


def _attempt(one: LiveSide, prompt: str, seed: int) -> Run:
    """Return what one request gave, and how the server's counters moved."""
    before, failures = one.server.metrics(), one.server.decode_failures()
    run = one.measure(prompt, seed)
    after = one.server.metrics()
    return run | {
        "metrics": {name: value - before.get(name, 0) for name, value in after.items()},
        "decode_failures": one.server.decode_failures() - failures,
    }
