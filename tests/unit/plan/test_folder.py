"""Where snakemake works: a folder it can write to, without the locks of a killed process."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from specmoe.errors import ConfigError
from specmoe.plan import door
from specmoe.plan.door import check_folder, drop_other_packages, drop_stale_locks

from ...conftest import ROOT

HOLD = "from specmoe.plan.door import *; drop_stale_locks(); print(flush=True); input()"


def test_a_full_disk_is_refused_before_snakemake_ends_in_a_traceback(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(door, "free_bytes", lambda place: 100_000)
    with pytest.raises(ConfigError, match=rf"the disk of {tmp_path} has 0.1 MB free, less than"):
        check_folder(tmp_path)


def test_packages_on_the_path_are_left_out_but_those_with_snakemake(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "path", ["/own", str(tmp_path)])
    (tmp_path / "snakemake").mkdir()
    for present, left in ((True, ["/own", str(tmp_path)]), (False, ["/own"])):
        monkeypatch.setenv("PYTHONPATH", str(tmp_path))
        if not present:
            (tmp_path / "snakemake").rmdir()
        drop_other_packages()
        assert sys.path == left
        assert ("PYTHONPATH" in os.environ) == present


def test_locks_are_stale_when_no_process_is_left_that_could_hold_them(tmp_path):
    locks = tmp_path / ".snakemake/locks"
    words = [sys.executable, "-c", HOLD]
    environment = os.environ | {"PYTHONPATH": str(ROOT / "workflow/scripts")}

    def start():
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        process = subprocess.Popen(words, cwd=tmp_path, env=environment, **pipes)
        process.stdout.readline()
        return process

    def held() -> list[Path]:
        return list(locks.iterdir())

    first = start()
    (locks / "0.output.lock").write_text("x")
    second = start()
    assert held()
    first.kill(), first.wait()
    third = start()
    assert held()  # the second still shares them
    for process in (second, third):
        process.kill(), process.wait()
    drop_stale_locks(locks)
    assert not held()
