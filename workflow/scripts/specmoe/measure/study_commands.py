"""The published protocol: the study's own commands and what it read from them.

A baseline is one `llama-bench` run of an empty context, a speculative run one `llama-speculative`,
whose speed and acceptance are taken as it prints them. What the study did not look at is kept
beside them: its counters, and how many of its decodes failed.
"""

import csv
import math
import os
import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from specmoe.config.block import Block, PromptSource
from specmoe.config.environment import engine_environment
from specmoe.engine.machine_id import host_id, load_average, physical_cores
from specmoe.engine.process import (
    Output,
    count_decode_failures,
    peak_rss_bytes,
    run_tool,
    with_end_of_log,
)
from specmoe.errors import MeasurementError
from specmoe.files import engine_path

BENCH = "llama-bench"
SPECULATIVE = "llama-speculative"
# The name of `--draft` since it was removed (llama.cpp, common/arg.cpp).
_NEW_DRAFT_FLAG = "--spec-draft-n-max"
_HELP_LIMIT_S = 60
# On a busy machine llama-speculative (llama.cpp of November 2026) may end well before its logger
# has written the result; it is then run again.
ATTEMPTS = 5
_SPEED = r"{} +(\d+) tokens in +([\d.]+) seconds, speed: +([\d.]+|inf) t/s"
_ENCODED, _DECODED = (re.compile(_SPEED.format(verb)) for verb in ("encoded", "decoded"))
_DRAFTED, _ACCEPTED = (re.compile(rf"n_{name} += (\d+)") for name in ("drafted", "accept"))
_ACCEPTANCE = re.compile(r"accept +=\s+(\S+)%")  # `-nan` if nothing was drafted


@dataclass(frozen=True)
class Reading:
    """What a tool prints of one run; the last three are of speculation."""

    n_prompt: int
    prompt_ms: float
    generated: int
    decode_ms: float
    tokens_per_second: float
    drafted: int | None = None
    accepted: int | None = None
    acceptance_percent: float | None = None


def measure(
    block: Block,
    *,
    root: Path,
    binaries: Path,
    target: Path,
    draft: Path | None,
    log: Path,
    run_limit_s: float,
    say: Callable[[str], None],
) -> dict[str, Any]:
    """Do all runs of a block, each in a process of its own, and return its record.

    `root` is the folder that prompt files are relative to, `binaries` that of the engine's tools;
    `log` receives what they log, `say` is told of every run. Decodes that fail are counted and no
    error. Raises MeasurementError when a tool fails, hangs or prints no result.
    """
    _refuse_texts_without_draft(block)
    log.write_bytes(b"")
    environment = engine_environment(block.environment, os.environ)
    command = _command(block, binaries, target, draft, log, environment)
    runs = []
    for order, source in enumerate(block.prompts):
        asked = [*command, *_prompt(block, source, root)]
        run = _measure_run(block, source, order, asked, log, run_limit_s, environment)
        runs.append(run)
        say(_progress(block, run))
    return {
        "protocol": block.protocol,
        "block": asdict(block),
        "environment": environment,
        "host": host_id(),
        "peak_rss_bytes": peak_rss_bytes(),
        "runs": runs,
    }


def summary(runs: Sequence[Mapping[str, Any]]) -> str:
    """Return the rates that a block's runs print, and their failed decodes, in words."""
    rates = [run["reading"]["tokens_per_second"] for run in runs]
    failures = sum(run["decode_failures"] for run in runs)
    reach = f"{min(rates):.1f} to {max(rates):.1f}" if len(rates) > 1 else f"{rates[0]:.1f}"
    return f"{reach} tok/s as printed, {failures} failed decodes"


def read_bench(text: str) -> Reading | None:
    """Return what llama-bench's CSV says of one prompt length and one generation; None: nothing.

    Its first row times the prompt, its second the generation, which starts from nothing.
    """
    lines = text.splitlines()
    header = next((at for at, line in enumerate(lines) if line.startswith("build_commit,")), None)
    rows = [] if header is None else list(csv.DictReader(lines[header:]))
    if len(rows) != 2:
        return None
    prompt, generation = rows
    return Reading(
        n_prompt=int(prompt["n_prompt"]),
        prompt_ms=float(prompt["avg_ns"]) / 1e6,
        generated=int(generation["n_gen"]),
        decode_ms=float(generation["avg_ns"]) / 1e6,
        tokens_per_second=float(generation["avg_ts"]),
    )


