"""The paired protocol: a llama-server process for each side of a block, on the same prompts.

The baseline of a speculative run is the same request to a server with the same command line less
the speculation flags, so that speculation is the only difference. Where memory holds them, all
servers are live and take turns, so that a run and its baseline lie seconds apart.
"""

import logging
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from specmoe.commentary import Done
from specmoe.config.block import SEED_STEP, Arrangement, Block, History, Side, Stop
from specmoe.config.gate import Gate
from specmoe.engine.answers import DRAFTED, stopped_by
from specmoe.engine.energy import Meter, find_meter, measure_idle
from specmoe.engine.job import Job
from specmoe.engine.machine_id import host_id, load_average
from specmoe.engine.memory import bytes_together, working_bytes
from specmoe.engine.server import Server
from specmoe.engine.stream import WithheldError
from specmoe.engine.taken_away import Measured, measure_undisturbed
from specmoe.measure.live_side import LiveSide, describe_run, log_rejection, prompt_ids, started
from specmoe.measure.load import measure_loads
from specmoe.measure.turns import Turn, loads_in_turn, loads_together, turns_in_turn, turns_together

_logger = logging.getLogger(__name__)


# By prompt: the tokens of the target alone until it ends its text, and why they are no more.
_Ends = dict[str, dict[str, Any]]
# The sides, their runs, and where the target ends its texts.
_Measured = tuple[list[LiveSide], list[dict[str, Any]], _Ends]


class _MemoryExceededError(Exception):
    """The sides that are live so far leave too little memory for the others."""


def measure(block: Block, job: Job) -> dict[str, Any]:
    """Do all runs of a block and return its record: the block, its sides, the raw answers.

    Raises MeasurementError, with the end of the server's log, if any run is not a measurement.
    """
    arrangement = arrange(block, job)
    if arrangement == Arrangement.TOGETHER:
        try:
            sides, runs, ends = _measure_together(block, job)
        except _MemoryExceededError:
            _logger.info("memory does not hold all sides of %s at once", block.block)
            arrangement = Arrangement.IN_TURN
    if arrangement == Arrangement.IN_TURN:
        sides, runs, ends = _measure_in_turn(block, job)
    return {
        "protocol": "paired",
        "block": asdict(block),
        "arrangement": arrangement,
        "host": host_id(),
        "sides": [side.record() for side in sides],
        "runs": runs,
        "ends": ends,
    }


def arrange(block: Block, job: Job) -> Arrangement:
    """Return how a block's sides share the machine: as configured, or as memory allows."""
    if block.arrangement != Arrangement.AUTO:
        return block.arrangement
    if len(block.sides) == 1:
        return Arrangement.TOGETHER
    needed = bytes_together(
        job.target.stat().st_size,
        job.draft.stat().st_size if job.draft else 0,
        len(block.sides),
        sum(side.speculates for side in block.sides),
        job.backend,
        working_bytes(block.slots, block.context),
    )
    return Arrangement.TOGETHER if needed <= job.usable_memory else Arrangement.IN_TURN


def _measure_together(block: Block, job: Job) -> _Measured:
    with ExitStack() as servers:
        live: dict[Side, LiveSide] = {}
        # Those with a draft first: they need most.
        for side in sorted(block.sides, key=lambda side: not side.speculates):
            live[side] = servers.enter_context(started(block, side, job))
            if block.arrangement == Arrangement.AUTO:
                _refuse_excess(live.values(), len(block.sides), job)
        prompts = _prompts(next(iter(live.values())).server, block, job.root)
        for one in live.values():
            one.warm_up(_longest(prompts))
        runs = (
            _measure_runs(live, turns_together(block), prompts, job)
            if block.concurrency is None
            else measure_loads(live, loads_together(block), prompts)
        )
        ends = _ends(live[Side()], prompts) if Side() in live else {}
    for one in live.values():
        one.add_traces(runs)
    return [live[side] for side in block.sides], runs, ends


def _measure_in_turn(block: Block, job: Job) -> _Measured:
    ends: _Ends = {}
    sides: dict[Side, LiveSide] = {}
    runs: list[dict[str, Any]] = []
    turns, loads = turns_in_turn(block), loads_in_turn(block)
    for side in dict.fromkeys(turn.side for turn in turns):
        with started(block, side, job) as one:
            prompts = _prompts(one.server, block, job.root)
            one.warm_up(_longest(prompts))
            runs += (
                _measure_runs({side: one}, turns, prompts, job)
                if block.concurrency is None
                else measure_loads({side: one}, loads, prompts)
            )
            if not side.speculates:
                ends = _ends(one, prompts)
        one.add_traces(runs)
        sides[side] = one
    return [sides[side] for side in block.sides], runs, ends


def _measure_runs(
    live: Mapping[Side, LiveSide],
    turns: Sequence[Turn],
    prompts: Mapping[str, list[int]],
    job: Job,
) -> list[dict[str, Any]]:
    """Return those runs, one after the other, whose side is live; the sides are warm."""
    meter = _meter(next(iter(live.values())).block, job)
    return [
        _measure_run(live[turn.side], turn, prompts, order, meter)
        for order, turn in enumerate(turns)
        if turn.side in live
    ]


