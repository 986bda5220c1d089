"""After any change exactly the right jobs run, whatever times and snakemake's memory say."""

import os
import shutil
import subprocess
import sys
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path
from tempfile import mkdtemp
from time import sleep
from typing import Any

import pytest
import yaml
from filelock import FileLock

from specmoe.config.models import Recipe
from specmoe.hardware.machine import lock_path

from ..conftest import Snakemake, copied_workflow
from ..recipes import write_models
from ..small_campaign import tiny_campaign
from .test_workflow import jobs

TINY = "results/tiny"
TARGETS = {"tables": 1, "page": 1}
PAGE = {"write_page": 1, "page": 1}
PAPER = {"render_paper": 1, "fill_paper": 1, "tables": 1}
RENDERED = {"audit": 1, "analyse_runs": 1} | PAPER | PAGE
# Runs, with what is judged of them.
COLLECTED = {"collect_table": 1, "judge_divergences": 1} | RENDERED
ALL_TABLES = COLLECTED | {"collect_table": 3}
MEASURED = {"measure_block": 2} | COLLECTED
ALL_MEASURED = MEASURED | ALL_TABLES
MADE = {"make_model": 1, "describe_model": 1}
TRACED, DESCRIBED = {"record_trace": 1}, {"describe_machine": 1}


@dataclass(frozen=True)
class Checkout:
    """A copy of the workflow, in which a campaign of two blocks was measured."""

    folder: Path
    snakemake: Snakemake

    def call(self, *words: str) -> str:
        asked = ("--snakefile", "Snakefile", *words, "--configfile", "tiny.yaml")
        return self.snakemake(*asked, folder=self.folder, cwd=self.folder)

    def planned(self, *words: str) -> dict[str, int]:
        """Return how many jobs of each rule would run; looking changes no file."""
        before = self.states()
        found = jobs(self.call("-n", *words))
        assert self.states() == before
        found.pop("total", None)
        return found

    def states(self) -> dict[Path, int]:
        return {file: file.lstat().st_mtime_ns for file in (self.folder / "results").rglob("*")}

    @contextmanager
    def changed(self, name: str, change: Any = None, seconds: float = 0):
        """Take a file or folder away, or change it and move its time; then all is as before."""
        file, kept = self.folder / name, Path(mkdtemp(dir=self.folder)) / "kept"
        file.rename(kept)
        try:
            if change is not None:
                file.write_bytes(change(kept.read_bytes()))
                time = kept.stat().st_mtime + seconds
                os.utime(file, (time, time))
            yield
        finally:
            shutil.rmtree(file) if file.is_dir() else file.unlink(missing_ok=True)
            kept.rename(file)


@pytest.fixture(scope="module")
def checkout(snakemake, module_folder, engine_bin):
    """The small campaign, with a file in every place that a configuration can name."""
    copied_workflow(module_folder)
    config = tiny_campaign(engine_bin)
    models = config["model_sets"]["tiny"]
    write_models(module_folder, own=Recipe(**models["target"]["recipe"]))
    models["target"] = {"kind": "path", "path": "own.gguf"}
    (module_folder / "own.txt").write_text("Write a function that adds two numbers.\n")
    (module_folder / "t.jinja").write_text("{{ messages }}")
    config["prompts"] = {"texts": {"code": {"file": str(module_folder / "own.txt")}}}
    words = ["--jinja", "--chat-template-file", str(module_folder / "t.jinja")]
    config["measurement"]["engine_args"] = words
    (module_folder / "tiny.yaml").write_text(yaml.safe_dump(config))
    made = Checkout(module_folder, snakemake)
    made.call(*TARGETS)
    return made


def test_what_is_finished_stays_so_without_the_memory_of_snakemake(checkout):
    assert checkout.planned(*TARGETS) == {}
    with checkout.changed(".snakemake"):
        assert checkout.planned(*TARGETS) == {}
    # An edit of what measures, serves and reads models is of no record.
    with ExitStack() as edits:
        for module in ("engine/responses.py", "models/gguf.py", "measure/arm.py"):
            file = f"workflow/scripts/specmoe/{module}"
            edits.enter_context(checkout.changed(file, lambda code: code + b"EDITED = 1\n", 60))
        assert checkout.planned("runs") == {}


def config(section: str, **keys: Any):
    """Change keys of a section of the configuration, which its path names."""

    def change(text: bytes) -> bytes:
        given = inside = yaml.safe_load(text)
        for key in section.split("."):
            inside = inside.setdefault(key, {})
        inside.update(keys)
        return yaml.safe_dump(given).encode()

    return "tiny.yaml", change


def more(file: str, text: bytes):
    return file, lambda content: content + text


