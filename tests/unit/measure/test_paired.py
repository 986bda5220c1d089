"""The paired protocol with stand-ins for servers: who is live, when, and with which seeds."""

import os
from collections import Counter
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from specmoe.config.block import Arm
from specmoe.config.engines import Backend
from specmoe.engine.job import Job
from specmoe.engine.server import Settings
from specmoe.hardware.machine import WORKING_BYTES
from specmoe.measure.block import summary

from ...blocks import ALONE, DRAFTED, compared, drafted, job_of, measured, rows
from ..engine.test_server_log import logged

GB = 10**9
BLOCK = compared(arms=(ALONE, DRAFTED, drafted(8)))
SIDES = ["baseline", "draft/g4", "draft/g8"]


@dataclass
class Machine:
    """What happens on a machine of stand-ins, and how they behave."""

    decode_ms: tuple[float, ...] = (100.0,)  # of a server's requests; the last one holds on
    live: list[str] = field(default_factory=list)
    started: list[tuple[str, ...]] = field(default_factory=list)  # live arms at each start
    requests: list[dict[str, Any]] = field(default_factory=list)


class StandIn:
    """A server whose tokens follow from prompt and seed; it drafts γ tokens and accepts one."""

    peak_rss_bytes = 1000
    pid = os.getpid()
    environment: dict[str, str] = {}  # noqa: RUF012

    def __init__(self, machine: Machine, arm: Arm, context: int, log: Path):
        self.machine, self.arm, self.log = machine, arm, log
        self.command = [arm.name]
        self.settings = Settings(1, context, arm.speculates)
        self.answered = 0

    def __enter__(self):
        self.machine.live.append(self.arm.name)
        self.machine.started.append(tuple(self.machine.live))
        self.log.write_bytes(b"")
        return self

    def stop(self):
        if self.arm.name in self.machine.live:  # a second call does nothing
            self.machine.live.remove(self.arm.name)

    def tokenize(self, text):
        return list(range(len(text)))

    def complete(self, prompt, *, n_predict, temperature, seed, until_end, id_slot, cache_prompt):
        times = self.machine.decode_ms
        decode_ms = times[min(self.answered, len(times) - 1)]
        self.answered += 1
        sent = self.answered  # so far, each of which drafted once
        self.machine.requests.append({"prompt": len(prompt), "n_predict": n_predict, "seed": seed})
        if self.arm.speculates:
            with self.log.open("a") as log:
                log.write("id 0 | task 1 | processing task\n")
                log.write(f"id 0 | task 1 | accepted 1/{self.arm.gamma} draft tokens\n")
                print(*logged((sent, sent * self.arm.gamma, sent, sent * 2.5)), file=log)
        return {
            "tokens": [len(prompt) + seed] * n_predict,
            "stop_type": "limit",
            "timings": {"prompt_n": len(prompt), "prompt_ms": 1.0, "predicted_ms": decode_ms},
        }

    def metrics(self):
        drafted = {"spec_decode_num_draft_tokens_total": self.answered * self.arm.gamma}
        return {"n_decode_total": self.answered} | (drafted if self.arm.speculates else {})

    def log_text(self):
        return self.log.read_text()


@dataclass(frozen=True)
class StandInJob(Job):
    """A job whose servers are stand-ins."""

    machine: Machine = field(default_factory=Machine)

    def server(self, block, arm, log):
        return StandIn(self.machine, arm, block.context, log)


@pytest.fixture
def job(tmp_path):
    """The job of a target of 10 GB and a draft model of 1 GB on a machine of 100 GB."""
    (tmp_path / "code.txt").write_text("x" * 20)
    (tmp_path / "passage.txt").write_text("y" * 100)
    for name, size in (("t.gguf", 10 * GB), ("d.gguf", GB)):
        with (tmp_path / name).open("wb") as file:
            file.truncate(size)  # no block of the disk is used
    return job_of(tmp_path, StandInJob)


# 1 GB for each process; each has the weights, but on Metal processes share them.
NEEDED = {
    Backend.METAL: 11 * GB + 2 * WORKING_BYTES,
    Backend.CUDA: 2 * 10 * GB + GB + 2 * WORKING_BYTES,
}


def held(job, backend, less=0):
    return replace(job, backend=backend, usable_memory=NEEDED[backend] - less)


@pytest.mark.parametrize("backend", NEEDED)
def test_the_baseline_and_one_setting_are_live_where_memory_holds_both(job, backend):
    for less, at_once, schedule in ((0, 2, "interleaved"), (1, 1, "sequential")):
        record = measured(BLOCK, held(job, backend, less))
        assert record["schedule"] == schedule
        assert max(map(len, job.machine.started)) == at_once
        assert not job.machine.live
        job.machine.started.clear()


def test_a_server_that_cannot_be_made_is_told_by_its_own_error(job, monkeypatch):
    monkeypatch.setattr(StandInJob, "server", lambda *_: Path("/proc/none").touch())
    with pytest.raises(OSError, match="/proc/none"):
        measured(BLOCK, job)


