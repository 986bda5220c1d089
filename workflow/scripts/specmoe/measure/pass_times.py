"""The times of a model's passes by their width, measured by themselves.

See `engine/pass_bench.cpp` for what it times, and why no program of llama.cpp does.
"""

import json
import logging
import os
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean, median
from typing import Any

from specmoe.config.block import TimedPasses
from specmoe.config.engines import engine_environment
from specmoe.config.measurement import Gate
from specmoe.engine.build import PASS_BENCH
from specmoe.engine.disturbances import Watch, measure_undisturbed
from specmoe.engine.identity import Workplace
from specmoe.engine.job import Job, alone_on_its_host, job_of
from specmoe.engine.machine import host_id, physical_cores
from specmoe.engine.process import run_tool
from specmoe.files import engine_path

_logger = logging.getLogger(__name__)


def read_pass_bench(text: str) -> list[dict[str, Any]]:
    """Return the passes of each width with the same outputs, over all samples, in order.

    `ms` is their median, `experts` the distinct ones of a layer, as a mean over layers and samples;
    None of a dense model.
    """
    lines: Sequence[dict[str, object]] = [json.loads(line) for line in text.splitlines()]
    times: dict[tuple[str, int], list[float]] = {}
    experts: dict[int, list[float]] = {}
    for line in lines:
        match line:
            case {"width": int(width), "outputs": str(outputs), "ms": float(ms)}:
                times.setdefault((outputs, width), []).append(ms)
            case {"width": int(width), "experts": list(visited)}:
                experts.setdefault(width, []).append(fmean(visited))
    means = {width: fmean(counts) for width, counts in experts.items()}
    return [
        {"outputs": outputs, "width": width, "ms": median(ms), "experts": means.get(width)}
        for (outputs, width), ms in sorted(times.items())
    ]


def measure(passes: TimedPasses, job: Job, program: Path) -> dict[str, Any]:
    """Time the passes of the job's target with `program`, and return their record.

    While the machine serves others they are timed again, as runs are. Raises MeasurementError when
    the program fails or hangs.
    """
    threads = passes.threads or physical_cores()
    command = [str(program), str(engine_path(job.target)), str(job.root / passes.text)]
    command += map(str, (threads, passes.gpu_layers, passes.depth, passes.samples))
    command += [",".join(passes.outputs), ",".join(map(str, passes.widths))]
    environment = engine_environment(passes.environment, os.environ)
    limit_s = job.start_limit_s + job.run_limit_s
    gpus = passes.environment.get("CUDA_VISIBLE_DEVICES", "")
    measured = measure_undisturbed(
        lambda: run_tool(command, job.server_log, limit_s, environment).text,
        lambda: Watch(None, threads, job.backend, gpus),
        Gate.model_validate(passes.gate),
        lambda at, why: _logger.info("passes of %s, attempt %d: %s", passes.model, at, why),
    )
    return {
        "host": host_id(),
        "measured_again": measured.measured_again,
        "taken_away": measured.taken_away,
        "timings": read_pass_bench(measured.result),
    }


def time_passes(
    passes: TimedPasses, workplace: Workplace, model: Path, log: Path
) -> dict[str, Any]:
    """Time the passes of a model alone on the machine, and return their record.

    `log` receives the program's output.
    """
    with alone_on_its_host(workplace, passes.environment):
        job = job_of(workplace, model, log)
        return measure(passes, job, workplace.engine.with_name(PASS_BENCH))