def read_speculative(log: str) -> Reading | None:
    """Return what llama-speculative's log says of its run; None: it prints no result."""
    encoded, decoded = _ENCODED.search(log), _DECODED.search(log)
    drafted, accepted = _DRAFTED.search(log), _ACCEPTED.search(log)
    acceptance = _ACCEPTANCE.search(log)
    if not (encoded and decoded and drafted and accepted and acceptance):
        return None
    percent = float(acceptance[1])
    return Reading(
        n_prompt=int(encoded[1]),
        prompt_ms=_milliseconds(encoded[2]),
        generated=int(decoded[1]),
        decode_ms=_milliseconds(decoded[2]),
        tokens_per_second=float(decoded[3]),
        drafted=int(drafted[1]),
        accepted=int(accepted[1]),
        acceptance_percent=None if math.isnan(percent) else percent,
    )


def _milliseconds(seconds: str) -> float:
    return float(round(float(seconds) * 1000))  # three digits are printed


def _refuse_texts_without_draft(block: Block) -> None:
    if not block.has_draft and any(source.length is None for source in block.prompts):
        raise MeasurementError(
            f"block {block.block}: protocol published takes baselines with {BENCH}, which knows"
            f" prompts by their length alone; give suite {block.suite} prompt_lengths for prompts"
        )


def _command(
    block: Block,
    binaries: Path,
    target: Path,
    draft: Path | None,
    log: Path,
    environment: Mapping[str, str],
) -> list[str]:
    """Return the study's command for all runs of a block, less what says the prompt."""
    tool = binaries / (SPECULATIVE if block.has_draft else BENCH)
    if not tool.is_file():
        raise MeasurementError(
            f"the engine has no {tool}, which protocol published needs: build the engine again, or"
            " put it into the folder that the engine's `path` names"
        )
    command = [str(tool), "-m", str(engine_path(target)), "-n", str(block.n_predict)]
    # The study named neither; both are as protocol `paired` has them.
    command += ["-t", str(block.threads or physical_cores())]
    if block.gpu_layers:
        command += ["-ngl", str(block.gpu_layers)]
    if draft is None:
        return [*command, "-r", "1", "-o", "csv"]
    if block.gpu_layers:
        command += ["-ngld", str(block.gpu_layers)]
    command += [
        "-md",
        str(engine_path(draft)),
        _draft_flag(tool, log, environment),
        str(block.gamma),
    ]
    return [*command, "--temp", str(block.temperature)]


def _draft_flag(tool: Path, log: Path, environment: Mapping[str, str]) -> str:
    """Return what llama-speculative calls the number of tokens to draft."""
    manual = run_tool([str(tool), "--help"], log, _HELP_LIMIT_S, environment).text
    return _NEW_DRAFT_FLAG if _NEW_DRAFT_FLAG in manual else "--draft"


def _prompt(block: Block, source: PromptSource, root: Path) -> list[str]:
    """Return the arguments that say the prompt: for llama-bench its length, else its text."""
    if not block.has_draft:
        return ["-p", str(source.length)]
    text = (root / source.file).read_text(encoding="utf-8").rstrip("\n")
    # As the study cuts it: to words, and to all there are if it has fewer.
    return ["-p", text if source.length is None else " ".join(text.split()[: source.length])]


def _measure_run(
    block: Block,
    source: PromptSource,
    order: int,
    command: list[str],
    log: Path,
    limit_s: float,
    environment: Mapping[str, str],
) -> dict[str, Any]:
    for _ in range(ATTEMPTS):
        started_at = datetime.now(UTC)
        load = load_average()
        clock = time.perf_counter()
        output = run_tool(command, log, limit_s, environment)
        wall_ms = (time.perf_counter() - clock) * 1000
        reading = _read(block, output)
        if reading is not None:
            break
    else:
        raise with_end_of_log(f"run {block.run_id(source.prompt)}: no result", output.log, log)
    return {
        "run": block.run_id(source.prompt),
        "prompt": source.prompt,
        "order": order,
        "started_at": started_at.isoformat(),
        "load_average": load,
        "wall_ms": wall_ms,
        "command": command,
        "decode_failures": count_decode_failures(output.log),
        "reading": asdict(reading),
        "output": output.text,
    }


def _read(block: Block, output: Output) -> Reading | None:
    return read_speculative(output.log) if block.has_draft else read_bench(output.text)


def _progress(block: Block, run: dict[str, Any]) -> str:
    reading = run["reading"]
    line = f"run {run['order'] + 1} of {len(block.prompts)}: {run['run']}:"
    line += f" {reading['tokens_per_second']:.1f} tok/s"
    if block.has_draft:
        line += f", acceptance {reading['acceptance_percent']} %"
    return f"{line}, {run['decode_failures']} failed decodes"
