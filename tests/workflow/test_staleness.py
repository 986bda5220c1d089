"""An edit to the code renders again and measures nothing; another prompt is measured."""

import os
import re
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest
import yaml

from ..conftest import copied_workflow
from ..small_campaign import tiny_campaign
from .test_workflow import jobs


@pytest.fixture(scope="module")
def checkout(module_folder, engine_bin):
    """Run snakemake in a copy of the workflow, whose runs are measured; the copy may be edited."""
    copied_workflow(module_folder)
    (module_folder / "tiny.yaml").write_text(yaml.safe_dump(tiny_campaign(engine_bin)))

    def run(*args: str) -> str:
        command = [sys.executable, "-m", "snakemake", "--cores", "2", *args]
        command += ["--configfile", "tiny.yaml", "--workflow-profile", "none"]
        done = subprocess.run(command, cwd=module_folder, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout + done.stderr

    run("tables")
    return run


@pytest.fixture
def edit(module_folder):
    """Add code to modules of the copied workflow; the next call, and the end, take it away."""
    edited: dict[Path, str] = {}

    def change(*modules: str) -> None:
        restore()
        for module in modules:
            file = module_folder / "workflow/scripts" / module
            edited[file] = file.read_text()
            file.write_text(f"{edited[file]}EDITED = True\n")

    def restore() -> None:
        for file, text in edited.items():
            file.write_text(text)

    yield change
    restore()


def test_an_edit_renders_again_and_measures_nothing_again(checkout, edit):
    edit("specmoe/page/page.py")
    planned = jobs(checkout("-n", "tables"))
    assert {"audit", "analyse_runs", "render_paper"} <= set(planned)
    assert not {"measure_block", "collect_table", "judge_divergences"} & set(planned)
    edit("specmoe/runs/collect.py")
    planned = jobs(checkout("-n", "tables"))
    assert planned["collect_table"] == 3  # with what describes machine and models
    assert "measure_block" not in planned
    edit("specmoe/engine/responses.py", "specmoe/models/gguf.py", "specmoe/cli.py")
    assert "Nothing to be done" in checkout("-n", "runs")


def test_a_prompt_of_the_same_time_is_measured_whatever_snakemake_is_told(checkout, module_folder):
    prompt = module_folder / "resources/prompts/code.txt"
    times = prompt.stat()
    prompt.write_text("Write a function that adds two numbers.\n")
    os.utime(prompt, ns=(times.st_atime_ns, times.st_mtime_ns))
    said = "results/tiny: not measured as it is asked for now: blocks/S/target/r0 and 1 more"
    assert said in checkout("audit", "--allowed-rules", "collect_table", "audit")
    with suppress(AssertionError):
        checkout("--touch", "tables")
    printed = checkout("runs", "--rerun-triggers", "mtime")
    assert re.search(r"again  .*prompts\.code\.text: \w+ before, \w+ now", printed)
    assert jobs(printed)["measure_block"] == 2
    assert "Nothing to be done" in checkout("-n", "runs")
