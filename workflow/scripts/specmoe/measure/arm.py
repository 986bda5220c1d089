"""One arm of a block: its llama-server, from the tokens of prompts to the log of its end."""

import json
import logging
import math
import os
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from specmoe.config.block import WARM_UP_PROMPT, Arm, Block, PromptSource, Stop, Template
from specmoe.config.methods import is_ngram
from specmoe.config.workloads import read_chat
from specmoe.engine.job import Job
from specmoe.engine.process import count_failures
from specmoe.engine.responses import (
    ACCEPTED,
    DRAFTED,
    read_requests,
    reason_not_to_speculate,
    stopped_by,
    tokens_per_second,
)
from specmoe.engine.server import Server, Settings
from specmoe.errors import MeasurementError
from specmoe.files import at_home, sha256_of_text
from specmoe.hardware.disturbance import Budget, Watch, measure_undisturbed

RunRecord = dict[str, Any]
"""What a block's record holds of one run."""

CONTEXT_STEP = 256  # llama.cpp rounds the context up (src/llama-context.cpp)
# A warm-up is the last if it takes no less than this share of the one before.
SETTLED = 0.95
# One that decodes so long is the last too: what settles takes less. In 42 processes of the
# true-shape MoE (1.2 to 6.5 s) the first warm-up took as long as the second, in the median.
LONG_WARMUP_S = 1.0
_TRACELESS = 2  # warm-ups of a stateful method

_logger = logging.getLogger(__name__)


def prompt_ids(server: Server, source: PromptSource, block: Block, root: Path) -> list[int]:
    """Return the token ids of a prompt in the target's vocabulary, cut to the prompt's length.

    Raises MeasurementError if the text is too short, or the context too small for what follows.
    """
    ids = server.tokenize(_text(server, source, block, root / source.file))
    if source.length is not None:
        if len(ids) < source.length:
            raise MeasurementError(
                f"{source.file} has {len(ids)} tokens in the vocabulary of {block.target}, fewer"
                f" than the {source.length} of prompt {source.prompt}; give a longer passage"
            )
        ids = ids[: source.length]
    gamma = max(arm.longest for arm in block.arms)
    if len(ids) + block.n_predict + gamma > block.context:
        raise MeasurementError(
            f"prompt {source.prompt} has {len(ids)} tokens; with {block.n_predict} generated and"
            f" {gamma} drafted they exceed measurement.context = {block.context}"
        )
    return ids


def _text(server: Server, source: PromptSource, block: Block, file: Path) -> str:
    sending = block.sending_of(source)
    chat = read_chat(file, source.line, sending, source.turn)
    asked = str(chat["messages"][-1]["content"] or "")
    if sending.template == Template.RAW:
        return asked
    text = server.apply_template(chat)
    # Templates may strip a message, break its lines, or write what a tool gave as JSON.
    written = {"".join(form.split()) for form in (asked, json.dumps(asked)[1:-1])}
    if all(form not in "".join(text.split()) for form in written):
        raise MeasurementError(
            f"the chat template of {block.target} leaves out the last message of prompt"
            f" {source.prompt}, so it asks for something else; give the workload template: raw,"
            " or name a file with another template"
        )
    return text


def check_length(
    server: Server, ids: Sequence[int], answer: Mapping[str, Any], asked: int, *, until_end: bool
) -> None:
    """Raise MeasurementError unless all of a prompt was processed and `asked` tokens generated.

    With `until_end` it may generate less because the target ended its text.
    """
    generated = len(answer["tokens"])
    ended = until_end and stopped_by(answer) == Stop.EOS and 0 < generated < asked
    if generated != asked and not ended:
        why = "and its text did not end" if until_end else "although nothing ends it; try stop: eos"
        raise server.error(f"short output: {generated} tokens instead of {asked}, {why}")
    if (processed := answer["timings"]["prompt_n"]) != len(ids):
        raise server.error(f"the server read {processed} prompt tokens of {len(ids)}")


class Turn(NamedTuple):
    """A run of a block; or those of a chat, turn by turn; or a load, see `measure.load`."""

    group: int  # of `Block.groups`
    arm: Arm
    sources: tuple[PromptSource, ...]  # one, or several in the order in which they are sent
    live: tuple[Arm, ...]  # whose processes run then


