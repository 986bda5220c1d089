"""The times of a model's passes, measured by themselves."""

import logging
import os
from pathlib import Path
from typing import Any

from specmoe.config.environment import engine_environment
from specmoe.config.gate import Gate
from specmoe.config.timed_passes import TimedPasses
from specmoe.engine.job import Job, alone_on_its_host, job_of
from specmoe.engine.machine_id import host_id, physical_cores
from specmoe.engine.pass_bench import pass_bench_command, read_pass_bench
from specmoe.engine.process import run_tool
from specmoe.engine.programs import PASS_BENCH
from specmoe.engine.taken_away import Watch, measure_undisturbed
from specmoe.engine.workplace import Workplace

_logger = logging.getLogger(__name__)


def measure(passes: TimedPasses, job: Job, program: Path) -> dict[str, Any]:
    """Time the passes of the job's target with `program`, and return their record.

    While the machine serves others they are timed again, as runs are. Raises MeasurementError when
    the program fails or hangs.
    """
    threads = passes.threads or physical_cores()
    command = pass_bench_command(program, job.target, job.root, passes)
    environment = engine_environment(passes.environment, os.environ)
    limit_s = job.start_limit_s + job.run_limit_s
    gpus = passes.environment.get("CUDA_VISIBLE_DEVICES", "")

    def report(attempt: int, reason: str) -> None:
        _logger.info("passes of %s, attempt %d: %s", passes.model, attempt, reason)

    measured = measure_undisturbed(
        lambda: run_tool(command, job.server_log, limit_s, environment).text,
        lambda: Watch(None, threads, job.backend, gpus),
        Gate.model_validate(passes.gate),
        report,
    )
    return {
        "host": host_id(),
        "measured_again": measured.measured_again,
        "taken_away": measured.taken_away,
        "timings": [timing._asdict() for timing in read_pass_bench(measured.result)],
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
