"""One side of a block: its llama-server, from the first request to the log of the ended process."""

import math
import time
from collections import Counter
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

from specmoe.config.block import LONG_WARMUP_S, Block, Side, Stop
from specmoe.config.methods import METHODS, is_ngram
from specmoe.config.option_words import value_of
from specmoe.engine.answers import ACCEPTED, DRAFTED, tokens_per_second
from specmoe.engine.disturbances import Watch
from specmoe.engine.job import Job
from specmoe.engine.machine import physical_cores
from specmoe.engine.server import Server, Settings
from specmoe.engine.server_log import (
    Request,
    read_requests,
    read_slots,
    reason_not_to_speculate,
)
from specmoe.errors import MeasurementError
from specmoe.files import at_home
from specmoe.measure.requests import digest_of_tokens, generate

CONTEXT_STEP = 256  # llama.cpp rounds the context up (src/llama-context.cpp)
CACHE_TYPE = "f16"  # llama.cpp's default
# A warm-up is the last if it takes no less than this share of the one before.
SETTLED = 0.95
# Tokens of the prompt that a warm-up reads. Reading whole prompts took four fifths of the demo's
# warm-ups, and what settles is the rate of decoding.
WARM_UP_PROMPT = 32
_TRACELESS = 2  # warm-ups of a method that remembers


