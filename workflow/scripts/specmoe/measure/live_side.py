"""One side of a block: its llama-server, from the first request to the log of the ended process."""

import logging
import math
import time
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, astuple
from pathlib import Path
from typing import Any

from specmoe.commentary import Rejected
from specmoe.config.block import (
    LONG_WARMUP_S,
    Block,
    History,
    PromptSource,
    Sending,
    Side,
    Stop,
    Template,
)
from specmoe.config.methods import METHODS, history_needed, is_ngram
from specmoe.config.prompt_lines import Content, read_content
from specmoe.engine.counters import ACCEPTED, DRAFTED, stopped_by, tokens_per_second
from specmoe.engine.job import Job
from specmoe.engine.machine_id import physical_cores
from specmoe.engine.server import Server, Settings
from specmoe.engine.server_log import (
    Request,
    read_requests,
    read_slots,
    reason_not_to_speculate,
)
from specmoe.engine.stream import Piece
from specmoe.engine.taken_away import Rejection, Watch
from specmoe.errors import MeasurementError

CONTEXT_STEP = 256  # llama.cpp rounds the context up (src/llama-context.cpp)
CACHE_TYPE = "f16"  # llama.cpp's default
VOCABULARY_FAULT = "the target and draft vocabs are not compatible"
# A warm-up is the last if it takes no less than this share of the one before.
SETTLED = 0.95
# Tokens of the prompt that a warm-up reads. Reading whole prompts took four fifths of the demo's
# warm-ups, and what settles is the rate of decoding.
WARM_UP_PROMPT = 32
_TRACELESS = 2  # warm-ups of a method that remembers

_logger = logging.getLogger(__name__)


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
        self.start_ms = 0.0  # of all its servers
        self.warm_ups: list[dict[str, float]] = []
        self.private_bytes: int | None = None
        self.processes = 0
        self.requests = 0  # of the present server
        self.prompts_before: int | None = None  # that the present server has read; None: not kept
        self._job = job
        self._peaks: list[int] = []
        # What each server that has ended logged of its requests, by slot and in the slot's order.
        self._logged: list[dict[int, list[Request]]] = []
        self._sent: Counter[int] = Counter()  # requests of the present server, by slot
        self._pass = 0

    @property
    def must_draft(self) -> bool:
        """Whether every round has a draft, so that a run without any is no measurement."""
        steady = any(METHODS[method].always_drafts for method in self.block.methods)
        return self.side.speculates and steady and not (self.side.p_min or self.side.n_min)

    def start(self) -> None:
        """Start a server; raises MeasurementError if it is not as the side asks."""
        clock = time.perf_counter()
        block, job = self.block, self._job
        self.server = job.server(job.command(block, self.side), block, job.log_of(self.side))
        try:
            self.server.__enter__()
        except MeasurementError as error:
            refuse_other_speculation(self.server, block, self.side, error)
            raise
        try:
            self.start_ms += (time.perf_counter() - clock) * 1000
            self.processes += 1
            self.requests = 0
            self._sent.clear()
            self.prompts_before = 0 if self.side.history else None
            self.settings = self.server.settings()
            self.watch = Watch(
                self.server.pid,
                block.threads or physical_cores(),
                job.backend,
                block.environment.get("CUDA_VISIBLE_DEVICES", ""),
            )
            _refuse_unlike_vocabularies(self)
            refuse_other_speculation(self.server, block, self.side)
            _refuse_other_settings(self)
        except BaseException:
            self.server.stop()
            raise

    def stop(self) -> None:
        """End the server, and read from its log what it says of each request."""
        self.server.stop()
        if self.server.peak_rss_bytes is not None:
            self._peaks.append(self.server.peak_rss_bytes)
        if self.side.speculates:
            self._logged.append(_read_log(self))

    def generate(
        self,
        ids: list[int],
        n_predict: int,
        seed: int,
        *,
        until_end: bool = False,
        streamed: bool = False,
        slot: int = 0,
    ) -> dict[str, Any]:
        """Return the answer to a prompt of the block, see `generate`."""
        self.requests += 1
        self._sent[slot] += 1
        return generate(
            self.server,
            self.block,
            ids,
            n_predict,
            seed,
            until_end=until_end,
            streamed=streamed,
            slot=None if self.block.concurrency is None else slot,
        )

    def stream(
        self, ids: list[int], n_predict: int, seed: int, slot: int
    ) -> Generator[Piece, None, None]:
        """Return the answer to a prompt of the block piece by piece, see `Server.stream`."""
        self._sent[slot] += 1
        return self.server.stream(
            ids, n_predict=n_predict, temperature=self.block.temperature, seed=seed, slot=slot
        )

    def sent_to(self, slot: int) -> int:
        """Return how many requests a slot of the present server was sent; a slot has one client."""
        return self._sent[slot]

    def prepare(self, number: int, longest: list[int]) -> Watch:
        """Make the server ready for a run in pass `number`, and return what observes it.

        A method that remembers gets a new server for every run, or with `History.EARLIER` for every
        pass through the prompts. `longest` is the prompt of warm-ups.
        """
        fresh = self.prompts_before == 0
        same_pass = self.side.history != History.NONE and number == self._pass
        if self.prompts_before is not None and not (fresh or same_pass):
            self.stop()
            self.start()
            self.warm_up(longest)
        self._pass = number
        return self.watch

    def warm_up(self, ids: list[int]) -> None:
        """Send short requests until one is long, or no faster than the one before."""
        if self.side.history:
            # One token after one token leaves nothing to look up.
            for _ in range(min(self.block.warmups, _TRACELESS)):
                self._warm_up(ids[:1], 1)
            return
        times: list[float] = []
        while len(times) < self.block.warmups and not _settled(times):
            times.append(self._warm_up(ids[:WARM_UP_PROMPT], self.block.warmup_tokens))
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
        """Add to the side's runs what the logs of its ended servers say of them."""
        for run in runs:
            if run["side"] == self.side.name and self.side.speculates:
                logged = self._logged[run["process"]][run.get("slot", 0)][run["request"]]
                run["verifications"] = [astuple(one) for one in logged.verifications]
                if self.block.concurrency is None:
                    run["by_type"] = [asdict(one) for one in logged.counts]
                    run["draft_ms"] = sum(one.draft_ms for one in logged.counts)

    def record(self) -> dict[str, Any]:
        """Return what the block's record holds of the side once its server has ended."""
        return {
            "side": self.side.name,
            **asdict(self.side),
            "setting": self.block.setting(self.side),
            "command": self.server.command,
            "environment": self.server.environment,
            "server": self.settings._asdict(),
            "processes": self.processes,
            "start_ms": self.start_ms,
            "warm_ups": self.warm_ups,
            "warm_up_ms": sum(one["wall_ms"] for one in self.warm_ups),
            "private_bytes": self.private_bytes,
            "peak_rss_bytes": max(self._peaks, default=None),
        }


