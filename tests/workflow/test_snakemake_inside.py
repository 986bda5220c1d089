"""Snakemake's inside is as rules/README.md lists it and the workflow uses it."""

import inspect
import re
import subprocess
import sys

from snakemake.scheduling.job_scheduler import JobScheduler

SNAKEFILE = """
rule fine:
    output: "fine.txt"
    shell: "echo $PPID > {output}"
"""


def test_a_jobs_shell_is_a_child_of_snakemake(tmp_path):
    (tmp_path / "Snakefile").write_text(SNAKEFILE)
    command = [sys.executable, "-m", "snakemake", "--cores", "1", "fine.txt"]
    started = subprocess.Popen(command, cwd=tmp_path)
    assert started.wait() == 0
    assert (tmp_path / "fine.txt").read_text().split() == [str(started.pid)]


def test_without_a_rate_the_scheduler_sets_no_timer():
    assert "self.job_rate_limiter" in inspect.getsource(JobScheduler.__init__)
    source = inspect.getsource(JobScheduler)
    timers = re.findall(r"self\._schedule_reevalutation\(\s*([^\s)]*)", source)
    # The first is of rules whose input is a queue.
    assert timers[1:] == ["self.job_rate_limiter.timespan"]
    assert timers[1] in source.partition("if self.job_rate_limiter is not None:")[2]
