"""Print the time and memory of each step of a campaign as it grows: DAG, collection, paper, page.

Usage: python tests/benchmarks/scale.py results/synthetic [--runs 400 3000] [--grow repeats|suites]

A benchmark, not a test: it judges nothing. It plants records after those of a finished campaign, in
a scratch copy of the workflow. Each block is drawn from the repeats of its comparison, its times
moved by seeded noise; no engine and no model is needed. A campaign grows by repeats, or by copies
of its suites under other names, which are further settings.

`cpu` is user and system time, which other work on the machine changes little; `wall` and the load
tell how busy it was. Memory is the peak resident size of a step's processes. The exponent is the
growth of cpu time from the size before: 1 is linear.
"""

import argparse
import json
import math
import os
import random
import shutil
import sys
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import pairwise, product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import psutil

ROOT = Path(__file__).resolve().parents[2]
SHIPPED = (
    *("Snakefile", "CITATION.cff"),
    *("config", "envs", "paper", "rules", "resources", "workflow", "profiles"),
)
NOISE = 0.02  # standard deviation of the logarithm of a time
POLL_S = 0.05
SEED = 1
SNAKEMAKE = "snakemake"

Record = dict[str, Any]


@dataclass
class Costs:
    """What a step took."""

    wall_s: float = 0.0
    cpu_s: float = 0.0
    bytes: int = 0


def main() -> None:
    """Parse the command line, run the steps at each size, and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "campaign", type=Path, help="folder of a finished campaign, with its records"
    )
    parser.add_argument("--runs", type=int, nargs="+", default=[400, 3000], help="about how many")
    parser.add_argument("--grow", choices=["repeats", "suites"], default="repeats")
    parser.add_argument("--folder", type=Path, help="for scratch copies; default: a temporary one")
    args = parser.parse_args()
    template = Template(args.campaign)
    sizes: dict[int, dict[str, Costs]] = {}
    for runs in args.runs:
        with scratch(args.folder) as folder:
            planted = plant(template, folder, runs, by_repeats=args.grow == "repeats")
            sizes[planted.runs] = measure(planted)
            print("\n".join([*table(sizes), *weights(planted)]), flush=True)


class Template:
    """A finished campaign, whose records are the pattern of others."""

    def __init__(self, folder: Path) -> None:
        """Read the records of its blocks, by comparison."""
        self.folder = folder
        self.config = json.loads((folder / "config.json").read_text())
        self.name = self.config["campaign"]["name"]
        self.blocks: dict[str, list[Record]] = defaultdict(list)
        for path in sorted((folder / "blocks").rglob("*.json")):
            record = json.loads(path.read_text())
            self.blocks[record["block"]["block"].rpartition("/")[0]].append(record)

    @property
    def runs_a_repeat(self) -> int:
        """How many runs a repeat of all its suites has."""
        return sum(len(records[0]["runs"]) for records in self.blocks.values())


@dataclass
class Planted:
    """A planted campaign in a scratch copy of the workflow."""

    folder: Path
    name: str
    config: dict[str, Any]
    runs: int

    @property
    def results(self) -> Path:
        """The campaign's folder."""
        return self.folder / "results" / self.name

    def overlay(self, source: str) -> str:
        """Return a file for --configfile: the campaign measured here, or cached."""
        config = self.config | {"campaign": self.config["campaign"] | {"source": source}}
        path = self.folder / f"{source}.yaml"
        path.write_text(json.dumps(config))
        return str(path)


@contextmanager
def scratch(parent: Path | None) -> Iterator[Path]:
    """Yield a copy of the workflow, in which the paper is rendered too."""
    if parent:
        parent.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(dir=parent) as name:
        for part in SHIPPED:
            if (ROOT / part).is_dir():
                shutil.copytree(ROOT / part, Path(name, part))
            else:
                shutil.copy2(ROOT / part, Path(name, part))
        for rendered in ("tables", "figures"):
            shutil.rmtree(Path(name, "paper", rendered), ignore_errors=True)
        yield Path(name)