@pytest.mark.parametrize("less", [0, 1])
def test_runs_are_compared_with_the_baseline_beside_them(job, less, caplog):
    caplog.set_level("DEBUG", "specmoe")
    record = measured(BLOCK, held(job, Backend.METAL, less))
    assert sorted(map(sorted, record["groups"])) == [["baseline", one] for one in SIDES[1:]]
    order = [run["order"] for run in record["runs"]]
    assert order == list(range(BLOCK.runs)) == list(range(2 * 2 * 2))
    lines = [line for line in caplog.messages if line.startswith("run ")]
    assert len(lines) == BLOCK.runs
    started = [live[-1] for live in job.machine.started]
    # One baseline for the whole block, or one beside each setting unless two follow one another.
    assert Counter(started)["baseline"] in ({1} if not less else {1, 2})
    assert [one["arm"] for one in record["arms"]].count("baseline") == started.count("baseline")
    found = rows(record)
    assert len({row["run"] for row in found}) == BLOCK.runs
    for row in found:
        if not row["gamma"]:
            assert row["baseline"] is None
            continue
        beside = record["groups"].index(["baseline", f"draft/g{row['gamma']}"])
        name = "baseline-2" if beside else "baseline"
        assert row["baseline"] == f"{BLOCK.block}/{name}/{row['prompt']}/p0"
        assert row["draft_ms"] == 2.5
    logs = {path.name for path in job.root.glob("*.log")}
    assert {f"r0.server.{arm}.log" for arm in ("baseline", "draft.g4", "draft.g8")} <= logs


@pytest.mark.parametrize(
    ("decode_ms", "most", "sent"),
    [
        ((100, 80, 79), 6, 3),  # within 5 % of the one before
        ((100, 96), 6, 2),
        ((100, 90, 80, 70, 60, 50, 40), 6, 6),  # the most
        ((100, 90, 80), 1, 1),
        ((100, 90, 80), 0, 0),
        ((1000, 900, 800), 6, 1),  # a second of decoding
        ((999, 900, 890), 6, 3),
    ],
)
def test_warm_ups_are_short_and_end_once_the_rate_settles(job, decode_ms, most, sent):
    job = replace(job, machine=Machine(decode_ms=decode_ms))
    record = measured(replace(BLOCK, warmups=most), job)
    warm_ups = [one for one in job.machine.requests if one["n_predict"] == 8]
    assert len(warm_ups) == 3 * sent
    assert {one["prompt"] for one in warm_ups} <= {32}  # the longest prompt
    assert len(record["runs"]) == BLOCK.runs


@pytest.mark.parametrize(("temperature", "seeds"), [(0.7, [42, 43, 44]), (0.0, [42] * 3)])
def test_repeats_of_sampled_texts_have_seeds_of_their_own_and_greedy_ones_share_one(
    job, temperature, seeds
):
    for repeat, seed in enumerate(seeds):
        block = replace(BLOCK, repeat=repeat, temperature=temperature)
        assert {row["seed"] for row in rows(measured(block, job))} == {seed}
        assert {one["seed"] for one in job.machine.requests} == {seed}
        job.machine.requests.clear()


def test_a_run_that_is_measured_again_keeps_its_last_answer_and_its_place(job, monkeypatch):
    monkeypatch.setattr("specmoe.hardware.disturbance.disturbance_reason", lambda *_: "busy")
    block = replace(BLOCK, reruns=1, arms=(ALONE, DRAFTED))
    job = replace(job, machine=Machine(decode_ms=(100.0, 90.0, 80.0, 70.0)))
    runs = measured(block, job)["runs"]
    assert len(job.machine.requests) == 2 * len(runs)
    assert [run["order"] for run in runs] == list(range(block.runs))
    assert {(run["reruns"], run["disturbed_reason"]) for run in runs} == {(1, "busy")}
    # Of an arm's four requests, the second and the fourth count.
    alone = [run for run in runs if run["arm"] == "baseline"]
    assert [run["request"] for run in alone] == [1, 3]
    assert [run["answer"]["timings"]["predicted_ms"] for run in alone] == [90.0, 70.0]
    assert [run["metrics"]["n_decode_total"] for run in alone] == [1, 1]
    assert all(run["draft_ms"] == 2.5 for run in runs if run["arm"] != "baseline")


def test_a_block_is_said_in_a_line_with_its_fastest_setting():
    def run_of(arm, rate, **more):
        answer = {"tokens": [*range(101)], "timings": {"predicted_ms": 100_000 / rate}}
        return {"arm": arm, "answer": answer, "decode_failures": 0} | more

    runs = [run_of("baseline", 50), run_of("d/g4", 40), run_of("d/g4", 80, reruns=1)]
    runs += [run_of(f"d/g{gamma}", 5, decode_failures=1) for gamma in (8, 16, 32)]
    assert summary(BLOCK, {"runs": runs}) == (
        "baseline 50.0 tok/s; fastest d/g4, 1.20×; 1 run repeated because of other load;"
        " 3 failed decodes"
    )
    beside = [("kdamond (kernel)", 0.094), ("chrome", 0.021)]
    assert summary(BLOCK, {"runs": runs[:1], "others": beside}) == (
        "baseline 50.0 tok/s; beside it kdamond (kernel) 9%, chrome 2% of the CPUs"
    )
    assert (
        summary(BLOCK, {"runs": runs[1:3]})
        == "fastest d/g4, 60.0 tok/s; 1 run repeated because of other load"
    )