class LiveSide:
    """A side whose server runs, or has run; it counts the requests of the server's log.

    A side whose method remembers has several servers, one after the other, see `prepare`.
    """

    def __init__(self, block: Block, side: Side, job: Job):
        """Prepare a side; `start` starts its server."""
        self.block, self.side = block, side
        self.server: Server
        self.watch: Watch
        self.settings: Settings
        self.prompts: Mapping[str, list[int]] = {}  # as token ids
        self.start_ms = 0.0  # of all its servers
        self.warm_ups: list[dict[str, float]] = []
        self.private_bytes: int | None = None
        self.processes = 0
        self._job = job
        self._peaks: list[int] = []
        # What each server that has ended logged of its requests, by slot and in the slot's order.
        self._logged: list[dict[int, list[Request]]] = []
        self._sent: Counter[int] = Counter()  # requests of the present server, by slot
        self._measured = False  # whether the present server has

    def refuse_undrafted(self, name: str, metrics: Mapping[str, float]) -> None:
        """Raise MeasurementError if every round has a draft, and the server drafted nothing."""
        method = self.side.method
        steady = method is not None and METHODS[method].always_drafts
        must = steady and not self.side.p_min
        if must and not metrics.get(DRAFTED):
            raise self.server.fault(f"{name}: the server drafted nothing; its draft is not in use")

    def start(self) -> None:
        """Start a server; raises MeasurementError if it is not as the side asks."""
        clock = time.perf_counter()
        block, job = self.block, self._job
        self.server = job.server(job.command(block, self.side), block, job.log_of(self.side))
        try:
            with drafting_as_asked(self.server, block, self.side):
                self.server.__enter__()
                self.start_ms += (time.perf_counter() - clock) * 1000
                self.settings = self.server.settings()
            _refuse_other_settings(self)
            self.watch = Watch(
                self.server.pid,
                block.threads or physical_cores(),
                job.backend,
                block.environment.get("CUDA_VISIBLE_DEVICES", ""),
            )
        except BaseException:
            self.server.stop()
            raise
        self.processes += 1
        self._sent.clear()
        self._measured = False

    def stop(self) -> None:
        """End the server, and read from its log what became of each request."""
        self.server.stop()
        if self.server.peak_rss_bytes is not None:
            self._peaks.append(self.server.peak_rss_bytes)
        if self.side.speculates:
            self._logged.append(self._read_log())

    def _read_log(self) -> dict[int, list[Request]]:
        """Return what the server logged of its requests, by slot and in order."""
        log = self.server.log_text()
        of_slots = {0: read_requests(log)} if self.block.concurrency is None else read_slots(log)
        for slot in range(self.block.slots):
            logged, sent = len(of_slots.get(slot, [])), self._sent[slot]
            if logged != sent:
                raise self.server.fault(f"the log has {logged} of {sent} requests of slot {slot}")
        return of_slots

    def generate(
        self,
        ids: list[int],
        n_predict: int,
        seed: int,
        *,
        until_end: bool = False,
        slot: int = 0,
    ) -> dict[str, Any]:
        """Return the answer to token ids, see `requests.generate`."""
        self._sent[slot] += 1
        return generate(
            self.server,
            ids,
            n_predict=n_predict,
            temperature=self.block.temperature,
            seed=seed,
            until_end=until_end,
            slot=None if self.block.concurrency is None else slot,
        )

    def measure(self, prompt: str, seed: int, slot: int = 0) -> dict[str, Any]:
        """Return what a request of the block gave: its answer, its time and its place in logs."""
        block, started_at = self.block, datetime.now(UTC)
        self._measured = True
        request = self._sent[slot]  # of its server's slot, warm-ups and fillers included
        clock = time.perf_counter()
        answer = self.generate(
            self.prompts[prompt],
            block.n_predict,
            seed,
            until_end=block.stop == Stop.EOS,
            slot=slot,
        )
        return {
            "process": self.processes - 1,
            "request": request,
            "started_at": started_at.isoformat(),
            "wall_ms": (time.perf_counter() - clock) * 1000,
            "prompt_sha256": digest_of_tokens(self.prompts[prompt]),
            "answer": answer,
        }

    def stream(
        self, ids: list[int], n_predict: int, seed: int, slot: int
    ) -> Generator[dict[str, Any], None, None]:
        """Return the events of the answer to a prompt of the block, see `Server.stream`."""
        self._sent[slot] += 1
        return self.server.stream(
            ids, n_predict=n_predict, temperature=self.block.temperature, seed=seed, slot=slot
        )

    @property
    def _remembers(self) -> bool:
        method = self.side.method
        return method is not None and METHODS[method].remembers

    def prepare(self) -> Watch:
        """Make the server ready for a run, and return what observes it.

        A method that remembers gets a new server for every run.
        """
        if self._remembers and self._measured:
            self.stop()
            self.start()
            self.warm_up()
        return self.watch

    def warm_up(self) -> None:
        """Send short requests until one is long, or no faster than the one before."""
        longest = max(self.prompts.values(), key=len)
        if self._remembers:
            # One token after one token leaves nothing to look up.
            for _ in range(min(self.block.warmups, _TRACELESS)):
                self._warm_up(longest[:1], 1)
            return
        times: list[float] = []
        while len(times) < self.block.warmups and not _settled(times):
            times.append(self._warm_up(longest[:WARM_UP_PROMPT], self.block.warmup_tokens))
        self.private_bytes = self.server.private_bytes()

    def _warm_up(self, ids: list[int], n_predict: int) -> float:
        """Send a request and return the time of its generated tokens in ms."""
        clock = time.perf_counter()
        timings = self.generate(ids, n_predict, self.block.seed)["timings"]
        wall_ms = (time.perf_counter() - clock) * 1000
        times = {"prompt_ms": timings["prompt_ms"], "decode_ms": timings["predicted_ms"]}
        self.warm_ups.append({"wall_ms": wall_ms} | times)
        return float(timings["predicted_ms"])

    def add_traces(self, runs: Iterable[dict[str, Any]]) -> None:
        """Add to the side's runs what the logs of its ended servers hold about them."""
        for run in runs:
            if run["side"] == self.side.name and self.side.speculates:
                logged = self._logged[run["process"]][run.get("slot", 0)][run["request"]]
                run["verifications"] = [tuple(one) for one in logged.verifications]
                if self.block.concurrency is None:
                    run["draft_ms"] = logged.draft_ms

    def record(self) -> dict[str, Any]:
        """Return what the block's record holds of the side once its server has ended."""
        environment = self.server.environment
        return {
            "side": self.side.name,
            "command": [*map(at_home, self.server.command)],
            "environment": {name: at_home(value) for name, value in environment.items()},
            "server": self.settings._asdict(),
            "processes": self.processes,
            "start_ms": self.start_ms,
            "warm_ups": self.warm_ups,
            "warm_up_ms": sum(one["wall_ms"] for one in self.warm_ups),
            "private_bytes": self.private_bytes,
            "peak_rss_bytes": max(self._peaks, default=None),
        }


