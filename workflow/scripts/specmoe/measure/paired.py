"""The paired protocol: a llama-server process for each side of a block, on the same prompts.

The baseline of a speculative run is the same request to a server with the same command line less
the speculation flags, so that speculation is the only difference. Where memory holds them, all
servers are live and take turns, so that a run and its baseline lie seconds apart.
"""

import logging
import math
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, astuple
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from specmoe.config.block import Arrangement, Block, PromptSource, Side
from specmoe.engine.counters import ACCEPTED, DRAFTED, tokens_per_second
from specmoe.engine.job import Job
from specmoe.engine.machine_id import host_id, load_average
from specmoe.engine.memory import bytes_together
from specmoe.engine.server import Server
from specmoe.engine.server_log import read_draft_times, read_trace
from specmoe.errors import MeasurementError
from specmoe.measure.turns import Turn, turns_in_turn, turns_together

CONTEXT_STEP = 256  # llama.cpp rounds the context up (src/llama-context.cpp)
CACHE_TYPES = ("f16",)  # llama.cpp's default
VOCABULARY_FAULT = "the target and draft vocabs are not compatible"
# A warm-up is the last if it takes no less than this share of the one before.
SETTLED = 0.95
# Seeds of a run's further passes at a temperature, beyond any number of repeats.
SEED_STEP = 1000

_logger = logging.getLogger(__name__)


class _MemoryExceededError(Exception):
    """The sides that are live so far leave too little memory for the others."""


def measure(block: Block, job: Job) -> dict[str, Any]:
    """Do all runs of a block and return its record: the block, its sides, the raw answers.

    Raises MeasurementError, with the end of the server's log, if any run is not a measurement.
    """
    arrangement = arrange(block, job)
    if arrangement == Arrangement.TOGETHER:
        try:
            sides, runs = _measure_together(block, job)
        except _MemoryExceededError:
            _logger.info("memory does not hold all sides of %s at once", block.block)
            arrangement = Arrangement.IN_TURN
    if arrangement == Arrangement.IN_TURN:
        sides, runs = _measure_in_turn(block, job)
    return {
        "protocol": "paired",
        "block": asdict(block),
        "arrangement": arrangement,
        "host": host_id(),
        "sides": [side.record() for side in sides],
        "runs": runs,
    }


def arrange(block: Block, job: Job) -> Arrangement:
    """Return how a block's sides share the machine: as configured, or as memory allows."""
    if block.arrangement != Arrangement.AUTO:
        return block.arrangement
    if len(block.sides) == 1:
        return Arrangement.IN_TURN
    needed = bytes_together(
        job.target.stat().st_size,
        job.draft.stat().st_size if job.draft else 0,
        len(block.sides),
        sum(side.speculates for side in block.sides),
        job.backend,
    )
    return Arrangement.TOGETHER if needed <= job.usable_memory else Arrangement.IN_TURN


class _LiveSide:
    """A side whose server runs, or has run; it counts the requests of the server's log."""

    def __init__(self, block: Block, side: Side, server: Server, start_s: float):
        self.block, self.side, self.server = block, side, server
        self.start_s = start_s
        self.settings = server.settings()
        self.warm_ups: list[dict[str, float]] = []
        self.private_bytes: int | None = None
        self.requests = 0
        _refuse_unlike_vocabularies(self)
        _refuse_other_settings(self)

    def generate(self, ids: list[int], n_predict: int, seed: int) -> dict[str, Any]:
        """Return the answer to a prompt of the block, see `generate`."""
        self.requests += 1
        return generate(self.server, self.block, ids, n_predict, seed)

    def warm_up(self, ids: list[int]) -> None:
        """Send short requests until one is no faster than the one before."""
        times: list[float] = []
        while len(times) < self.block.warmups and not _settled(times):
            clock = time.perf_counter()
            answer = self.generate(ids, self.block.warmup_tokens, self.block.seed)
            wall_ms = (time.perf_counter() - clock) * 1000
            times.append(answer["timings"]["predicted_ms"])
            self.warm_ups.append(
                {"wall_ms": wall_ms, "prompt_ms": answer["timings"]["prompt_ms"]}
                | {"decode_ms": times[-1]}
            )
        self.private_bytes = self.server.private_bytes()

    def record(self) -> dict[str, Any]:
        """Return what the block's record holds of the side once its server has ended."""
        return {
            "side": self.side.name,
            **asdict(self.side),
            "command": self.server.command,
            "environment": self.server.environment,
            "server": self.settings._asdict(),
            "start_s": self.start_s,
            "warm_ups": self.warm_ups,
            "private_bytes": self.private_bytes,
            "peak_rss_bytes": self.server.peak_rss_bytes,
        }


