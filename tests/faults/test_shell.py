"""Jobs, and snakemake, whose surroundings end before they do."""

import os
import signal
import subprocess
import sys

import pytest

from ..conftest import verb


def in_shell(root, command, folder):
    """Run a command as the shell of a job does."""
    words = ["bash", "-c", f". {root}/rules/job.sh; {command}"]
    return subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False)


def test_a_job_that_the_system_kills_says_so_and_one_that_fails_says_no_more(root, tmp_path):
    done = in_shell(root, """python3 -c 'import os; os.kill(os.getpid(), 9)' | tee log""", tmp_path)
    assert done.returncode == 128 + signal.SIGKILL
    assert done.stderr.splitlines()[-1].startswith(
        "MemoryError: the system killed this job (SIGKILL), as it does where memory ends; end other"
    )
    done = in_shell(root, "echo its own words | tee log; exit 3", tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (3, "its own words\n", "")


def test_output_that_nobody_reads_to_its_end_stops_nothing(root, tmp_path):
    words = [sys.executable, "-m", "snakemake", "--cores", "1"]
    words += ["--snakefile", str(root / "Snakefile"), "help"]
    whole = subprocess.run(words, cwd=tmp_path, capture_output=True, check=True)
    log = next(tmp_path.rglob("help.log"))
    written = log.read_text()
    assert written in whole.stdout.decode()
    log.unlink()
    reader, writer = os.pipe()
    with subprocess.Popen(words, cwd=tmp_path, stdout=writer, stderr=writer) as process:
        os.close(writer)
        with os.fdopen(reader, "rb") as pipe:
            pipe.readline()
        assert process.wait(60) == 0
    assert log.read_text() == written


def test_ctrl_c_at_the_start_of_a_verb_shows_no_traceback(tmp_path):
    pipes = {"stdin": subprocess.PIPE, "stderr": subprocess.PIPE}
    process = subprocess.Popen(verb("advise"), cwd=tmp_path, text=True, **pipes)
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(0.3)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert process.returncode != 0
    assert said in ("", "interrupted\n")