def gone(file: str):
    return file, None


def edited(module: str):
    return more(f"workflow/scripts/specmoe/{module}", b"EDITED = 1\n")


def weights(content: bytes) -> bytes:
    return content[:-64] + bytes(byte ^ 1 for byte in content[-64:])


# Of each stage: what is changed, and the jobs that must run besides `ask`.
CHANGES = {
    "a key of measuring": (config("measurement", seed=7), ALL_MEASURED | TRACED),
    "a key of rendering": (config("statistics", confidence=0.9), ALL_TABLES),
    # The new ones only: no result depends on the limit.
    "more repeats": (config("measurement", repeats=2, time_limit_s=77), ALL_MEASURED | DESCRIBED),
    # The comparison, as a whole.
    "more draft lengths": (config("suites.S", gammas=[4, 8]), ALL_MEASURED | {"measure_block": 1}),
    "a prompt": (more("own.txt", b"And say why."), MEASURED | TRACED),
    "a file of engine_args": (more("t.jinja", b"{{ 1 }}"), MEASURED),
    "the user's model": (("own.gguf", weights), MEASURED | MADE | TRACED | {"collect_table": 2}),
    "the entry of a model that is made": (
        config("model_sets.tiny.draft.recipe", seed=5),
        ALL_TABLES | MADE | TRACED | {"measure_block": 1},
    ),
    "facts about the machine": (
        config("machine", memory_bandwidth_gb_s=30),
        DESCRIBED | {"collect_table": 1} | RENDERED,
    ),
    "a record": (gone(f"{TINY}/blocks/N/target/r0.jsonl"), MEASURED | {"measure_block": 1}),
    "code of rows": (edited("runs/collect.py"), ALL_TABLES),
    "code of rendering": (edited("analysis/number_text.py"), RENDERED),
    "a template": (more("paper/main.tex.j2", b"%"), PAPER | PAGE),
    "the table of tables": (more("paper/tables.yaml", b"# more"), PAPER | PAGE),
    "the page's style": (more("paper/site/style.css", b"/* more */"), PAGE),
    "the paper of another campaign": (
        ("paper/campaign.txt", lambda name: b"other\n"),
        {"fill_paper": 1, "tables": 1},
    ),
    "all results": (gone(TINY), ALL_MEASURED | TRACED | DESCRIBED),
}
# Each change with one of these; some with all.
HOW = {
    f"{word}, {'with' if memory else 'without'} memory": (seconds, memory)
    for word, seconds in (("older", -1e6), ("equal", 0), ("newer", 60))
    for memory in (True, False)
}
CASES = [*zip(CHANGES, cycle(HOW))]
CASES += [
    (one, how) for one in ("a prompt", "the user's model", "code of rendering") for how in HOW
]


@pytest.mark.parametrize(("name", "how"), sorted({*CASES}))
def test_what_depends_on_a_change_runs_again_and_nothing_else(name, how, checkout):
    (file, change), expected = CHANGES[name]
    seconds, memory = HOW[how]
    with ExitStack() as changes:
        changes.enter_context(checkout.changed(file, change, seconds))
        if not memory:
            changes.enter_context(checkout.changed(".snakemake"))
        planned = checkout.planned(*TARGETS)
    planned.pop("ask", None)
    assert planned == expected


def test_looking_with_another_configuration_leaves_what_is_measured_alone(checkout):
    def of(**measurement):
        given = yaml.safe_load((checkout.folder / "tiny.yaml").read_text())
        given["campaign"]["name"] = "two"
        given["measurement"] |= {"repeats": 3} | measurement
        return yaml.safe_dump(given)

    (checkout.folder / "first.yaml").write_text(of())
    (checkout.folder / "second.yaml").write_text(of(n_predict=24))
    command = [sys.executable, "-m", "snakemake", "--cores", "2", "--configfile"]
    how = {"cwd": checkout.folder, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    with subprocess.Popen([*command, "first.yaml", "--", "runs"], **how) as first:
        while first.poll() is None and not [*checkout.folder.glob("results/two/store/blocks/*")]:
            sleep(0.01)
        # So that the first one cannot end; it frees the lock for moments.
        with FileLock(lock_path(), mode=0o666, poll_interval=0.001):
            codes = [
                subprocess.run([*command, "second.yaml", *words], **how).returncode
                for words in (["-n", "--", "runs"], ["--", "plan"], ["--", "runs"])
            ]
        printed, _ = first.communicate()
    assert first.returncode == 0, printed
    assert codes[:2] == [0, 0]
    assert codes[2] != 0, "the second measurement is refused while the first one runs"
    assert len([*checkout.folder.glob("results/two/blocks/*/target/*.jsonl")]) == 6