def plant(template: Template, folder: Path, runs: int, *, by_repeats: bool) -> Planted:
    """Plant about as many runs; returns the campaign, of which the records are there."""
    config = json.loads(json.dumps(template.config))
    repeats = config["measurement"]["repeats"]
    if by_repeats:
        repeats = max(2, round(runs / template.runs_a_repeat))
        copies = [""]
    else:
        whole = template.runs_a_repeat * repeats
        copies = ["", *(f"-{number}" for number in range(1, max(1, round(runs / whole))))]
    config["measurement"]["repeats"] = repeats
    config["suites"] = {
        f"{name}{copy}": suite for copy, (name, suite) in product(copies, config["suites"].items())
    }
    config["campaign"]["suites"] = [
        f"{name}{copy}" for copy, name in product(copies, config["campaign"]["suites"])
    ]
    planted = Planted(folder, template.name, config, 0)
    generator = random.Random(SEED)
    origins: dict[str, list[str]] = defaultdict(list)
    for (comparison, records), copy, repeat in product(
        template.blocks.items(), copies, range(repeats)
    ):
        suite, _, rest = comparison.partition("/")
        record = generator.choice(records)
        old = record["block"]["block"]
        block = f"{suite}{copy}/{rest}/r{repeat}"
        given = {"block": block, "suite": f"{suite}{copy}", "repeat": repeat}
        moved = [moved_run(run, old, block, generator) for run in record["runs"]]
        for old, new in zip(record["runs"], moved, strict=True):
            origins[old["run"]].append(new["run"])
        write(
            planted.results / f"blocks/{block}.json",
            record | {"block": record["block"] | given, "runs": moved},
        )
        planted.runs += len(moved)
    plant_pass_times(template, planted, repeats)
    plant_facts(template, folder / "resources/campaigns" / template.name, origins)
    return planted


def moved_run(run: Record, old: str, new: str, generator: random.Random) -> Record:
    """Return a run of another block, its times moved."""
    timings = run["answer"]["timings"]
    times = {
        name: timings[name] * math.exp(generator.gauss(0, NOISE))
        for name in ("prompt_ms", "predicted_ms")
    }
    answer = run["answer"] | {"timings": timings | times}
    return run | {"run": new + run["run"].removeprefix(old), "answer": answer}


def plant_pass_times(template: Template, planted: Planted, repeats: int) -> None:
    """Plant the records of passes that were timed by themselves."""
    for model in sorted((template.folder / "pass_times").glob("*")):
        known = sorted(model.glob("*.json"))
        for repeat in range(repeats):
            record = json.loads(known[repeat % len(known)].read_text()) | {"repeat": repeat}
            write(planted.results / f"pass_times/{model.name}/r{repeat}.json", record)


def plant_facts(template: Template, cached: Path, origins: dict[str, list[str]]) -> None:
    """Write what a packed campaign has beside its runs; every planted divergence is judged."""
    shutil.rmtree(cached, ignore_errors=True)
    for name in ("host.json", "models.json"):
        write(cached / name, json.loads((template.folder / name).read_text()))
    for path in (template.folder / "divergences").glob("*.json"):
        judged = json.loads(path.read_text())
        judged["divergences"] = [
            one
            | {
                "run": run,
                "baseline": baseline,
                "baseline_block": baseline.rsplit("/", 3)[0],
            }
            for one in judged["divergences"]
            for run, baseline in zip(origins[one["run"]], origins[one["baseline"]], strict=True)
        ]
        write(cached / "divergences" / path.name, judged)


