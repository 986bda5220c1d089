"""The paired protocol on a real llama-server: what it records, and how it fails."""

import os
import signal
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from specmoe.config.block import Block, PromptSource
from specmoe.engine.server import Server, server_command
from specmoe.errors import MeasurementError
from specmoe.measure.paired import measure
from specmoe.runs.collect import rows_of_record

from ..blocks import PROVENANCE, baseline, speculative
from ..hostile import HOSTILE
from ..processes import alive, eventually

BASELINE = baseline(warmups=1)
SPECULATIVE = speculative(BASELINE, suite="B")


@pytest.fixture
def do(engine_bin, family, prompt_folder, tmp_path):
    """Measure a block of the small family; returns its record and what was said."""

    def run(block: Block, **overrides):
        said: list[str] = []
        arguments = {
            "root": prompt_folder,
            "binary": engine_bin / "llama-server",
            "target": family["target"],
            "draft": family["draft"] if block.has_draft else None,
            "log": tmp_path / "server.log",
            "start_limit_s": 60,
            "run_limit_s": 60,
            "say": said.append,
        } | overrides
        return measure(block, **arguments), said

    return run


def rows(record):
    return rows_of_record(record | {"provenance": PROVENANCE}, "c")


def test_a_prompt_of_exact_length_has_exactly_its_tokens(do):
    record, _ = do(BASELINE)
    assert {row["prompt"]: row["n_prompt"] for row in rows(record)}["passage-32"] == 32


def test_every_run_is_told_with_its_place_and_rate(do):
    _, said = do(SPECULATIVE)
    assert [line.split(": ")[0] for line in said] == ["run 1 of 2", "run 2 of 2"]
    assert all("tok/s, acceptance" in line for line in said)


def test_speculation_gives_the_baselines_tokens_on_unquantized_models(do):
    plain, speculative = rows(do(BASELINE)[0]), rows(do(SPECULATIVE)[0])
    assert [row["tokens"] for row in plain] == [row["tokens"] for row in speculative]


def test_counters_obey_the_servers_arithmetic(do):
    for row in rows(do(SPECULATIVE)[0]):
        # The prompt's pass gives the first token; every other decode gives one and what it accepts.
        passes = row["decodes"] - 1
        assert passes == row["n_predict"] - 1 - row["accepted"] + row["replays_rejected"]
        assert row["rounds"] + row["replays"] <= passes
        assert 0 < row["replays"] <= row["rounds"] + row["replays_rejected"]
        assert row["drafted"] <= row["gamma"] * row["rounds"]
        assert sum(row["accepted_per_position"]) == row["accepted"]
        assert row["decode_failures"] == 0


def test_a_baseline_decodes_once_for_each_token(do):
    for row in rows(do(BASELINE)[0]):
        assert row["decodes"] == row["n_predict"]


def test_the_record_keeps_the_command_line_and_the_raw_answer(do):
    record, _ = do(SPECULATIVE)
    assert record["command"][record["command"].index("--spec-draft-n-max") + 1] == "4"
    assert record["runs"][0]["answer"]["timings"]["draft_n"] > 0
    assert record["peak_rss_bytes"] > 0


# Everything of a row that does not hang on time or on the load of the machine.
IDENTITY = (
    *("run", "n_prompt", "n_predict", "rounds", "drafted", "accepted", "accepted_per_position"),
    *("replays", "replays_rejected", "decodes", "decode_failures", "tokens", "status"),
)


def identity(record):
    return [{name: row[name] for name in IDENTITY} for row in rows(record)]


def test_twenty_hostile_variables_change_nothing_of_the_rows(do, monkeypatch):
    clean = [do(block)[0] for block in (BASELINE, SPECULATIVE)]
    for name, value in HOSTILE.items():
        monkeypatch.setenv(name, value)
    hostile = [do(block)[0] for block in (BASELINE, SPECULATIVE)]
    assert [*map(identity, hostile)] == [*map(identity, clean)]
    for one, other in zip(hostile, clean, strict=True):
        assert one["environment"] == other["environment"]
        assert one["server"] == other["server"]


