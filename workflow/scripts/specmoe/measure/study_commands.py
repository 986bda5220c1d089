"""The study's protocol: the study's own commands and the numbers it read from them.

A baseline is one `llama-bench` run of an empty context, a speculative run one `llama-speculative`
run. What the study did not report is kept too: the tool's counters and its failed decodes.
"""

import csv
import logging
import math
import os
import re
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from specmoe.config.block import Arm, Block, Schedule
from specmoe.config.engines import engine_environment
from specmoe.config.workloads import text_of_prompt
from specmoe.engine.job import Job
from specmoe.engine.process import count_failures, peak_rss_bytes, run_tool, with_end_of_log
from specmoe.files import at_home, engine_path
from specmoe.hardware.machine import help_of, machine_id, physical_cores

# On a busy machine llama-speculative (llama.cpp of November 2026) may exit with code 0 before its
# logger has written the result; it is then run again.
ATTEMPTS = 5
_RESULT = re.compile(
    r"encoded +(\d+) tokens in +([\d.]+) seconds.*?"
    r"decoded +(\d+) tokens in +([\d.]+) seconds, speed: +([\d.]+|inf) t/s.*?"
    r"n_drafted += (\d+).*?n_accept += (\d+).*?"
    r"accept +=\s+(\S+)%",  # `-nan` if nothing was drafted
    re.DOTALL,
)

_logger = logging.getLogger(__name__)

Reading = dict[str, Any]
"""What a tool prints of one run, by column; a baseline has drafted and accepted nothing."""


def measure_by_study(block: Block, job: Job) -> dict[str, Any]:
    """Do all runs of a block, each in a process of its own, and return its record.

    Failed decodes are counted. Raises MeasurementError when a tool fails, hangs or prints no
    result.
    """
    job.server_log.write_bytes(b"")
    environment = engine_environment(block.environment, os.environ)
    recorded = {name: at_home(value) for name, value in environment.items()}
    arms: list[dict[str, Any]] = []
    runs: list[dict[str, Any]] = []
    # The study's order: the baseline comes first.
    for arm in block.arms:
        command = _command(block, arm, job)
        for source in block.prompts:
            # A baseline has a length, and a text is cut to so many words or taken whole.
            prompt = str(source.length)
            if arm.speculates:
                text = text_of_prompt(job.root / source.file, None).rstrip("\n")
                prompt = " ".join(text.split()[: source.length]) if source.length else text
            name, load_average = block.run_id(arm, source.prompt), os.getloadavg()[0]
            known = {"run": name, "arm": arm.name, "order": len(runs), "load_average": load_average}
            run = _measure_run(name, [*command, "-p", prompt], job, environment)
            runs.append(known | run)
            rate, failures = run["reading"]["tokens_per_second"], run["decode_failures"]
            line = f"run {len(runs)} of {block.runs}: {name}: {run['wall_ms'] / 1000:.2f} s"
            _logger.debug("%s, %.1f tok/s, %s failed decodes", line, rate, failures)
        arms.append({"arm": arm.name, "environment": recorded, "peak_rss_bytes": peak_rss_bytes()})
    return {"schedule": Schedule.SEQUENTIAL, "machine": machine_id(), "arms": arms, "runs": runs}


def read_bench(text: str) -> Reading | None:
    """Return llama-bench's result for one prompt length and one generation; None if it has none."""
    _, head, table = text.partition("build_commit,")  # behind what devices print
    rows = list(csv.DictReader((head + table).splitlines()))
    if len(rows) != 2:
        return None
    prompt, generation = rows
    return {
        "n_prompt": int(prompt["n_prompt"]),
        "prompt_ms": float(prompt["avg_ns"]) / 1e6,
        "generated": int(generation["n_gen"]),
        "decode_ms": float(generation["avg_ns"]) / 1e6,
        "tokens_per_second": float(generation["avg_ts"]),
    }


def read_speculative(log: str) -> Reading | None:
    """Return the result in llama-speculative's log; None if it has none."""
    result = _RESULT.search(log)
    if result is None:
        return None
    n_prompt, prompt_s, generated, decode_s, rate, drafted, accepted, percent = result.groups()
    return {
        "n_prompt": int(n_prompt),
        # Three digits of a second are printed.
        "prompt_ms": float(round(float(prompt_s) * 1000)),
        "generated": int(generated),
        "decode_ms": float(round(float(decode_s) * 1000)),
        "tokens_per_second": float(rate),
        "drafted": int(drafted),
        "accepted": int(accepted),
        "acceptance_percent": None if math.isnan(float(percent)) else float(percent),
    }


def _command(block: Block, arm: Arm, job: Job) -> list[str]:
    """Return the study's command for all runs of an arm, without the prompt."""
    tool = job.binaries / ("llama-speculative" if arm.speculates else "llama-bench")
    command = [str(tool), "-m", str(engine_path(job.target)), "-n", str(block.n_predict)]
    # The study names neither threads nor layers; both are set as in protocol `paired`.
    command += ["-t", str(block.threads or physical_cores())]
    if block.gpu_layers:
        command += ["-ngl", str(block.gpu_layers)]
    if not arm.speculates:
        return [*command, "-r", "1", "-o", "csv"]
    if block.gpu_layers:
        command += ["-ngld", str(block.gpu_layers)]
    assert arm.draft_model
    command += ["-md", str(engine_path(job.drafts[arm.draft_model]))]
    new = "--spec-draft-n-max"  # the flag that replaced `--draft` (llama.cpp, common/arg.cpp)
    command += [new if new in help_of(tool) else "--draft", str(arm.gamma)]
    return [*command, "--temp", str(block.temperature)]


def _measure_run(
    name: str, command: list[str], job: Job, environment: Mapping[str, str]
) -> dict[str, Any]:
    """Return what a tool's run gave. Raises MeasurementError if it fails or prints no result."""
    for _ in range(ATTEMPTS):
        started_at, clock = datetime.now(UTC), time.perf_counter()
        text, log = run_tool(command, job.server_log, job.time_limit_s, environment)
        wall_ms = (time.perf_counter() - clock) * 1000
        reading = read_bench(text) or read_speculative(log)
        if reading is not None:
            return {
                "started_at": started_at.isoformat(),
                "wall_ms": wall_ms,
                "command": [*map(at_home, command)],
                "decode_failures": count_failures(log),
                "reading": reading,
                "output": text,
            }
    raise with_end_of_log(f"run {name}: no result", log, job.server_log)
