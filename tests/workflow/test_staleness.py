"""An edit to the workflow's own code reruns what depends on it, and nothing else."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from .test_workflow import jobs

PARTS = ["Snakefile", "CITATION.cff", "config", "envs", "paper", "resources", "rules", "workflow"]


@pytest.fixture
def checkout(root, tmp_path, tiny):
    """Run snakemake in a copy of the workflow, whose runs are measured; the copy may be edited."""
    for part in PARTS:
        copy = shutil.copytree if (root / part).is_dir() else shutil.copy2
        copy(root / part, tmp_path / part)
    (tmp_path / "tiny.yaml").write_text(yaml.safe_dump(tiny))

    def run(*args: str) -> str:
        command = [sys.executable, "-m", "snakemake", "--cores", "2", *args]
        command += ["--configfile", "tiny.yaml", "--workflow-profile", "none"]
        done = subprocess.run(
            command, cwd=tmp_path, capture_output=True, text=True, check=True, env=os.environ
        )
        return done.stdout + done.stderr

    run("runs")
    return run


@pytest.fixture
def edit(tmp_path):
    """Add code or prose to a module of the copied workflow; the next call edits another instead."""
    edited: dict[Path, str] = {}

    def change(module: str, added: str = "EDITED = True") -> None:
        for file, text in edited.items():
            file.write_text(text)
        file = tmp_path / "workflow/scripts" / module
        edited[file] = file.read_text()
        file.write_text(f"{edited[file]}{added}\n")

    return change


def test_an_edit_measures_again_what_runs_the_edited_module(checkout, edit):
    assert "Nothing to be done" in checkout("-n", "runs")
    reruns = {
        "specmoe/engine/server_log.py": {"measure_block": 2},
        "measure_block.py": {"measure_block": 2},
        "specmoe/runs/collect.py": {"collect_runs": 1},
        "specmoe/models/gguf.py": {"describe_model": 2},
    }
    for module, expected in reruns.items():
        edit(module)
        planned = jobs(checkout("-n", "runs"))
        assert expected.items() <= planned.items(), module
        assert (
            "measure_block" in expected
            or "describe_model" in expected
            or ("measure_block" not in planned)
        )
    words = ("errors.py", "command_line.py", "plan/progress.py")
    words += ("analysis/build.py", "page/page.py")
    for module in (f"specmoe/{name}" for name in words):
        edit(module)
        assert "Nothing to be done" in checkout("-n", "runs"), module
    edit("specmoe/engine/server_log.py", "# Prose.")
    assert "Nothing to be done" in checkout("-n", "runs")
