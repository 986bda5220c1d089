"""What measuring jobs share: their needs from the command line, and a log with their faults."""

import logging
from pathlib import Path

import pytest

from specmoe.engine.job import engine_job, job_of, log_of_job
from specmoe.errors import MeasurementError

ARGUMENTS = ["--root=r", "--engine=e/engine.json", "--host=h", "--target=t", "--out=o"]


def test_a_job_has_the_engines_programs_and_the_limits_of_its_command_line():
    more = ["--server-log=s", "--start-limit-s=2", "--run-limit-s=0.5"]
    job = job_of(engine_job("").parse_args([*ARGUMENTS, *more]), Path("d"))
    assert (job.binaries, job.target, job.draft) == (Path("e/bin"), Path("t"), Path("d"))
    assert (job.start_limit_s, job.run_limit_s) == (2.0, 0.5)


def test_a_jobs_log_has_its_runs_and_its_fault(tmp_path):
    log = tmp_path / "block.log"
    with pytest.raises(MeasurementError), log_of_job(log):
        logging.getLogger("specmoe.measure.paired").debug("run 1 of 2")
        logging.getLogger("specmoe.engine.measuring_lock").info("waiting")
        raise MeasurementError("short output")
    assert log.read_text() == "run 1 of 2\nMeasurementError: short output\n"