class LiveArm:
    """An arm whose server runs, or has run; a stateful method has several, one after the other."""

    def __init__(self, block: Block, arm: Arm, job: Job, group: int):
        """Prepare an arm, whose server is not started yet; `group` is the first that it is in."""
        self.block, self.arm, self.groups = block, arm, {group}
        self.prompts: Mapping[str, list[int]] = {}  # as token ids
        self.sent: Counter[int] = Counter()  # requests of the present server, by slot
        self._job, self._runs = job, list[RunRecord]()
        self._peaks: list[int] = []  # of memory, of the servers that have ended
        self._used = False  # whether the present server has measured
        self.server = self._new_server()

    def _new_server(self) -> Server:
        return self._job.server(self.block, self.arm, self._job.log_of(self.arm, min(self.groups)))

    def begin(self) -> None:
        """Start the server, and warm it up; raises MeasurementError if it is not as asked."""
        block, job = self.block, self._job
        self.server.__enter__()
        self._check_settings()
        self.sent.clear()
        self.prompts = self.prompts or {
            source.prompt: prompt_ids(self.server, source, block, job.root)
            for source in block.prompts
        }
        self.warm_up()

    def _check_settings(self) -> None:
        """Raise MeasurementError unless a server has the block's settings, and drafts as asked."""
        block, arm, settings = self.block, self.arm, self.server.settings
        if arm.speculates and (reason := reason_not_to_speculate(self.server.log_text())):
            raise self.server.error(
                f"{arm.draft} cannot draft for {block.target} with γ {arm.gamma}: {reason}"
            )
        if settings.context == math.ceil(block.context / CONTEXT_STEP) * CONTEXT_STEP:
            settings = settings._replace(context=block.context)
        asked = Settings(block.slots, block.context, arm.speculates)
        for what, reported, due in zip(asked._fields, settings, asked, strict=True):
            if reported != due:
                raise self.server.error(
                    f"block {block.block} is not measured: llama-server reports {what} = {reported}"
                    f", arm {arm.name} asks for {due}"
                )

    def stop(self) -> None:
        """End the server, and add to its runs what its log says of each request."""
        self.server.stop()
        process = len(self._peaks)
        self._peaks.append(self.server.peak_rss_bytes)
        if not self.arm.speculates:
            return
        of_slots = read_requests(self.server.log_text())
        for slot in range(self.block.slots):
            logged, sent = len(of_slots.get(slot, [])), self.sent[slot]
            if logged != sent:
                raise self.server.error(f"slot {slot} logs {logged} of {sent} requests; report it")
        for run in self._runs:
            if run["process"] == process:
                run.update(of_slots[run.get("slot", 0)][run["request"]])
                if self.block.concurrency is not None:
                    del run["draft_ms"], run["drafted_by"]

    def prepare(self) -> Watch:
        """Return what is observed of a run, with the server ready, or new for a stateful method."""
        if self.arm.remembers and self._used:
            self.stop()
            self.server = self._new_server()
            self.begin()
        self._used = True
        return Watch(self.server.pid, self._job.backend, self.block.environment)

    def warm_up(self) -> None:
        """Send short requests until one is long, or no faster than the one before."""
        block, longest = self.block, max(self.prompts.values(), key=len)
        if self.arm.remembers:
            # One token after one token leaves nothing to look up.
            for _ in range(min(block.warmups, _TRACELESS)):
                self.request(longest[:1], 1, block.seed, warm_up=True)
            return
        ids, before = longest[:WARM_UP_PROMPT], math.inf
        for _ in range(block.warmups):
            sent = self.request(ids, block.warmup_tokens, block.seed, warm_up=True)
            took = sent["answer"]["timings"]["predicted_ms"]
            if took >= LONG_WARMUP_S * 1000 or took >= SETTLED * before:
                break
            before = took

    def request(
        self,
        ids: list[int],
        n_predict: int,
        seed: int,
        *,
        slot: int = 0,
        warm_up: bool = False,
        goes_on: bool = False,
    ) -> RunRecord:
        """Return what one request gave: its response, its time and its place in logs.

        Only a run may end before `n_predict` tokens. One that `goes_on` with the request before is
        read from where they differ on. Raises MeasurementError for an incomplete response.
        """
        block, server = self.block, self.server
        until_end = block.stop == Stop.EOS and not warm_up
        number = self.sent[slot]  # of its server's slot, warm-ups and fillers included
        self.sent[slot] += 1
        started_at, clock = datetime.now(UTC), time.perf_counter()
        answer = server.complete(
            ids,
            n_predict=n_predict,
            temperature=block.temperature,
            seed=seed,
            until_end=until_end,
            id_slot=-1 if block.concurrency is None else slot,  # any, or its own
            cache_prompt=goes_on,
        )
        wall_ms = (time.perf_counter() - clock) * 1000
        cached = answer["timings"].get("cache_n", 0) if goes_on else 0
        check_length(server, ids[cached:], answer, n_predict, until_end=until_end)
        return {
            "process": len(self._peaks),
            "request": number,
            "started_at": started_at.isoformat(),
            "wall_ms": wall_ms,
            "prompt_sha256": sha256_of_text(json.dumps(ids)),
            "answer": answer,
        }

    def counted(self, serve: Callable[[], list[RunRecord]], name: str) -> list[RunRecord]:
        """Serve runs; give each how the counters moved, as `name`, and how many decodes failed."""
        before, failures = self.server.metrics(), count_failures(self.server.log_text())
        served, after = serve(), self.server.metrics()
        moved = {counter: value - before.get(counter, 0) for counter, value in after.items()}
        failed = count_failures(self.server.log_text()) - failures
        return [run | {name: moved, "decode_failures": failed} for run in served]

    def measure(self, turn: Turn, order: int, serve: "Serve", budget: Budget) -> list[RunRecord]:
        """Return the runs of a turn, served again if disturbed and the budget allows it.

        `order` is the place of the first run in the block, whose budget is given. Raises
        MeasurementError for an error of any request.
        """
        block = self.block
        known = [
            {
                "run": block.run_id(self.arm, source.prompt, turn.group),
                "arm": self.arm.name,
                "order": place,
                "load_average": os.getloadavg()[0],
                "seed": block.run_seed,
            }
            for place, source in enumerate(turn.sources, order)
        ]
        served, attempts = measure_undisturbed(
            partial(serve, self, turn.sources), self.prepare, budget, len(turn.sources)
        )
        runs = [about | run | attempts for about, run in zip(known, served, strict=True)]
        for run in runs:
            self._check_drafted(run)
            _logger.debug(describe_run(run))
        self._runs += runs
        return runs

    def _check_drafted(self, run: RunRecord) -> None:
        """Raise MeasurementError if a method that always drafts drafted nothing."""
        method, metrics = self.arm.method, run.get("load_metrics") or run["metrics"]
        must = method is not None and not is_ngram(method) and not self.arm.p_min
        # A single token needs no round; a load has others.
        rounds = "load_metrics" in run or len(run["answer"]["tokens"]) > 1
        if must and rounds and not metrics.get(DRAFTED):
            raise self.server.error(
                f"run {run['run']}: the server drafted nothing; its draft model is not in use"
            )

    def record(self) -> dict[str, Any]:
        """Return what the block's record holds of the arm once its server has ended."""
        environment = self.server.environment
        return {
            "arm": self.arm.name,
            "groups": sorted(self.groups),
            "command": [*map(at_home, self.server.command)],
            "environment": {name: at_home(value) for name, value in environment.items()},
            "server": self.server.settings._asdict(),
            "peak_rss_bytes": max(self._peaks),
            # For draft scoring.
            "prompts": None if self.arm.speculates else self.prompts,
        }


