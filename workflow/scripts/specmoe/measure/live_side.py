"""One side of a block: its llama-server, from the first request to the log of the ended process."""

import math
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, astuple
from pathlib import Path
from typing import Any

from specmoe.config.backend import Backend
from specmoe.config.block import Block, PromptSource, Side
from specmoe.engine.job import Job
from specmoe.engine.machine_id import physical_cores
from specmoe.engine.server import Server
from specmoe.engine.server_log import read_draft_times, read_trace
from specmoe.engine.taken_away import Watch
from specmoe.errors import MeasurementError

CONTEXT_STEP = 256  # llama.cpp rounds the context up (src/llama-context.cpp)
CACHE_TYPES = ("f16",)  # llama.cpp's default
VOCABULARY_FAULT = "the target and draft vocabs are not compatible"
# A warm-up is the last if it takes no less than this share of the one before.
SETTLED = 0.95
# Tokens of the prompt that a warm-up reads. Reading whole prompts took four fifths of the demo's
# warm-ups, and what settles is the rate of decoding.
WARM_UP_PROMPT = 32


class LiveSide:
    """A side whose server runs, or has run; it counts the requests of the server's log."""

    def __init__(self, block: Block, side: Side, server: Server, start_ms: float, backend: Backend):
        """Take over a started server; raises MeasurementError if it is not as the side asks."""
        self.block, self.side, self.server = block, side, server
        self.start_ms = start_ms
        self.settings = server.settings()
        self.warm_ups: list[dict[str, float]] = []
        self.private_bytes: int | None = None
        self.watch = Watch(
            server.pid,
            block.threads or physical_cores(),
            backend,
            block.environment.get("CUDA_VISIBLE_DEVICES", ""),
        )
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
            answer = self.generate(ids[:WARM_UP_PROMPT], self.block.warmup_tokens, self.block.seed)
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
            "start_ms": self.start_ms,
            "warm_ups": self.warm_ups,
            "warm_up_ms": sum(one["wall_ms"] for one in self.warm_ups),
            "private_bytes": self.private_bytes,
            "peak_rss_bytes": self.server.peak_rss_bytes,
        }


def _settled(times: Sequence[float]) -> bool:
    return len(times) > 1 and times[-1] >= SETTLED * times[-2]


@contextmanager
def started(block: Block, side: Side, job: Job) -> Iterator[LiveSide]:
    """Start a side's server, and end it when the context ends."""
    clock = time.perf_counter()
    with job.server(job.command(block, side), block, job.log_of(side)) as server:
        yield LiveSide(block, side, server, (time.perf_counter() - clock) * 1000, job.backend)


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


def add_traces(one: LiveSide, runs: list[dict[str, Any]]) -> None:
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


def _refuse_unlike_vocabularies(one: LiveSide) -> None:
    # llama-server logs this fault and continues without speculation.
    if one.side.speculates and VOCABULARY_FAULT in one.server.log_text():
        raise one.server.fault(
            f"draft {one.block.draft} and target {one.block.target} have different vocabularies;"
            " choose a draft of the target's family"
        )


def _refuse_other_settings(one: LiveSide) -> None:
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
