"""Processes in tests: programs to start, whether they are alive, and waiting for a condition."""

import os
import subprocess
import sys
import time
from pathlib import Path

import psutil

SCRIPTS = Path(__file__).resolve().parents[1] / "workflow/scripts"


def write_program(path: Path, script: str) -> Path:
    """Write a stand-in for a program, a shell script, and the folder it is in; return its path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path


def start_python(code: str, folder: Path | None = None, **environment: str) -> subprocess.Popen:
    """Start Python, which finds the package, in a folder; its input and output are pipes."""
    known = os.environ | {"PYTHONPATH": str(SCRIPTS)} | environment
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    return subprocess.Popen([sys.executable, "-c", code], cwd=folder, env=known, **pipes)


def alive(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def eventually(condition, patience_s: float = 60):
    deadline = time.monotonic() + patience_s
    while not (value := condition()):
        assert time.monotonic() < deadline, "nothing happened"
        time.sleep(0.05)
    return value