def _ends(one: LiveSide, prompts: Mapping[str, list[int]]) -> _Ends:
    """Return where a target alone ends its texts, as far as the block asks for that."""
    block = one.block
    ends = {}
    for source in block.ends_asked:
        ids = prompts[source.prompt]
        answer = one.generate(ids, block.n_predict, block.seed, until_end=True)
        ends[source.prompt] = {"tokens": answer["tokens"], "stopped_by": stopped_by(answer)}
    return ends


def _refuse_excess(live: Iterable[LiveSide], sides: int, job: Job) -> None:
    """Raise _MemoryExceededError if all sides as large as the largest live one exceed the memory.

    Mapped weights are shared; what a process has copied of them is its own.
    """
    private = max(one.server.private_bytes() or 0 for one in live)
    mapped = job.target.stat().st_size
    if private * sides + mapped > job.usable_memory:
        raise _MemoryExceededError


def _prompts(server: Server, block: Block, root: Path) -> dict[str, list[int]]:
    return {source.prompt: prompt_ids(server, source, block, root) for source in block.prompts}


def _longest(prompts: Mapping[str, list[int]]) -> list[int]:
    return max(prompts.values(), key=len)


def summary(runs: Sequence[Mapping[str, Any]]) -> str:
    """Return the rate of each side of a block, as text."""
    sides = dict.fromkeys(run["side"] for run in runs)
    return (
        ", ".join(
            f"{side} {_rate([run for run in runs if run['side'] == side]):.1f}" for side in sides
        )
        + " tok/s"
    )


def _rate(runs: Sequence[Mapping[str, Any]]) -> float:
    """Return the mean throughput of loads, or the rate of requests one after the other."""
    if "load_tokens_per_second" in runs[0]:
        return sum(float(run["load_tokens_per_second"]) for run in runs) / len(runs)
    answers = [run["answer"] for run in runs]
    tokens = sum(len(answer["tokens"]) - 1 for answer in answers)
    seconds = sum(float(answer["timings"]["predicted_ms"]) for answer in answers) / 1000
    return tokens / seconds if tokens else 0.0


def _meter(block: Block, job: Job) -> Meter | None:
    """Return the machine's meter of energy with its idle power; the live servers are warm."""
    found = find_meter(job.backend, block.environment.get("CUDA_VISIBLE_DEVICES", ""))
    return measure_idle(found.meter) if found.meter else None


def _measure_run(
    one: LiveSide,
    turn: Turn,
    prompts: Mapping[str, list[int]],
    order: int,
    meter: Meter | None,
) -> dict[str, Any]:
    block, ids = one.block, prompts[turn.source.prompt]
    seed = block.run_seed(turn.number)
    if turn.side.imposed_rates is not None:
        # The engine draws what it accepts from the seed: with one seed all runs would draw alike,
        # and more of them would come no closer to the rates.
        seed += SEED_STEP * (1 + block.repeat * block.runs + order)
    name = block.run_id(turn.side, turn.source.prompt, turn.number)
    load = load_average()
    gate = Gate.model_validate(block.gate)
    if turn.side.history == History.EARLIER:
        # A second attempt would have seen the text of the first.
        gate = gate.model_copy(update={"retries": 0})

    def measure_it(*, streamed: bool) -> Measured[dict[str, Any]]:
        return measure_undisturbed(
            lambda: _attempt(one, ids, seed, streamed=streamed),
            lambda: one.prepare(turn.number, _longest(prompts))._replace(meter=meter),
            gate,
            log_rejection(block, name),
        )

    try:
        measured = measure_it(streamed=block.streams)
    except WithheldError as error:
        _logger.info("run %s is measured again without a stream: %s", name, error)
        measured = measure_it(streamed=False)
    run = {
        "run": name,
        "side": turn.side.name,
        "prompt": turn.source.prompt,
        "workload": turn.source.workload,
        "category": turn.source.category,
        "pass": turn.number,
        "order": order,
        "seed": seed,
        "load_average": load,
        **measured.result,
        "measured_again": measured.measured_again,
        "taken_away": measured.taken_away,
        **measured.observation._asdict(),
    }
    # A text of a single token needs no round.
    several = len(run["answer"]["tokens"]) > 1
    if one.must_draft and several and not run["metrics"].get(DRAFTED):
        raise one.server.fault(f"run {name}: the server drafted nothing; its draft is not in use")
    _logger.debug(describe_run(block, run), extra={"event": Done(order + 1)})
    return run


def _attempt(one: LiveSide, ids: list[int], seed: int, *, streamed: bool) -> dict[str, Any]:
    """Return what one request gave: the answer, the time, and how the server's counters moved."""
    before, failures = one.server.metrics(), one.server.decode_failures()
    started_at = datetime.now(UTC)
    clock = time.perf_counter()
    answer = one.generate(
        ids,
        one.block.n_predict,
        seed,
        until_end=one.block.stop == Stop.EOS,
        streamed=streamed,
    )
    wall_ms = (time.perf_counter() - clock) * 1000
    after = one.server.metrics()
    prompts_before = one.prompts_before
    if prompts_before is not None:
        one.prompts_before = prompts_before + 1
    return {
        "process": one.processes - 1,
        "request": one.requests - 1,  # of its server, warm-ups included
        "prompts_before": prompts_before,
        "started_at": started_at.isoformat(),
        "wall_ms": wall_ms,
        "metrics": {name: value - before.get(name, 0) for name, value in after.items()},
        "decode_failures": one.server.decode_failures() - failures,
        "answer": answer,
    }
