"""Thousands of blocks on small models while faults are drawn at random; then every row is checked.

Every ten blocks one fault happens: a process is killed, a file is damaged, deleted or swapped, the
lock is taken. Whatever the workflow then says to do is done, and it is started again, until all
rows are there. In the end each run must be there once, its tokens those of the same run in every
other repeat, its weights one file. Prints how often each fault happened and what was said.

Usage: python tests/benchmarks/soak.py --engine results/engines/ID/bin --folder NEW_FOLDER

A benchmark, not a test: the default of 2000 blocks takes about an hour.
"""

import argparse
import fcntl
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, replace
from itertools import chain
from pathlib import Path

import psutil
import yaml

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "workflow/scripts"), str(ROOT)]

from tests.recipes import SMALL  # noqa: E402

from specmoe.engine.measuring_lock import FILE, FOLDER_OF_TESTS, UNDER_TEST  # noqa: E402
from specmoe.runs.schema import read_runs  # noqa: E402

TARGETS, DRAFTS, SUITES = 4, 4, 10
_LINE = re.compile(r"^\w*(?:Error|Exception): ?.*$", re.MULTILINE)
_DELETE = re.compile(r"(results/\S+\.json)\b.*delete it and run snakemake again")

_DELETE_BOTH = re.compile(r"(results/\S+\.json) and (results/\S+\.json) hold the same runs")


