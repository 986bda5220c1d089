"""A steady load: several clients keep one server busy, and some of their requests are measured.

A load is one arm of a block in one iteration through its prompts. Each client has a slot of the
server and sends its next request as soon as the last has ended: *fillers* of different lengths that
do not count; once every client has had a token, each prompt of the block; then fillers until the
last measured request has ended. The throughput is of all clients, from the first measured request
to the end of the last.
"""

import logging
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any

from specmoe.config.block import PromptSource
from specmoe.engine.disturbance import measure_undisturbed
from specmoe.engine.responses import DECODES, PROCESSING
from specmoe.engine.server import Options
from specmoe.measure.arm import LiveArm, describe_run

# Fewest tokens of a filler: the second shows that its client generates.
_SHORTEST_FILLER = 2
_POLL_S = 0.005
# The server gives up a request soon after its connection has closed.
_RELEASE_LIMIT_S = 60.0

_logger = logging.getLogger(__name__)


@dataclass
class _Load:
    """One attempt at a load; `lock` guards what its clients share."""

    arm: LiveArm
    sources: Sequence[PromptSource]  # the prompts to measure, in order
    seed: int  # of all its requests
    waiting: list[PromptSource]  # those that are still to be measured
    lock: threading.Lock = field(default_factory=threading.Lock)
    # The counters, read before the first measured request is sent, or passes would be missed.
    before: dict[str, float] = field(default_factory=dict)
    generating: set[int] = field(default_factory=set)  # slots that have had a token
    # By a clock of seconds: the first measured request was sent; None before.
    began: float | None = None
    measured: list[dict[str, Any]] = field(default_factory=list)
    # Of each filler's tokens: when they came, and how many.
    filled: list[tuple[float, int]] = field(default_factory=list)
    fillers: int = 0
    ended: threading.Event = field(default_factory=threading.Event)  # all measured, or an error
    closed: threading.Event = field(default_factory=threading.Event)  # clients stop

    @property
    def steady(self) -> bool:
        """Whether the ramp is over."""
        return len(self.generating) == self.arm.block.slots

    def take(self) -> tuple[PromptSource, int] | None:
        """Return the next prompt to measure with its place in the load; None: send a filler."""
        with self.lock:
            if not self.steady or not self.waiting:
                return None
            place = len(self.measured)
            self.measured.append({})
            if self.began is None:
                self.before = self.arm.server.metrics()
                self.began = time.perf_counter()
            return self.waiting.pop(0), place

    def serve(self, slot: int) -> None:
        """Be a client: send requests to a slot until the load is over; an error ends it for all."""
        try:
            number = 0
            while not self.closed.is_set():
                if taken := self.take():
                    source, place = taken
                    ids, n_predict = self.arm.prompts[source.prompt], self.arm.block.n_predict
                    run = self.arm.request(ids, n_predict, self.seed, slot=slot)
                    with self.lock:
                        self.measured[place] = run | {"slot": slot}
                        if not self.waiting and all(self.measured):
                            self.ended.set()
                else:
                    self.fill(slot, number)
                    number += 1
        except BaseException:
            self.closed.set()
            self.ended.set()
            raise

    def fill(self, slot: int, number: int) -> None:
        """Send a filler, and leave it once the load is over; it has had a token by then."""
        block, sources = self.arm.block, self.sources
        # Neighbours send unlike prompts, and in the ramp unlike lengths.
        ids = self.arm.prompts[sources[(slot + number) % len(sources)].prompt]
        share = 1.0 if self.steady else (slot + 1) / block.slots
        n_predict = max(_SHORTEST_FILLER, round(share * block.n_predict))
        with self.lock:
            self.fillers += 1
            self.arm.sent[slot] += 1
        asked = Options(
            n_predict=n_predict, temperature=block.temperature, seed=self.seed, slot=slot
        )
        so_far = 0
        with closing(self.arm.server.stream(ids, **asked)) as events:
            for event in events:
                generated = event["tokens_predicted"]
                with self.lock:
                    self.generating.add(slot)
                    self.filled.append((time.perf_counter(), generated - so_far))
                so_far = generated
                if self.closed.is_set():
                    break


def measure_load(
    one: LiveArm, sources: Sequence[PromptSource], number: int, order: int
) -> list[dict[str, Any]]:
    """Return the runs of one load; `order` is the place of its first run in the block.

    A disturbed load is measured again as a whole. Raises MeasurementError for an error of any
    request.
    """
    block = one.block
    about = [one.about(source, number, order + place) for place, source in enumerate(sources)]
    name = f"{block.block}/{one.arm.name}/p{number}"
    (of_load, requests), attempts = measure_undisturbed(
        lambda: _attempt(one, sources, block.run_seed(number)),
        one.prepare,
        block.reruns,
    )
    one.check_drafted(f"load {name}", of_load["load_metrics"])
    _logger.debug(
        f"load {name}: {block.slots} at once for {of_load['load_s']:.2f} s,"
        f" {of_load['load_tokens_per_second']:.1f} tok/s"
    )
    runs = [
        known | request | of_load | attempts for known, request in zip(about, requests, strict=True)
    ]
    for run in runs:
        _logger.debug(describe_run(run))
    return runs


def _attempt(
    one: LiveArm, sources: Sequence[PromptSource], seed: int
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return what one attempt at a load gave: of all of it, and of its requests in their order."""
    server, slots = one.server, one.block.slots
    load = _Load(one, sources, seed, [*sources])
    all_before, failures = server.metrics(), server.decode_failures()
    ramp = time.perf_counter()
    with ThreadPoolExecutor(slots) as pool:
        clients = [pool.submit(load.serve, slot) for slot in range(slots)]
        try:
            load.ended.wait()
            end = time.perf_counter()
            after = server.metrics()
        finally:
            load.closed.set()
        for client in clients:
            client.result()
    all_after = _once_idle(one)
    assert load.began is not None
    failed = server.decode_failures() - failures
    window_s = end - load.began
    tokens = sum(len(run["answer"]["tokens"]) for run in load.measured)
    tokens += sum(count for at, count in load.filled if load.began <= at <= end)
    of_load = {
        "load_s": window_s,
        "load_tokens": tokens,
        "load_tokens_per_second": tokens / window_s,
        "load_decodes": round(after[DECODES] - load.before[DECODES]),
        "load_ramp_s": load.began - ramp,
        "load_fillers": load.fillers,
        "load_filled": sum(count for _, count in load.filled),
        # Of the whole load, its ramp and end included.
        "load_metrics": {name: end - all_before.get(name, 0) for name, end in all_after.items()},
    }
    return of_load, [{**run, "decode_failures": failed} for run in load.measured]


def _once_idle(one: LiveArm) -> dict[str, float]:
    """Return the server's counters once it has given up the fillers that were left."""
    deadline = time.monotonic() + _RELEASE_LIMIT_S
    while True:
        metrics = one.server.metrics()
        if not metrics.get(PROCESSING):
            return metrics
        if time.monotonic() > deadline:
            raise one.server.error("the server goes on with requests that nobody waits for")
        time.sleep(_POLL_S)
