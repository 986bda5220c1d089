"""The paired protocol on a real llama-server: what it records, and how it fails."""

import os
import signal
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from specmoe.config.block import Block, PromptSource
from specmoe.errors import MeasurementError
from specmoe.measure.paired import measure
from specmoe.runs.collect import rows_of_record

from ..blocks import PROVENANCE, baseline, speculative
from ..hostile import HOSTILE
from ..processes import alive, eventually

BASELINE = baseline(warmups=1)
SPECULATIVE = speculative(BASELINE, suite="B")


@pytest.fixture
def do(job):
    """Measure a block of the small family; returns its record."""

    def run(block: Block, **other_models):
        draft = job.draft if block.has_draft else None
        return measure(block, replace(job, **{"draft": draft} | other_models))

    return run


def rows(record):
    return rows_of_record(record | {"provenance": PROVENANCE}, "c")


def test_every_run_is_logged_with_its_place_and_rate(do, caplog):
    caplog.set_level("DEBUG", "specmoe")
    do(SPECULATIVE)
    assert [line.split(": ")[0] for line in caplog.messages] == ["run 1 of 2", "run 2 of 2"]
    assert all("tok/s, acceptance" in line for line in caplog.messages)


def test_speculation_gives_the_baselines_tokens_on_unquantized_models(do):
    plain, speculative = rows(do(BASELINE)), rows(do(SPECULATIVE))
    assert [row["tokens"] for row in plain] == [row["tokens"] for row in speculative]


def test_counters_obey_the_servers_arithmetic(do):
    for row in rows(do(SPECULATIVE)):
        # The prompt's pass gives the first token; each other decode gives one and those it accepts.
        passes = row["decodes"] - 1
        assert passes == row["n_predict"] - 1 - row["accepted"] + row["replays_rejected"]
        assert row["rounds"] + row["replays"] <= passes
        assert 0 < row["replays"] <= row["rounds"] + row["replays_rejected"]
        assert row["drafted"] <= row["gamma"] * row["rounds"]
        assert sum(row["accepted_per_position"]) == row["accepted"]
        assert row["decode_failures"] == 0


def test_a_baseline_reads_its_prompt_of_exact_length_and_decodes_once_for_each_token(do):
    found = rows(do(BASELINE))
    assert {row["prompt"]: row["n_prompt"] for row in found}["passage-32"] == 32
    assert all(row["decodes"] == row["n_predict"] for row in found)


# The columns of a row that do not depend on time or on the machine's load.
IDENTITY = (
    *("run", "n_prompt", "n_predict", "rounds", "drafted", "accepted", "accepted_per_position"),
    *("replays", "replays_rejected", "decodes", "decode_failures", "tokens"),
)


def identity(record):
    return [{name: row[name] for name in IDENTITY} for row in rows(record)]


def test_twenty_hostile_variables_do_not_change_the_rows(do, monkeypatch):
    clean = [do(block) for block in (BASELINE, SPECULATIVE)]
    for name, value in HOSTILE.items():
        monkeypatch.setenv(name, value)
    hostile = [do(block) for block in (BASELINE, SPECULATIVE)]
    assert [*map(identity, hostile)] == [*map(identity, clean)]
    for one, other in zip(hostile, clean, strict=True):
        assert one["environment"] == other["environment"]
        assert one["server"] == other["server"]


def test_the_record_has_command_line_environment_settings_and_raw_answers(do):
    record = do(SPECULATIVE)
    assert record["command"][record["command"].index("--spec-draft-n-max") + 1] == "4"
    assert record["runs"][0]["answer"]["timings"]["draft_n"] > 0
    assert record["peak_rss_bytes"] > 0
    assert record["environment"]["LC_ALL"] == "C.UTF-8"
    assert record["server"]["speculative"] is True
    assert record["server"]["cache_types"] == ("f16",)
    assert do(BASELINE)["server"]["speculative"] is False


@pytest.mark.parametrize(
    ("name", "value", "reported"),
    [
        ("LLAMA_ARG_SPEC_TYPE", "ngram-simple", "speculative = True, the block asks for False"),
        ("LLAMA_ARG_CACHE_TYPE_K", "q8_0", r"types of the cache = \('f16', 'q8_0'\)"),
    ],
)
def test_a_server_with_other_settings_is_not_measured(do, name, value, reported):
    with pytest.raises(MeasurementError, match=f"llama-server reports {reported}"):
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
    """Return the id of the llama-server process that writes to a log in a folder; 0 if none."""
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
def long_run(job):
    """A server with time for a long request, in which a test plants a fault."""
    block = baseline(context=4096)
    with replace(job, run_limit_s=3).server(job.command(block, None), block) as server:
        yield server


needs_proc = pytest.mark.skipif(not Path("/proc").exists(), reason="finds processes in /proc")


@needs_proc
def test_a_crash_is_named_by_its_signal(long_run, tmp_path):
    pid = server_pid(tmp_path)
    threading.Timer(0.5, os.kill, (pid, signal.SIGKILL)).start()
    with pytest.raises(MeasurementError, match=r"crashed \(killed by SIGKILL\)"):
        while True:
            long_run.complete([1] * 8, n_predict=512, temperature=0, seed=1)


@needs_proc
def test_a_hang_ends_at_the_time_limit_and_leaves_no_server(job, tmp_path):
    with (
        pytest.raises(MeasurementError, match=r"timeout: /completion took longer than 1 s"),
        replace(job, run_limit_s=1).server(job.command(BASELINE, None), BASELINE) as server,
    ):
        pid = server_pid(tmp_path)
        os.kill(pid, signal.SIGSTOP)
        server.complete([1] * 8, n_predict=8, temperature=0, seed=1)
    assert eventually(lambda: not alive(pid))