def _settled(times: Sequence[float]) -> bool:
    if len(times) > 1 and times[-1] >= SETTLED * times[-2]:
        return True
    return bool(times) and times[-1] >= LONG_WARMUP_S * 1000


@contextmanager
def started(block: Block, side: Side, job: Job) -> Iterator[LiveSide]:
    """Start a side's server, and end it when the context ends."""
    one = LiveSide(block, side, job)
    one.start()
    try:
        yield one
    except BaseException:
        one.server.stop()
        raise
    one.stop()


@contextmanager
def drafting_as_asked(server: Server, block: Block, side: Side) -> Iterator[None]:
    """Raise MeasurementError if a server's log says that it drafts otherwise than asked.

    It may end then, or continue without speculation or with shorter drafts.
    """
    cause: MeasurementError | None = None
    try:
        yield
    except MeasurementError as error:
        cause = error
    reason = reason_not_to_speculate(server.log_text()) if side.speculates else None
    if reason:
        raise server.fault(
            f"{side.draft} cannot draft for {block.target} with γ {side.gamma}: {reason}"
        ) from cause
    if cause:
        raise cause


def cache_types(block: Block, side: Side) -> tuple[str, ...]:
    """Return the types of keys and values that a side's caches should have, sorted.

    A model that drafts has a cache of its own, whatever it is a part of.
    """
    drafts = side.method is not None and not is_ngram(side.method)
    types = {
        value_of(block.engine_args, f"--cache-type-{of}", f"-ct{of}") or CACHE_TYPE for of in "kv"
    }
    return tuple(sorted(types | {CACHE_TYPE} if drafts else types))


def _refuse_other_settings(one: LiveSide) -> None:
    """Raise MeasurementError unless the server's settings are those of the block."""
    block, settings = one.block, one.settings
    rounded_up = math.ceil(block.context / CONTEXT_STEP) * CONTEXT_STEP
    checks: list[tuple[str, object, list[object]]] = [
        ("slots", settings.slots, [block.slots]),
        ("tokens of context", settings.context, [block.context, rounded_up]),
        ("speculative", settings.speculative, [one.side.speculates]),
        # A model without attention has no cache.
        ("types of the cache", settings.cache_types, [cache_types(block, one.side), ()]),
    ]
    for what, found, allowed in checks:
        if found not in allowed:
            raise one.server.fault(
                f"block {block.block} is not measured: llama-server reports {what} = {found},"
                f" side {one.side.name} asks for {allowed[0]}"
            )


def describe_run(block: Block, run: Mapping[str, Any]) -> str:
    """Return the line of the job's log on a run."""
    rate = tokens_per_second(run["answer"])
    line = f"run {run['order'] + 1} of {block.runs}: {run['run']}: {run['wall_ms'] / 1000:.2f} s,"
    line += f" {len(run['answer']['tokens'])} tokens" if rate is None else f" {rate:.1f} tok/s"
    return line + acceptance_words(run.get("metrics", {}))


def acceptance_words(metrics: Mapping[str, float]) -> str:
    """Return the end of a line of the job's log; empty if nothing was drafted."""
    drafted = metrics.get(DRAFTED)
    return f", acceptance {metrics.get(ACCEPTED, 0) / drafted:.1%}" if drafted else ""
