"""What rules/README.md lists of snakemake's inside is as the workflow takes it to be."""

import inspect
import re
import subprocess
import sys

import pytest
from snakemake.scheduling.job_scheduler import JobScheduler

from specmoe.engine.job import SET_BY_SNAKEMAKE

SNAKEFILE = """
import sys
sys.path.insert(0, "{scripts}")
from specmoe.console import quieten
{quieten}

rule fine:
    output: "fine.txt"
    conda: "environment.yaml"
    shell: "echo $PPID ${variable} > {{output}}"

rule broken:
    output: "broken.txt"
    params: code="a very long program"
    shell: "false {{params.code:q}}"
"""
NOISE = ["Building DAG of jobs", "Using shell: ", "Select jobs to execute", "Execute 1 jobs"]
NOISE += ["Assuming unrestricted shared filesystem", "Rules claiming more threads"]
NOISE += ["Conda environments: ignored", "1 of 1 steps", "Finished jobid", "Provided cores"]


@pytest.fixture(params=[True, False], ids=["quiet", "plain"])
def called(request, root, tmp_path):
    """Run a workflow of two rules, quietened or not; return whether it is, and how to call it."""
    text = SNAKEFILE.format(
        scripts=root / "workflow/scripts",
        quieten="quieten()" if request.param else "",
        variable=SET_BY_SNAKEMAKE,
    )
    (tmp_path / "Snakefile").write_text(text)
    (tmp_path / "environment.yaml").write_text("dependencies: []\n")

    def call(target):
        command = [sys.executable, "-m", "snakemake", "--cores", "1", target]
        started = subprocess.Popen(
            command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        return started.pid, started.communicate()[0]

    return request.param, call


def test_a_jobs_shell_is_a_child_of_snakemake_which_sets_the_threads(called, tmp_path):
    _, call = called
    pid, _ = call("fine.txt")
    assert (tmp_path / "fine.txt").read_text().split() == [str(pid), "1"]


def test_what_the_console_leaves_out_is_what_snakemake_prints(called):
    quiet, call = called
    _, printed = call("fine.txt")
    assert {line for line in NOISE if line in printed} == (set() if quiet else {*NOISE})
    assert "rule fine:" in printed
    _, printed = call("broken.txt")
    assert (re.search("Command .*a very long program", printed) is None) == quiet
    assert "returned non-zero exit status 1" in printed


def test_without_a_rate_the_scheduler_sets_no_timer():
    assert "self.job_rate_limiter" in inspect.getsource(JobScheduler.__init__)
    source = inspect.getsource(JobScheduler)
    timers = re.findall(r"self\._schedule_reevalutation\(\s*([^\s)]*)", source)
    # The first is of rules whose input is a queue.
    assert timers[1:] == ["self.job_rate_limiter.timespan"]
    assert timers[1] in source.partition("if self.job_rate_limiter is not None:")[2]