Serve = Callable[[LiveArm, Sequence[PromptSource]], list[RunRecord]]
"""Sends prompts, and returns what came of each, in their order."""


def serve_alone(arm: LiveArm, sources: Sequence[PromptSource]) -> list[RunRecord]:
    """Send a prompt, or the turns of a chat, to a server that serves nothing else.

    Of a chat the first turn finds nothing in the cache, whatever was sent before.
    """

    def send(source: PromptSource) -> list[RunRecord]:
        asked = arm.prompts[source.prompt], arm.block.n_predict, arm.block.run_seed
        return [arm.request(*asked, goes_on=(source.turn or 1) > 1)]

    return [run for source in sources for run in arm.counted(partial(send, source), "metrics")]


def describe_run(run: Mapping[str, Any]) -> str:
    """Return the line of the job's log on a run."""
    rate, metrics = tokens_per_second(run["answer"]), run.get("metrics", {})
    line = f"run {run['order'] + 1}: {run['run']}: {run['wall_ms'] / 1000:.2f} s,"
    line += f" {len(run['answer']['tokens'])} tokens" if rate is None else f" {rate:.1f} tok/s"
    if run["reruns"]:
        line += ", measured again"
    if drafted := metrics.get(DRAFTED):
        line += f", acceptance {metrics.get(ACCEPTED, 0) / drafted:.1%}"
    return line