def _settled(times: Sequence[float]) -> bool:
    return len(times) > 1 and times[-1] >= SETTLED * times[-2]


@contextmanager
def _started(block: Block, side: Side, job: Job) -> Iterator[_LiveSide]:
    clock = time.perf_counter()
    with job.server(job.command(block, side), block, job.log_of(side)) as server:
        yield _LiveSide(block, side, server, time.perf_counter() - clock)


def _measure_together(block: Block, job: Job) -> tuple[list[_LiveSide], list[dict[str, Any]]]:
    with ExitStack() as servers:
        live: dict[Side, _LiveSide] = {}
        # Those with a draft first: they need most.
        for side in sorted(block.sides, key=lambda side: not side.speculates):
            live[side] = servers.enter_context(_started(block, side, job))
            if block.arrangement == Arrangement.AUTO:
                _refuse_excess(live.values(), len(block.sides), job)
        prompts = _prompts(next(iter(live.values())).server, block, job.root)
        for one in live.values():
            one.warm_up(_longest(prompts))
        runs = [
            _measure_run(live[turn.side], turn, prompts[turn.source.prompt], order)
            for order, turn in enumerate(turns_together(block))
        ]
    for one in live.values():
        _add_traces(one, runs)
    return [live[side] for side in block.sides], runs


def _measure_in_turn(block: Block, job: Job) -> tuple[list[_LiveSide], list[dict[str, Any]]]:
    sides: dict[Side, _LiveSide] = {}
    runs: list[dict[str, Any]] = []
    turns = turns_in_turn(block)
    for side in dict.fromkeys(turn.side for turn in turns):
        with _started(block, side, job) as one:
            prompts = _prompts(one.server, block, job.root)
            one.warm_up(_longest(prompts))
            runs += [
                _measure_run(one, turn, prompts[turn.source.prompt], order)
                for order, turn in enumerate(turns)
                if turn.side == side
            ]
        _add_traces(one, runs)
        sides[side] = one
    return [sides[side] for side in block.sides], runs


def _refuse_excess(live: Iterable[_LiveSide], sides: int, job: Job) -> None:
    """Raise _MemoryExceededError if all sides as large as the largest live one exceed the memory.

    Mapped weights are shared; what a process has copied of them is its own.
    """
    private = [one.server.private_bytes() for one in live]
    mapped = job.target.stat().st_size
    if max(known or 0 for known in private) * sides + mapped > job.usable_memory:
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
            f"{side} {_rate([run['answer'] for run in runs if run['side'] == side]):.1f}"
            for side in sides
        )
        + " tok/s"
    )


def _rate(answers: Sequence[Mapping[str, Any]]) -> float:
    tokens = sum(len(answer["tokens"]) - 1 for answer in answers)
    seconds = sum(float(answer["timings"]["predicted_ms"]) for answer in answers) / 1000
    return tokens / seconds


def prompt_ids(server: Server, source: PromptSource, block: Block, root: Path) -> list[int]:
    """Return the token ids of a prompt in the target's vocabulary, cut to the prompt's length.

    Raises MeasurementError if the text is shorter than that, or the context too small for the
    prompt and what the block generates.
    """
    ids = server.tokenize((root / source.file).read_text(encoding="utf-8").rstrip("\n"))
    if source.length is not None:
        if len(ids) < source.length:
            raise MeasurementError(
                f"{source.file} has {len(ids)} tokens in the vocabulary of {block.target}, fewer"
                f" than the {source.length} of prompt {source.prompt}; give a longer passage"
            )
        ids = ids[: source.length]
    gamma = max(side.gamma for side in block.sides)
    if len(ids) + block.n_predict + gamma > block.context:
        raise MeasurementError(
            f"prompt {source.prompt} has {len(ids)} tokens; with {block.n_predict} generated and"
            f" {gamma} drafted they exceed measurement.context = {block.context}"
        )
    return ids