def test_the_record_holds_the_environment_and_what_the_server_says_of_itself(do):
    record, _ = do(SPECULATIVE)
    assert record["environment"]["LC_ALL"] == "C.UTF-8"
    assert record["server"]["speculative"] is True
    assert record["server"]["cache_types"] == ("f16",)
    assert do(BASELINE)[0]["server"]["speculative"] is False


@pytest.mark.parametrize(
    ("name", "value", "told"),
    [
        ("LLAMA_ARG_SPEC_TYPE", "ngram-simple", "speculative = True, asked was False"),
        ("LLAMA_ARG_CACHE_TYPE_K", "q8_0", r"types of the cache = \('f16', 'q8_0'\)"),
    ],
)
def test_a_server_that_is_set_up_otherwise_than_asked_is_not_measured(do, name, value, told):
    with pytest.raises(MeasurementError, match=f"llama-server reports {told}"):
        do(replace(BASELINE, environment={name: value}))


def test_a_passage_too_short_for_its_prompt_is_named(do):
    block = replace(BASELINE, prompts=(PromptSource("passage-400", "code.txt", 400),))
    with pytest.raises(MeasurementError, match=r"code\.txt has \d+ tokens .* give a longer"):
        do(block)


def test_a_prompt_that_exceeds_the_context_is_named(do):
    block = replace(BASELINE, context=256, prompts=(PromptSource("all", "passage.txt"),))
    with pytest.raises(MeasurementError, match=r"exceed measurement\.context = 256"):
        do(block)


def test_a_draft_of_another_vocabulary_fails_the_block(do, stranger):
    with pytest.raises(MeasurementError, match="different vocabularies"):
        do(SPECULATIVE, draft=stranger)


def test_a_file_that_is_no_model_fails_with_the_end_of_the_log(do, tmp_path):
    broken = tmp_path / "broken.gguf"
    broken.write_bytes(b"GGUF no more")
    with pytest.raises(MeasurementError, match=r"ended while loading(.|\n)*\| "):
        do(BASELINE, target=broken)


def server_pid(log_folder: Path) -> int:
    """Return the process that has the server's log open as its output and is llama-server."""
    for process in Path("/proc").iterdir():
        if process.name.isdigit():
            try:
                name = (process / "comm").read_text().strip()
                output = (process / "fd/1").resolve()
            except OSError:
                continue
            if name == "llama-server" and output.parent == log_folder:
                return int(process.name)
    return 0


@pytest.fixture
def long_run(engine_bin, family, tmp_path):
    """A server that is generating for long, for faults to be planted in."""
    command = server_command(
        engine_bin / "llama-server", family["target"], context=4096, threads=1, gpu_layers=0
    )
    with Server(command, tmp_path / "server.log", start_limit_s=60, run_limit_s=3) as server:
        yield server


needs_proc = pytest.mark.skipif(not Path("/proc").exists(), reason="finds processes in /proc")


@needs_proc
def test_a_crash_is_told_with_its_signal(long_run, tmp_path):
    pid = server_pid(tmp_path)
    threading.Timer(0.5, os.kill, (pid, signal.SIGKILL)).start()
    with pytest.raises(MeasurementError, match=r"crashed \(killed by SIGKILL\)"):
        while True:
            long_run.complete([1] * 8, n_predict=512, temperature=0, seed=1)


@needs_proc
def test_a_hang_ends_at_the_time_limit_and_leaves_no_server(engine_bin, family, tmp_path):
    command = server_command(
        engine_bin / "llama-server", family["target"], context=512, threads=1, gpu_layers=0
    )
    with (
        pytest.raises(MeasurementError, match=r"timeout: /completion took longer than 1 s"),
        Server(command, tmp_path / "server.log", start_limit_s=60, run_limit_s=1) as server,
    ):
        pid = server_pid(tmp_path)
        os.kill(pid, signal.SIGSTOP)
        server.complete([1] * 8, n_predict=8, temperature=0, seed=1)
    assert eventually(lambda: not alive(pid))
