"""Print what building, measuring, rendering and testing take on this machine.

Usage: python tests/benchmarks/minutes.py [ROW ...] [--folder SCRATCH]

A benchmark, not a test. The rows, all by default, each cold but for what its line says:

plan      snakemake -n of the default campaign, the fastest of five
engine    llama.cpp from source, without ccache
demo      make demo with its engine, without set-up; and the share of the engines' time in measured
          runs
render    tables, figures and page of the shipped demo on one core, without TeX
paper     the same with the paper and both PDFs on two cores
test      make test, in this checkout, with what it has of engines
ci        .ci/run in a fresh clone of the last commit, with empty caches

The machine must do nothing else. SCRATCH keeps what the rows made; by default it is deleted.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import psutil

ROOT = Path(__file__).resolve().parents[2]
SHIPPED = ROOT / "resources/campaigns/demo/campaign.yaml"


def seconds(*command: object, cwd: Path = ROOT, **environment: str) -> float:
    """Run a command; return how long it took."""
    begin = time.monotonic()
    words = [str(word) for word in command]
    done = subprocess.run(
        words, cwd=cwd, env=os.environ | environment, capture_output=True, text=True, check=False
    )
    if done.returncode:
        sys.exit(f"{' '.join(words)} failed:\n{(done.stdout + done.stderr)[-2000:]}")
    return time.monotonic() - begin


def snakemake(folder: Path, *words: object) -> float:
    """Run snakemake with its results in a folder; return how long it took."""
    program = [sys.executable, "-m", "snakemake", "--directory", folder]
    return seconds(*program, *words, CCACHE_DISABLE="1")


def plan(folder: Path) -> Iterator[str]:
    yield minutes("snakemake -n", min(snakemake(folder, "-n") for _ in range(5)))


def engine(folder: Path) -> Iterator[str]:
    yield minutes("llama.cpp from source", snakemake(folder, "engine"))


def demo(folder: Path) -> Iterator[str]:
    config = ROOT / "config/demo.yaml"
    yield minutes("make demo", snakemake(folder, "paper", "site", "--configfile", config))
    paths = (folder / "results/demo/blocks").rglob("*.jsonl")
    records = [json.loads(path.read_text().splitlines()[1]) for path in paths]
    runs_ms = sum(run["wall_ms"] for record in records for run in record["runs"])
    sides = [side for record in records for side in record["sides"]]
    engines_ms = runs_ms + sum(side["start_ms"] + side["warm_up_ms"] for side in sides)
    yield f"{runs_ms / engines_ms:.1%} of the engines' time are measured runs"


def render(folder: Path) -> Iterator[str]:
    asked = ["tables", "figures", "site", "--cores", "1", "--configfile", SHIPPED]
    yield minutes("tables, figures, page, one core", snakemake(folder, *asked))


def paper(folder: Path) -> Iterator[str]:
    asked = ["paper", "site", "--cores", "2", "--configfile", SHIPPED]
    yield minutes("with the paper and both PDFs, two cores", snakemake(folder, *asked))


def test(_: Path) -> Iterator[str]:
    yield minutes("make test", seconds("make", "test"))


def ci(folder: Path) -> Iterator[str]:
    clone = folder / "clone"
    seconds("git", "clone", "--quiet", ROOT, clone)
    yield minutes(".ci/run", seconds(".ci/run", cwd=clone, XDG_CACHE_HOME=str(folder / "cache")))


ROWS = {row.__name__: row for row in (plan, engine, demo, render, paper, test, ci)}


def minutes(what: str, took_s: float) -> str:
    """Return a line of the table."""
    return f"{int(took_s // 60):4d}:{took_s % 60:04.1f}  {what}"


def main() -> None:
    """Parse the command line and print the rows."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("rows", nargs="*", metavar="ROW", help=" ".join(ROWS))
    parser.add_argument("--folder", type=Path)
    given = parser.parse_args()
    if unknown := set(given.rows) - set(ROWS):
        parser.error(f"there is no row {min(unknown)}; the rows: {' '.join(ROWS)}")
    load, cores = os.getloadavg()[0], psutil.cpu_count()
    print(f"{cores} cores, load average {load:.1f} before", flush=True)
    with TemporaryDirectory() as scratch:
        for name in given.rows or ROWS:
            folder = (given.folder or Path(scratch)) / name
            folder.mkdir(parents=True)
            for line in ROWS[name](folder):
                print(line, flush=True)


if __name__ == "__main__":
    main()
