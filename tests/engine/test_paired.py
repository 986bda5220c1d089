"""The paired protocol on a real llama-server: what it records, and how it fails."""

import os
import signal
import threading
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from specmoe.errors import MeasurementError

from ..blocks import ALONE, alone, compared, measured, rows
from ..processes import alive, eventually

BASELINE = alone(warmups=2)
COMPARED = compared(BASELINE)


@pytest.fixture(scope="module")
def record(job_in, module_folder):
    """The record of the comparison."""
    return measured(COMPARED, job_in(module_folder))


needs_proc = pytest.mark.skipif(not Path("/proc").exists(), reason="finds processes in /proc")


@needs_proc
def test_in_turn_gives_the_tokens_and_counters_of_together_and_no_server_is_left(
    do, record, tmp_path, module_folder
):
    sequential = do(COMPARED, usable_memory=0)
    assert (record["schedule"], sequential["schedule"]) == ("interleaved", "sequential")
    assert by_run(record) == by_run(sequential)
    assert len(by_run(record)) == 4
    told = {run["arm"] for run in record["runs"] if "draft_n" in run["answer"]["timings"]}
    assert told == {"draft/g4"}  # in raw answers
    assert server_pids(tmp_path) == server_pids(module_folder) == []


def test_each_arm_has_a_log_settings_and_a_peak_of_memory_of_its_own(record, module_folder):
    drafted, alone = record["arms"]  # the one that needs more memory starts first
    assert [arm["server"]["speculative"] for arm in (alone, drafted)] == [False, True]
    assert alone["environment"] == drafted["environment"]
    assert alone["environment"]["LC_ALL"] == "C.UTF-8"
    assert 0 < alone["peak_rss_bytes"] < drafted["peak_rss_bytes"]
    for arm in (alone, drafted):
        log = module_folder / f"server.{arm['arm'].replace('/', '.')}.log"
        # The prompts' times, warm-ups included.
        assert log.read_text().count("prompt eval time") == BASELINE.warmups + 2


def test_texts_are_those_of_the_baselines_and_counters_obey_the_servers_arithmetic(record):
    found = {row["run"]: row for row in rows(record)}
    alone = {name: row for name, row in found.items() if not row["gamma"]}
    assert all(row["decodes"] == row["n_predict"] for row in alone.values())
    assert {row["prompt"]: row["n_prompt"] for row in alone.values()}["passage-32"] == 32
    assert {row["baseline"] for row in found.values()} == {None, *alone}
    for row in [row for row in found.values() if row["gamma"]]:
        assert row["common_prefix"] == 32  # models are not quantized
        # The prompt's pass gives the first token; each other decode gives one and those it accepts.
        passes = row["decodes"] - 1
        assert passes == row["n_predict"] - 1 - row["accepted"] + row["replays_rejected"]
        assert row["rounds"] + row["replays"] <= passes
        assert 0 < row["replays"] <= row["rounds"] + row["replays_rejected"]
        assert row["drafted"] <= row["gamma"] * row["rounds"]
        assert sum(row["accepted_per_position"]) == row["accepted"]
        assert row["decode_failures"] == 0


# The columns of a row that do not depend on time or on the machine's load.
IDENTITY = (
    *("run", "n_prompt", "n_predict", "rounds", "drafted", "accepted", "accepted_per_position"),
    *("replays", "replays_rejected", "decodes", "decode_failures", "tokens"),
)


def by_run(record):
    return {row["run"]: {name: row[name] for name in IDENTITY} for row in rows(record)}


def test_a_server_that_speculates_otherwise_than_asked_is_not_measured(do):
    with pytest.raises(MeasurementError, match="speculative = True, arm baseline asks for False"):
        do(replace(BASELINE, environment={"LLAMA_ARG_SPEC_TYPE": "ngram-simple"}))


def server_pids(log_folder: Path) -> list[int]:
    """Return the ids of the llama-server processes that write to logs in a folder."""
    return [
        process.pid
        for process in psutil.process_iter(["name", "open_files"])
        if process.info["name"] == "llama-server"
        and any(Path(file.path).parent == log_folder for file in process.info["open_files"] or ())
    ]


@needs_proc
def test_a_crash_is_named_by_its_signal(serve, tmp_path):
    crash = pytest.raises(MeasurementError, match=r"crashed \(killed by SIGKILL\)")
    with crash, serve(alone(context=4096), ALONE, time_limit_s=3) as server:
        [pid] = server_pids(tmp_path)
        threading.Timer(0.5, os.kill, (pid, signal.SIGKILL)).start()
        while True:
            server.complete([1] * 8, n_predict=512, temperature=0, seed=1)


@needs_proc
def test_a_hang_ends_at_the_time_limit_and_leaves_no_server(serve, tmp_path):
    timeout = pytest.raises(MeasurementError, match=r"timeout: /completion took longer than 3 s")
    with timeout, serve(BASELINE, ALONE, time_limit_s=3) as server:
        [pid] = server_pids(tmp_path)
        os.kill(pid, signal.SIGSTOP)
        server.complete([1] * 8, n_predict=8, temperature=0, seed=1)
    assert eventually(lambda: not alive(pid))
