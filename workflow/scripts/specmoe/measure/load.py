"""A steady load: several clients keep one server busy, and some of their requests are measured.

A load is one arm of a block in one iteration through its prompts. Each client has a slot of the
server and sends its next request as soon as the last has ended: *fillers* of different lengths that
do not count; once every client has had one, each prompt of the block; then fillers until the last
measured request has ended. The throughput is of all clients, from the first measured request to the
end of the last.
"""

import logging
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from specmoe.config.block import PromptSource
from specmoe.engine.disturbance import measure_undisturbed
from specmoe.engine.responses import DECODES
from specmoe.measure.arm import LiveArm, describe_run

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
    # By a clock of seconds: the first measured request was sent; None before.
    began: float | None = None
    measured: list[dict[str, Any]] = field(default_factory=list)
    # Of each filler: its slot, when its first and last tokens came, and how many they were.
    fillers: list[tuple[int, float, float, int]] = field(default_factory=list)
    ended: threading.Event = field(default_factory=threading.Event)  # all measured, or an error

    @property
    def steady(self) -> bool:
        """Whether the ramp is over."""
        return len({slot for slot, *_ in self.fillers}) == self.arm.block.slots

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
            while not self.ended.is_set():
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
            self.ended.set()
            raise

    def fill(self, slot: int, number: int) -> None:
        """Send a filler."""
        block, sources = self.arm.block, self.sources
        # Neighbours send unlike prompts, and in the ramp unlike lengths.
        ids = self.arm.prompts[sources[(slot + number) % len(sources)].prompt]
        share = 1.0 if self.steady else (slot + 1) / block.slots
        n_predict = max(2, round(share * block.n_predict))
        sent = self.arm.request(ids, n_predict, self.seed, slot=slot, warm_up=True)
        end, took_ms = time.perf_counter(), sent["answer"]["timings"]["predicted_ms"]
        with self.lock:
            self.fillers.append((slot, end - took_ms / 1000, end, n_predict))

    def filled(self, end: float) -> float:
        """Return how many tokens of fillers came while it measured, up to `end`, at even rates."""
        assert self.began is not None
        return sum(
            count * max(0.0, min(last, end) - max(first, self.began)) / (last - first)
            for _, first, last, count in self.fillers
        )


def measure_load(
    one: LiveArm, sources: Sequence[PromptSource], number: int, order: int
) -> list[dict[str, Any]]:
    """Return the runs of one load; `order` is the place of its first run in the block.

    A disturbed load is measured again as a whole. Raises MeasurementError for an error of any
    request.
    """
    block = one.block
    about = [one.about(source, number, order + place) for place, source in enumerate(sources)]
    (of_load, requests), attempts = measure_undisturbed(
        lambda: _attempt(one, sources, block.run_seed(number)),
        one.prepare,
        block.reruns,
    )
    one.check_drafted(f"load {block.block}/{one.arm.name}/p{number}", of_load["load_metrics"])
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
    with ThreadPoolExecutor(slots) as pool:
        clients = [pool.submit(load.serve, slot) for slot in range(slots)]
        load.ended.wait()
        end = time.perf_counter()
        after = server.metrics()
    for client in clients:
        client.result()
    all_after = server.metrics()
    assert load.began is not None
    failed = server.decode_failures() - failures
    window_s = end - load.began
    tokens = sum(len(run["answer"]["tokens"]) for run in load.measured) + round(load.filled(end))
    of_load = {
        "load_s": window_s,
        "load_tokens": tokens,
        "load_tokens_per_second": tokens / window_s,
        "load_decodes": round(after[DECODES] - load.before[DECODES]),
        "load_filled": sum(count for *_, count in load.fillers),
        # Of the whole load, its ramp and end included.
        "load_metrics": {name: end - all_before.get(name, 0) for name, end in all_after.items()},
    }
    return of_load, [{**run, "decode_failures": failed} for run in load.measured]