def write(path: Path, facts: Any) -> None:
    """Write JSON; folders are made."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(facts, ensure_ascii=False) + "\n")


def measure(planted: Planted) -> dict[str, Costs]:
    """Run all steps; return the costs of each."""
    measured, cached = planted.overlay("measured"), planted.overlay("cached")
    empty = planted.folder / "empty"
    empty.mkdir()
    dag = run(planted, "-n", "paper", "--configfile", measured, "--directory", str(empty))
    again = run(planted, "-n", "runs", "--configfile", measured)
    collected = run(planted, "runs", "--configfile", measured)
    for name in ("runs.parquet", "pass_times.parquet"):
        shutil.copy(planted.results / name, planted.folder / "resources/campaigns" / planted.name)
    rendered = run(planted, "paper", "site", "--configfile", cached)
    return {
        "dag, nothing measured": dag[SNAKEMAKE],
        "dag, all measured": again[SNAKEMAKE],
        **{name: costs for name, costs in collected.items() if name != SNAKEMAKE},
        **{name: costs for name, costs in rendered.items() if name != SNAKEMAKE},
    }


def run(planted: Planted, *args: str) -> dict[str, Costs]:
    """Run snakemake; return the costs of each script, and of snakemake with all of them."""
    command = [sys.executable, "-m", "snakemake", "--cores", "1", *args]
    command += ["--snakefile", str(planted.folder / "Snakefile")]
    log = planted.folder / "log"
    began = time.perf_counter()
    with log.open("wb") as output:
        process = psutil.Popen(command, cwd=planted.folder, stdout=output, stderr=output)
        costs = watch(process)
    if process.returncode:
        sys.exit(log.read_text()[-3000:])
    costs[SNAKEMAKE].wall_s = time.perf_counter() - began
    print(f"{' '.join(args[:2])}: load {os.getloadavg()[0]:.1f}", file=sys.stderr, flush=True)
    return costs


def watch(process: psutil.Popen) -> dict[str, Costs]:
    """Wait for a process; return the costs of the scripts it starts, each with its own children."""
    costs: dict[str, Costs] = defaultdict(Costs)
    while process.poll() is None:
        with suppress(psutil.Error):  # a process ended after it was listed
            note(process, SNAKEMAKE, costs)
            for child in process.children(recursive=True):
                with suppress(psutil.Error):
                    words = child.cmdline()
                    if len(words) > 1 and words[1].endswith(".py"):
                        note(child, Path(words[1]).stem + document(words), costs)
        time.sleep(POLL_S)
    return costs


def document(words: list[str]) -> str:
    """Return which document a script compiles, with a blank before it; empty for other scripts."""
    return f" {Path(words[words.index('--document') + 1]).stem}" if "--document" in words else ""


def note(process: psutil.Process, name: str, costs: dict[str, Costs]) -> None:
    """Keep the peaks of a process with its children."""
    known = costs[name]
    cpu, size = 0.0, 0
    for one in [process, *(process.children(recursive=True) if name != SNAKEMAKE else [])]:
        with suppress(psutil.Error):
            times = one.cpu_times()
            cpu += times.user + times.system + times.children_user + times.children_system
            size += one.memory_info().rss
    known.cpu_s = max(known.cpu_s, cpu)
    known.bytes = max(known.bytes, size)
    known.wall_s = max(known.wall_s, time.time() - process.create_time())


def weights(planted: Planted) -> list[str]:
    """Return the sizes of the page, its data and the PDFs."""
    paths = [planted.results / "site/index.html", *(planted.folder / "paper").glob("*.pdf")]
    data = sum(path.stat().st_size for path in (planted.results / "site/data").glob("*"))
    lines = [f"{path.name}: {path.stat().st_size / 1e6:.2f} MB" for path in paths]
    return [", ".join([*lines, f"site/data: {data / 1e6:.1f} MB"])]


def table(sizes: dict[int, dict[str, Costs]]) -> list[str]:
    """Return the lines to print: costs by runs, and the exponents of cpu time."""
    lines = [
        f"{'':24}" + "".join(f"{f'{runs} runs':>36}" for runs in sizes),
        f"{'step':24}" + f"{'cpu s':>12}{'wall s':>9}{'MB':>8}{'exp':>7}" * len(sizes),
    ]
    for step in next(iter(sizes.values())):
        costs = [steps.get(step, Costs()) for steps in sizes.values()]
        points = [*zip(sizes, (one.cpu_s for one in costs), strict=True)]
        growth = ["", *(exponent(*pair) for pair in pairwise(points))]
        cells = (
            f"{one.cpu_s:12.1f}{one.wall_s:9.1f}{one.bytes / 1e6:8.0f}{power:>7}"
            for one, power in zip(costs, growth, strict=True)
        )
        lines.append(f"{step:24}{''.join(cells)}")
    return lines


def exponent(before: tuple[int, float], after: tuple[int, float]) -> str:
    """Return by which power of the runs the time grew."""
    if not before[1] or not after[1]:
        return ""
    return f"{math.log(after[1] / before[1]) / math.log(after[0] / before[0]):.2f}"


if __name__ == "__main__":
    main()