def _read_log(one: LiveSide) -> dict[int, list[Request]]:
    """Return what a server that has ended logged of its requests, by slot and in order."""
    log = one.server.log_text()
    if one.block.concurrency is None:
        requests = read_requests(log)
        if len(requests) != one.requests:
            raise one.server.fault(f"the log has {len(requests)} of {one.requests} requests")
        return {0: requests}
    of_slots = read_slots(log)
    for slot in range(one.block.slots):
        logged, sent = len(of_slots.get(slot, [])), one.sent_to(slot)
        if logged != sent:
            raise one.server.fault(f"the log has {logged} of {sent} requests of slot {slot}")
    return of_slots


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


def prompt_ids(server: Server, source: PromptSource, block: Block, root: Path) -> list[int]:
    """Return the token ids of a prompt in the target's vocabulary, cut to the prompt's length.

    Raises MeasurementError if the text is shorter than that, if the context is too small for the
    prompt and what the block generates, or if these are too few tokens to look anything up in.
    """
    ids = server.tokenize(_text(server, source, block, root / source.file))
    if source.length is not None:
        if len(ids) < source.length:
            raise MeasurementError(
                f"{source.file} has {len(ids)} tokens in the vocabulary of {block.target}, fewer"
                f" than the {source.length} of prompt {source.prompt}; give a longer passage"
            )
        ids = ids[: source.length]
    gamma = max(side.longest for side in block.sides)
    if len(ids) + block.n_predict + gamma > block.context:
        raise MeasurementError(
            f"prompt {source.prompt} has {len(ids)} tokens; with {block.n_predict} generated and"
            f" {gamma} drafted they exceed measurement.context = {block.context}"
        )
    for side in block.sides:
        needed = history_needed(block.methods, side.n_match or 0, side.longest)
        if side.speculates and len(ids) + block.n_predict < needed:
            raise MeasurementError(
                f"prompt {source.prompt} has {len(ids)} tokens and {block.n_predict} are generated;"
                f" {block.setting(side)} with γ {side.longest} never drafts before it has {needed}:"
                " choose smaller lengths, or generate more"
            )
    return ids