def _measure_run(one: _LiveSide, turn: Turn, ids: list[int], order: int) -> dict[str, Any]:
    block, server, prompt = one.block, one.server, turn.source.prompt
    seed = block.seed + (SEED_STEP * turn.number if block.temperature > 0 else 0)
    name = block.run_id(turn.side, prompt, turn.number)
    started_at = datetime.now(UTC)
    load = load_average()
    before, failures = server.metrics(), server.decode_failures()
    clock = time.perf_counter()
    answer = one.generate(ids, block.n_predict, seed)
    wall_ms = (time.perf_counter() - clock) * 1000
    after = server.metrics()
    counters = {name: value - before.get(name, 0) for name, value in after.items()}
    if turn.side.speculates and not counters.get(DRAFTED):
        raise server.fault(f"run {name}: the server drafted nothing; its draft is not in use")
    run = {
        "run": name,
        "side": turn.side.name,
        "prompt": prompt,
        "pass": turn.number,
        "order": order,
        "seed": seed,
        "request": one.requests - 1,  # of its server, warm-ups included
        "started_at": started_at.isoformat(),
        "load_average": load,
        "wall_ms": wall_ms,
        "metrics": counters,
        "decode_failures": server.decode_failures() - failures,
        "answer": answer,
    }
    _logger.debug(_progress(block, run))
    return run


def _add_traces(one: _LiveSide, runs: list[dict[str, Any]]) -> None:
    """Add to each run of a side its verifications and drafting time from the ended server's log."""
    if not one.side.speculates:
        return
    log = one.server.log_text()
    traces, draft_times = read_trace(log), read_draft_times(log)
    for what, logged in (("verifications", traces), ("drafting times", draft_times)):
        if len(logged) != one.requests:
            raise one.server.fault(
                f"the log has {what} of {len(logged)} of {one.requests} requests"
            )
    for run in runs:
        if run["side"] == one.side.name:
            run["verifications"] = [astuple(step) for step in traces[run["request"]]]
            run["draft_ms"] = draft_times[run["request"]]


def generate(
    server: Server, block: Block, ids: list[int], n_predict: int, seed: int
) -> dict[str, Any]:
    """Return the server's answer to a prompt of a block, see `Server.complete`.

    Raises MeasurementError unless it read the whole prompt and generated `n_predict` tokens.
    """
    answer = server.complete(ids, n_predict=n_predict, temperature=block.temperature, seed=seed)
    generated = len(answer["tokens"])
    if generated != n_predict:
        raise server.fault(f"short output: {generated} tokens instead of {n_predict}")
    if answer["timings"]["prompt_n"] != len(ids):
        raise server.fault(
            f"the server read {answer['timings']['prompt_n']} prompt tokens of {len(ids)}"
        )
    return answer


def _refuse_unlike_vocabularies(one: _LiveSide) -> None:
    # llama-server logs this fault and continues without speculation.
    if one.side.speculates and VOCABULARY_FAULT in one.server.log_text():
        raise one.server.fault(
            f"draft {one.block.draft} and target {one.block.target} have different vocabularies;"
            " choose a draft of the target's family"
        )


def _refuse_other_settings(one: _LiveSide) -> None:
    """Raise MeasurementError unless the server's settings are those of the block."""
    block, settings = one.block, one.settings
    rounded_up = math.ceil(block.context / CONTEXT_STEP) * CONTEXT_STEP
    checks: list[tuple[str, object, list[object]]] = [
        ("slots", settings.slots, [1]),
        ("tokens of context", settings.context, [block.context, rounded_up]),
        ("speculative", settings.speculative, [one.side.speculates]),
        # A model without attention has no cache.
        ("types of the cache", settings.cache_types, [CACHE_TYPES, ()]),
    ]
    for what, found, allowed in checks:
        if found not in allowed:
            raise one.server.fault(
                f"block {block.block} is not measured: llama-server reports {what} = {found},"
                f" side {one.side.name} asks for {allowed[0]}"
            )


def _progress(block: Block, run: dict[str, Any]) -> str:
    metrics, rate = run["metrics"], tokens_per_second(run["answer"])
    line = f"run {run['order'] + 1} of {block.runs}: {run['run']}: {rate:.1f} tok/s"
    if drafted := metrics.get(DRAFTED):
        line += f", acceptance {metrics.get(ACCEPTED, 0) / drafted:.1%}"
    return line
