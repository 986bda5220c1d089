"""The times of a model's passes, measured by themselves."""

import os
from dataclasses import asdict
from pathlib import Path
from typing import Any

from specmoe.config.environment import engine_environment
from specmoe.config.timed_passes import TimedPasses
from specmoe.engine.job import Job
from specmoe.engine.machine_id import host_id, physical_cores
from specmoe.engine.pass_bench import pass_bench_command, read_pass_bench
from specmoe.engine.process import run_tool


def measure(passes: TimedPasses, job: Job, program: Path) -> dict[str, Any]:
    """Time the passes of the job's target with `program`, and return their record.

    Raises MeasurementError when the program fails or hangs.
    """
    command = pass_bench_command(
        program,
        job.target,
        job.root / passes.text,
        widths=passes.widths,
        outputs=passes.outputs,
        samples=passes.samples,
        depth=passes.depth,
        threads=passes.threads or physical_cores(),
        gpu_layers=passes.gpu_layers,
    )
    environment = engine_environment(passes.environment, os.environ)
    limit_s = job.start_limit_s + job.run_limit_s
    printed = run_tool(command, job.server_log, limit_s, environment).text
    return {
        "passes": asdict(passes),
        "host": host_id(),
        "timings": [timing._asdict() for timing in read_pass_bench(printed)],
    }