def campaign(engine: Path, blocks: int) -> dict[str, object]:
    """Return a campaign of about so many blocks on models of a few megabytes."""
    models = {
        **{f"target{n}": replace(SMALL, layers=8 + 4 * n) for n in range(TARGETS)},
        **{f"draft{n}": replace(SMALL, seed=n) for n in range(DRAFTS)},
    }
    suite = {
        "title": "Soak",
        "targets": [f"target{n}" for n in range(TARGETS)],
        "drafts": ["none", *(f"draft{n}" for n in range(DRAFTS))],
        "gammas": [3],
        "prompts": ["code"],
        "prompt_lengths": [8],
    }
    each = SUITES * TARGETS * DRAFTS
    return {
        "campaign": {
            **{"name": "soak", "engine": "built", "backend": "cpu", "models": "soak"},
            "suites": [f"S{n}" for n in range(SUITES)],
        },
        "measurement": {
            **{"n_predict": 6, "repeats": -(-blocks // each), "passes": 1, "warmups": 0},
            **{"context": 256, "threads": 1, "pass_samples": 0, "gate": {"retries": 0}},
        },
        "engines": {"built": {"source": "path", "path": str(engine)}},
        "model_sets": {
            "soak": {
                name: {"kind": "synthetic", "recipe": asdict(recipe)}
                for name, recipe in models.items()
            }
        },
        "suites": {f"S{n}": suite for n in range(SUITES)},
    }


class Soak:
    """The folder of a campaign, the workflow that measures it, and the faults that it meets."""

    def __init__(self, folder: Path, draw: random.Random):
        """Prepare to measure the campaign of `campaign.yaml` in a folder."""
        self.folder = folder
        self.draw = draw
        self.records = folder / "results/soak/blocks"
        self.models = folder / "results/models/soak"
        self.workflow: subprocess.Popen[bytes] | None = None
        self.undo: list[Callable[[], None]] = []
        self.injected: Counter[str] = Counter()
        self.said: Counter[str] = Counter()

    def start(self) -> None:
        """Start the workflow."""
        command = [sys.executable, "-m", "snakemake", "runs", "--cores", "1", "--rerun-incomplete"]
        command += ["--snakefile", str(ROOT / "Snakefile"), "--directory", str(self.folder)]
        command += ["--configfile", str(self.folder / "campaign.yaml")]
        with (self.folder / "out").open("wb") as out:
            self.workflow = subprocess.Popen(
                command,
                stdout=out,
                stderr=out,
                start_new_session=True,
                env=os.environ | {FOLDER_OF_TESTS: str(self.folder), UNDER_TEST: "soak"},
            )

    def measured(self) -> list[Path]:
        """Return the records of the measured blocks."""
        return sorted(self.records.rglob("*.json"))

    def process(self, part: str) -> psutil.Process | None:
        """Return a process of the workflow whose command line has a part."""
        assert self.workflow
        with suppress(psutil.Error):
            for process in psutil.Process(self.workflow.pid).children(recursive=True):
                with suppress(psutil.Error):
                    if any(part in word for word in process.cmdline()[:6]):
                        return process
        return None

    def kill_server(self) -> None:
        """Kill the engine."""
        self._kill("bin/llama-server", signal.SIGKILL)

    def stop_server(self) -> None:
        """Let the engine hang for a second."""
        if server := self.process("bin/llama-server"):
            with suppress(psutil.Error):
                server.suspend()
                time.sleep(1)
                server.resume()

    def kill_job(self) -> None:
        """Kill the job that measures."""
        self._kill("measure_block.py", signal.SIGKILL)

    def kill_workflow(self) -> None:
        """Kill snakemake itself."""
        assert self.workflow
        self.workflow.kill()

    def interrupt(self) -> None:
        """Press Ctrl-C."""
        assert self.workflow
        with suppress(ProcessLookupError):
            os.killpg(self.workflow.pid, signal.SIGINT)

    def _kill(self, part: str, blow: signal.Signals) -> None:
        if process := self.process(part):
            with suppress(psutil.Error):
                process.send_signal(blow)

    def delete_record(self) -> None:
        """Delete the record of a measured block, and start again so that it is missed."""
        if records := self.measured():
            self.draw.choice(records).unlink()
            self.interrupt()

    def cut_record(self) -> None:
        """Cut a record short, as a full disk may."""
        self._change_record(lambda text: text[: len(text) // 2])

    def lose_run(self) -> None:
        """Take a run out of a record."""
        self._change_record(_without_a_run)

    def nan_time(self) -> None:
        """Write a time that is no number into a record."""
        time_of = re.compile(r'("predicted_ms": )[\d.]+')
        self._change_record(lambda text: time_of.sub(r"\1NaN", text, count=1))

    def foreign_record(self) -> None:
        """Put the record of another block in the place of one."""
        if len(records := self.measured()) > 1:
            one, other = self.draw.sample(records, 2)
            self._change_record(lambda _: other.read_text(), one)

    def _change_record(self, change: Callable[[str], str], record: Path | None = None) -> None:
        if records := self.measured():
            record = record or self.draw.choice(records)
            times = record.stat()
            record.write_text(change(record.read_text()))
            os.utime(record, ns=(times.st_atime_ns, times.st_mtime_ns))

    def swap_weights(self) -> None:
        """Put other weights of the same size and time in the place of a model's."""
        model = self.models / f"target{self.draw.randrange(TARGETS)}.gguf"
        if self.undo or not model.exists():
            return
        kept, times = self.folder / "kept.gguf", model.stat()
        shutil.move(model, kept)
        weights = bytearray(kept.read_bytes())
        weights[-2000:] = bytes(2000)
        model.write_bytes(weights)
        os.utime(model, ns=(times.st_atime_ns, times.st_mtime_ns))
        self.undo.append(lambda: kept.replace(model))

    def touch_lock(self) -> None:
        """Hold the measuring lock for a while, as another campaign does."""
        with (self.folder / FILE).open("a") as lock, suppress(BlockingIOError):
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            time.sleep(2)

    def pipe_for_lock(self) -> None:
        """Put a pipe in the lock's place."""
        lock = self.folder / FILE
        lock.unlink(missing_ok=True)
        os.mkfifo(lock)
        self.undo.append(lambda: lock.unlink(missing_ok=True))

    def second_workflow(self) -> None:
        """Start the workflow a second time in the same folder."""
        command = [sys.executable, "-m", "snakemake", "runs", "--cores", "1"]
        command += ["--snakefile", str(ROOT / "Snakefile"), "--directory", str(self.folder)]
        command += ["--configfile", str(self.folder / "campaign.yaml")]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
        self._note(done.stdout + done.stderr)

    def heal(self) -> None:
        """Do what the workflow said to do after it ended, and start it again."""
        assert self.workflow
        self.workflow.wait()
        printed = (self.folder / "out").read_text(errors="replace")
        self._note(printed)
        for undo in self.undo:
            undo()
        self.undo.clear()
        for name in [*_DELETE.findall(printed), *chain(*_DELETE_BOTH.findall(printed))]:
            (self.folder / name).unlink(missing_ok=True)
        if "delete their blocks' records" in printed:
            for block in set(re.findall(r"(S\d+/target\d/\w+/r\d+)/", printed)):
                (self.records / f"{block}.json").unlink(missing_ok=True)
        command = [sys.executable, "-m", "snakemake", "--unlock"]
        command += ["--snakefile", str(ROOT / "Snakefile"), "--directory", str(self.folder)]
        command += ["--configfile", str(self.folder / "campaign.yaml")]
        subprocess.run(command, capture_output=True, check=False)

    def _note(self, printed: str) -> None:
        for line in _LINE.findall(printed):
            self.said[re.sub(r"[\w./-]*/[\w./-]+|\d+(\.\d+)?", "#", line)[:110]] += 1
        if "Traceback" in printed or "does not foresee" in printed:
            self.said["TRACEBACK"] += 1


def _without_a_run(text: str) -> str:
    record = json.loads(text)
    record["runs"] = record["runs"][1:]
    return json.dumps(record)


FAULTS = [
    *(Soak.kill_server, Soak.stop_server, Soak.kill_job, Soak.kill_workflow, Soak.interrupt),
    *(Soak.delete_record, Soak.cut_record, Soak.lose_run, Soak.nan_time, Soak.foreign_record),
    *(Soak.swap_weights, Soak.touch_lock, Soak.pipe_for_lock, Soak.second_workflow),
]


def soak(folder: Path, every: int, seed: int) -> Soak:
    """Measure the campaign of a folder, with a fault every so many blocks."""
    it = Soak(folder, random.Random(seed))
    last = 0
    while True:
        it.start()
        assert it.workflow
        while it.workflow.poll() is None:
            time.sleep(0.2)
            if len(it.measured()) >= last + every:
                last = len(it.measured())
                fault = it.draw.choice(FAULTS)
                it.injected[fault.__name__] += 1
                fault(it)
        if it.workflow.returncode == 0:
            return it
        it.heal()
        last = min(last, len(it.measured()))


def main() -> None:
    """Parse the command line, soak, and check every row."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--engine", required=True, type=Path, help="folder of the binaries")
    parser.add_argument("--folder", required=True, type=Path)
    parser.add_argument("--blocks", type=int, default=2000)
    parser.add_argument("--every", type=int, default=10, help="blocks between two faults")
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    args.folder.mkdir(parents=True)
    config = campaign(args.engine.resolve(), args.blocks)
    (args.folder / "campaign.yaml").write_text(yaml.safe_dump(config))
    began = time.monotonic()
    done = soak(args.folder.resolve(), args.every, args.seed)
    runs = read_runs(args.folder / "results/soak/runs.parquet")
    blocks = runs["block"].nunique()
    texts = runs.assign(text=runs["tokens"].map(tuple))
    texts = texts.groupby(["target", "draft", "gamma", "prompt"])["text"].nunique()
    print(f"{blocks} blocks, {len(runs)} rows, {(time.monotonic() - began) / 60:.0f} min")
    print(f"{sum(done.injected.values())} faults: {dict(done.injected.most_common())}")
    for line, count in done.said.most_common():
        print(f"{count:5} {line}")
    print(f"runs that are there twice: {int(runs['run'].duplicated().sum())}")
    print(f"settings with more than one text: {int((texts > 1).sum())} of {len(texts)}")
    weights = runs.groupby("target")["target_sha256"].nunique()
    print(f"targets of more than one file: {int((weights > 1).sum())} of {len(weights)}")


if __name__ == "__main__":
    main()