def _text(server: Server, source: PromptSource, block: Block, file: Path) -> str:
    """Return the text of a prompt as it is sent."""
    sending = block.sendings.get(source.workload or "", Sending())
    content: Content
    if source.line is None:
        content = file.read_text(encoding="utf-8").rstrip("\n")
    else:
        content = read_content(file, source.line, sending.prompt_key, sending.messages_key)
    if sending.template == Template.CHAT:
        messages = [{"role": "user", "content": content}] if isinstance(content, str) else content
        return server.apply_template(messages, sending.thinking)
    assert isinstance(content, str)  # see `config.expand`
    return content


def generate(
    server: Server,
    block: Block,
    ids: list[int],
    n_predict: int,
    seed: int,
    *,
    until_end: bool = False,
    streamed: bool = False,
    slot: int | None = None,
) -> dict[str, Any]:
    """Return the server's answer to a prompt of a block, see `Server.complete`.

    A `streamed` one has the time of each token, see `Server.complete_streamed`. Raises
    MeasurementError unless it read the whole prompt and generated `n_predict` tokens, or with
    `until_end` fewer because the target ended its text.
    """
    complete = server.complete_streamed if streamed else server.complete
    pinned: dict[str, Any] = {} if slot is None else {"slot": slot}
    answer = complete(
        ids,
        n_predict=n_predict,
        temperature=block.temperature,
        seed=seed,
        until_end=until_end,
        **pinned,
    )
    generated = len(answer["tokens"])
    ended = until_end and stopped_by(answer) == Stop.EOS and 0 < generated < n_predict
    if generated != n_predict and not ended:
        raise server.fault(f"short output: {generated} tokens instead of {n_predict}")
    if answer["timings"]["prompt_n"] != len(ids):
        raise server.fault(
            f"the server read {answer['timings']['prompt_n']} prompt tokens of {len(ids)}"
        )
    return answer


def refuse_other_speculation(
    server: Server, block: Block, side: Side, cause: MeasurementError | None = None
) -> None:
    """Raise MeasurementError if a server's log says that it drafts otherwise than told.

    It may end then, or continue without speculation or with shorter drafts.
    """
    reason = reason_not_to_speculate(server.log_text()) if side.speculates else None
    if reason:
        raise server.fault(
            f"{block.draft} cannot draft for {block.target} with γ {side.longest}: {reason}"
        ) from cause


def _refuse_unlike_vocabularies(one: LiveSide) -> None:
    # llama-server logs this fault and continues without speculation.
    if one.side.speculates and VOCABULARY_FAULT in one.server.log_text():
        raise one.server.fault(
            f"draft {one.block.draft} and target {one.block.target} have different vocabularies;"
            " choose a draft of the target's family"
        )


def cache_types(block: Block, side: Side) -> tuple[str, ...]:
    """Return the types of keys and values that a side's caches should have, sorted.

    A model that drafts has a cache of its own, whatever it is a part of.
    """
    drafts = side.speculates and not all(map(is_ngram, block.methods))
    names = [f"cache-type-{of}{ending}" for of in "kv" for ending in ("", "-draft")[: 1 + drafts]]
    types = {str(block.engine_options.get(name, CACHE_TYPE)) for name in names}
    return tuple(sorted(types))


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


def log_rejection(block: Block, name: str) -> Callable[[Rejection], None]:
    """Return what logs that an attempt at a run or a load of a block was rejected."""
    short = name.removeprefix(f"{block.block}/")

    def log(one: Rejection) -> None:
        event = Rejected(short, one.reason, again=one.again, busy=one.busy)
        _logger.debug("attempt %d at %s: %s", one.attempt, name, one.reason, extra={"event": event})

    return log


def describe_run(block: Block, run: Mapping[str, Any]) -> str:
    """Return the line of the job's log on a run."""
    metrics, rate = run.get("metrics", {}), tokens_per_second(run["answer"])
    line = f"run {run['order'] + 1} of {block.runs}: {run['run']}: {run['wall_ms'] / 1000:.2f} s,"
    line += f" {len(run['answer']['tokens'])} tokens" if rate is None else f" {rate:.1f} tok/s"
    if drafted := metrics.get(DRAFTED):
        line += f", acceptance {metrics.get(ACCEPTED, 0) / drafted:.1%}"
    return line
