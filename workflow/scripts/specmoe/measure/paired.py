"""The paired protocol: every run of a block in one llama-server process.

The baseline of a speculative run is the same request to a server with the same command line less
the speculation flags, so that speculation is the only difference.
"""

import logging
import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, astuple
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from specmoe.config.block import Block, PromptSource
from specmoe.engine.counters import ACCEPTED, DRAFTED, tokens_per_second
from specmoe.engine.job import Job
from specmoe.engine.machine_id import host_id, load_average
from specmoe.engine.server import Server, Settings
from specmoe.engine.server_log import read_draft_times, read_trace
from specmoe.errors import MeasurementError

CONTEXT_STEP = 256  # llama.cpp rounds the context up (src/llama-context.cpp)
CACHE_TYPES = ("f16",)  # llama.cpp's default
VOCABULARY_FAULT = "the target and draft vocabs are not compatible"

_logger = logging.getLogger(__name__)


def measure(block: Block, job: Job) -> dict[str, Any]:
    """Do all runs of a block and return its record: the block, the command, the raw answers.

    Raises MeasurementError, with the end of the server's log, if any run is not a measurement.
    """
    command = job.command(block, job.draft)
    clock = time.perf_counter()
    with job.server(command, block) as server:
        started_s = time.perf_counter() - clock
        _refuse_unlike_vocabularies(server, block)
        settings = server.settings()
        _refuse_other_settings(server, block, settings)
        prompts = {
            source.prompt: prompt_ids(server, source, block, job.root) for source in block.prompts
        }
        longest = max(prompts.values(), key=len)
        clock = time.perf_counter()
        for _ in range(block.warmups):
            generate(server, block, longest)
        warmed_up_s = time.perf_counter() - clock
        runs = [
            _measure_run(server, block, source.prompt, prompts[source.prompt], order)
            for order, source in enumerate(block.prompts)
        ]
    _add_traces(server, block, runs)
    return {
        "protocol": "paired",
        "block": asdict(block),
        "command": server.command,
        "environment": server.environment,
        "server": settings._asdict(),
        "host": host_id(),
        "peak_rss_bytes": server.peak_rss_bytes,
        "start_s": started_s,
        "warm_up_s": warmed_up_s,
        "runs": runs,
    }


def summary(runs: Sequence[Mapping[str, Any]]) -> str:
    """Return the rate and the acceptance rate of a block's runs together, as text."""
    answers = [run["answer"] for run in runs]
    tokens = sum(len(answer["tokens"]) - 1 for answer in answers)
    seconds = sum(answer["timings"]["predicted_ms"] for answer in answers) / 1000
    drafted = sum(run["metrics"].get(DRAFTED, 0) for run in runs)
    accepted = sum(run["metrics"].get(ACCEPTED, 0) for run in runs)
    text = f"{tokens / seconds:.1f} tok/s"
    return f"{text}, acceptance {accepted / drafted:.0%}" if drafted else text


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
    if len(ids) + block.n_predict + block.gamma > block.context:
        raise MeasurementError(
            f"prompt {source.prompt} has {len(ids)} tokens; with {block.n_predict} generated and"
            f" {block.gamma} drafted they exceed measurement.context = {block.context}"
        )
    return ids


def _measure_run(
    server: Server, block: Block, prompt: str, ids: list[int], order: int
) -> dict[str, Any]:
    started_at = datetime.now(UTC)
    load = load_average()
    before, failures = server.metrics(), server.decode_failures()
    clock = time.perf_counter()
    answer = generate(server, block, ids)
    wall_ms = (time.perf_counter() - clock) * 1000
    after = server.metrics()
    counters = {name: value - before.get(name, 0) for name, value in after.items()}
    if block.has_draft and not counters.get(DRAFTED):
        raise server.fault(
            f"run {block.run_id(prompt)}: the server drafted nothing; its draft is not in use"
        )
    run = {
        "run": block.run_id(prompt),
        "prompt": prompt,
        "order": order,
        "started_at": started_at.isoformat(),
        "load_average": load,
        "wall_ms": wall_ms,
        "metrics": counters,
        "decode_failures": server.decode_failures() - failures,
        "answer": answer,
    }
    _logger.debug(_progress(block, run))
    return run


def _add_traces(server: Server, block: Block, runs: list[dict[str, Any]]) -> None:
    """Add to each run its verifications and drafting time from the log of the ended server."""
    if not block.has_draft:
        return
    log = server.log_text()
    traces, draft_times = read_trace(log), read_draft_times(log)
    requests = block.warmups + len(runs)
    for what, logged in (("verifications", traces), ("drafting times", draft_times)):
        if len(logged) != requests:
            raise server.fault(f"the log has {what} of {len(logged)} of {requests} requests")
    for request, run in enumerate(runs, start=block.warmups):
        run["verifications"] = [astuple(verification) for verification in traces[request]]
        run["draft_ms"] = draft_times[request]


def generate(server: Server, block: Block, ids: list[int]) -> dict[str, Any]:
    """Return the server's answer to a prompt of a block, see `Server.complete`.

    Raises MeasurementError unless it read the whole prompt and generated `n_predict` tokens.
    """
    answer = server.complete(
        ids, n_predict=block.n_predict, temperature=block.temperature, seed=block.seed
    )
    generated = len(answer["tokens"])
    if generated != block.n_predict:
        raise server.fault(f"short output: {generated} tokens instead of {block.n_predict}")
    if answer["timings"]["prompt_n"] != len(ids):
        raise server.fault(
            f"the server read {answer['timings']['prompt_n']} prompt tokens of {len(ids)}"
        )
    return answer


def _refuse_unlike_vocabularies(server: Server, block: Block) -> None:
    # llama-server logs this fault and continues without speculation.
    if block.has_draft and VOCABULARY_FAULT in server.log_text():
        raise server.fault(
            f"draft {block.draft} and target {block.target} have different vocabularies;"
            " choose a draft of the target's family"
        )


def _refuse_other_settings(server: Server, block: Block, settings: Settings) -> None:
    """Raise MeasurementError unless the server's settings are those of the block."""
    rounded_up = math.ceil(block.context / CONTEXT_STEP) * CONTEXT_STEP
    checks: list[tuple[str, object, list[object]]] = [
        ("slots", settings.slots, [1]),
        ("tokens of context", settings.context, [block.context, rounded_up]),
        ("speculative", settings.speculative, [block.has_draft]),
        # A model without attention has no cache.
        ("types of the cache", settings.cache_types, [CACHE_TYPES, ()]),
    ]
    for what, found, allowed in checks:
        if found not in allowed:
            raise server.fault(
                f"block {block.block} is not measured: llama-server reports {what} = {found},"
                f" the block asks for {allowed[0]}"
            )


def _progress(block: Block, run: dict[str, Any]) -> str:
    metrics, rate = run["metrics"], tokens_per_second(run["answer"])
    line = f"run {run['order'] + 1} of {len(block.prompts)}: {run['run']}: {rate:.1f} tok/s"
    if block.has_draft:
        line += f", acceptance {metrics[ACCEPTED] / metrics[DRAFTED]:.1%}"
    return line
