"""A steady load: several clients keep one server busy, and some of their requests are measured.

A load is one arm of a block in one iteration through its prompts. Each client has a slot of the
server and sends its next request as soon as the last has ended: *fillers* of different lengths that
do not count; once every client has had one, each prompt of the block; then fillers until the last
measured request has ended. The throughput is of all clients, from the first measured request to the
end of the last.
"""

import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from math import nan

from specmoe.config.block import PromptSource
from specmoe.engine.responses import DECODES
from specmoe.measure.arm import LiveArm, RunRecord


@dataclass
class _Load:
    """One attempt at a load; `lock` guards what its clients share."""

    arm: LiveArm
    sources: Sequence[PromptSource]  # the prompts to measure, in order
    lock: threading.Lock = field(default_factory=threading.Lock)
    # The counters, read before the first measured request is sent, or passes would be missed.
    before: dict[str, float] = field(default_factory=dict)
    began: float = nan  # by a clock of seconds: the first measured request was sent
    measured: list[RunRecord] = field(default_factory=list)  # in order; none while one runs
    # Of each filler: its slot, when its first and last tokens came, and how many they were.
    fillers: list[tuple[int, float, float, int]] = field(default_factory=list)
    ended: threading.Event = field(default_factory=threading.Event)  # all measured, or an error

    @property
    def steady(self) -> bool:
        """Whether the ramp is over."""
        return len({slot for slot, *_ in self.fillers}) == self.arm.block.slots

    def take(self) -> int | None:
        """Return the place of the next prompt to measure in the load; None: send a filler."""
        with self.lock:
            place = len(self.measured)
            if not self.steady or place == len(self.sources):
                return None
            if place == 0:
                self.before = self.arm.server.metrics()
                self.began = time.perf_counter()
            self.measured.append({})
            return place

    def serve(self, slot: int) -> None:
        """Be a client: send requests to a slot until the load is over; an error ends it for all."""
        block, number = self.arm.block, 0
        try:
            while not self.ended.is_set():
                if (place := self.take()) is None:
                    self.fill(slot, number)
                    number += 1
                    continue
                ids = self.arm.prompts[self.sources[place].prompt]
                run = self.arm.request(ids, block.n_predict, block.run_seed, slot=slot)
                with self.lock:
                    self.measured[place] = run | {"slot": slot}
                    if len(self.measured) == len(self.sources) and all(self.measured):
                        self.ended.set()
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
        sent = self.arm.request(ids, n_predict, block.run_seed, slot=slot, warm_up=True)
        end, took_ms = time.perf_counter(), sent["answer"]["timings"]["predicted_ms"]
        with self.lock:
            self.fillers.append((slot, end - took_ms / 1000, end, n_predict))

    def filled(self, end: float) -> float:
        """Return how many tokens of fillers came while it measured, up to `end`, at even rates."""
        return sum(
            count * max(0.0, min(last, end) - max(first, self.began)) / (last - first)
            for _, first, last, count in self.fillers
        )

    def drive(self) -> list[RunRecord]:
        """Serve all; return the measured runs with the numbers of their load."""
        slots = self.arm.block.slots
        with ThreadPoolExecutor(slots) as pool:
            clients = pool.map(self.serve, range(slots))
            self.ended.wait()
            end, after = time.perf_counter(), self.arm.server.metrics()
        list(clients)  # raises what a client raised
        tokens = sum(len(run["answer"]["tokens"]) for run in self.measured)
        tokens += round(self.filled(end))
        of_load = {
            "load_s": end - self.began,
            "load_tokens": tokens,
            "load_tokens_per_second": tokens / (end - self.began),
            "load_decodes": round(after[DECODES] - self.before[DECODES]),
            "load_filled": sum(count for *_, count in self.fillers),
        }
        return [run | of_load for run in self.measured]


def serve_at_once(arm: LiveArm, sources: Sequence[PromptSource]) -> list[RunRecord]:
    """Return the runs of one attempt at a load, in their order."""
    # Counted of the whole load, its ramp and end included.
    return arm.counted(_Load(arm, sources).drive, "load_metrics")
