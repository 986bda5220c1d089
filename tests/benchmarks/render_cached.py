"""Print the time and memory from a cached campaign's rows to paper and page, stage by stage.

Usage: python tests/benchmarks/render_cached.py [--times 1 10 100]

A benchmark, not a test: it judges nothing. It renders the shipped demo campaign in a scratch copy
of the workflow, and campaigns with many times its rows: each block of a new repeat is drawn from
the repeats of the same cell. Seconds are wall time, so the machine's load is printed too; memory is
the peak resident size of a stage's processes.
"""

import argparse
import csv
import json
import os
import random
import shutil
import subprocess
import sys
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import psutil
import pyarrow.parquet as pq
import yaml

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "workflow/scripts"))

from specmoe.runs.collect import link_baselines  # noqa: E402
from specmoe.runs.schema import write_runs  # noqa: E402

SHIPPED = (
    *("Snakefile", "CITATION.cff"),
    *("config", "envs", "paper", "rules", "resources", "workflow"),
)
CAMPAIGN = "resources/campaigns/demo"
POLL_S = 0.05
SEED = 1

Row = dict[str, Any]
Costs = dict[str, tuple[float, float]]  # seconds and bytes by stage
WHOLE = "all, with snakemake"


def main() -> None:
    """Parse the command line, render each size, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", type=int, nargs="+", default=[1, 10, 100])
    args = parser.parse_args()
    sizes: dict[int, Costs] = {}
    for times in args.times:
        with scratch() as folder:
            overlay, rows = enlarge(folder, times)
            sizes[rows] = render(folder, overlay)
    for line in table(sizes):
        print(line)


@contextmanager
def scratch() -> Iterator[Path]:
    """Yield a copy of the workflow, in which the paper is rendered too."""
    with TemporaryDirectory() as name:
        for part in SHIPPED:
            copy: Callable[..., Any] = shutil.copytree if (ROOT / part).is_dir() else shutil.copy
            copy(ROOT / part, Path(name, part))
        for rendered in ("tables", "figures"):
            shutil.rmtree(Path(name, "paper", rendered), ignore_errors=True)
        yield Path(name)


def enlarge(folder: Path, times: int) -> tuple[Path, int]:
    """Make the campaign many times larger; returns its overlay and how many rows it has."""
    campaign = folder / CAMPAIGN
    overlay = campaign / "campaign.yaml"
    config = yaml.safe_load(overlay.read_text())
    rows = pq.read_table(campaign / "runs.parquet").to_pylist()
    if times == 1:
        return overlay, len(rows)
    many, origins = resampled(rows, times * config["measurement"]["repeats"])
    link_baselines(many)
    write_runs(many, campaign / "runs.parquet")
    config["measurement"]["repeats"] *= times
    overlay.write_text(json.dumps(config))
    baselines = {row["run"]: row["baseline"] for row in many}
    for path in (campaign / "divergences").glob("*.json"):
        judged = json.loads(path.read_text())
        judged["divergences"] = [
            one | {"run": run, "baseline": baselines[run]}
            for one in judged["divergences"]
            for run in origins[one["run"]]
        ]
        path.write_text(json.dumps(judged))
    return overlay, len(many)


def resampled(rows: list[Row], repeats: int) -> tuple[list[Row], dict[str, list[str]]]:
    """Return rows of `repeats` repeats, and the new runs of each run of `rows`."""
    generator = random.Random(SEED)
    blocks: dict[str, dict[str, list[Row]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        blocks[row["block"].rpartition("/")[0]][row["block"]].append(row)
    many, origins = [], defaultdict(list)
    for cell, members in blocks.items():
        for repeat in range(repeats):
            for row in generator.choice(list(members.values())):
                block = f"{cell}/r{repeat}"
                run = block + row["run"].removeprefix(row["block"])
                many.append(row | {"block": block, "run": run, "repeat": repeat})
                origins[row["run"]].append(run)
    return many, origins


def render(folder: Path, overlay: Path) -> Costs:
    """Render paper and page; return the costs of each stage and of all together."""
    command = [sys.executable, "-m", "snakemake", "--cores", "1", "paper", "site", "--configfile"]
    began, load = time.perf_counter(), os.getloadavg()[0]
    with (folder / "log").open("wb") as log:
        process = psutil.Popen(
            [*command, str(overlay)], cwd=folder, stdout=log, stderr=subprocess.STDOUT
        )
        peaks: Counter[str] = Counter()
        watch = threading.Thread(target=watch_memory, args=(process, peaks))
        watch.start()
        code = process.wait()
        watch.join()
    if code:
        sys.exit((folder / "log").read_text())
    whole = time.perf_counter() - began
    print(f"load before {load:.1f}, after {os.getloadavg()[0]:.1f}", flush=True)
    seconds = {
        path.stem: float(next(csv.DictReader(path.open(), delimiter="\t"))["s"])
        for path in sorted(
            (folder / "results").glob("*/benchmarks/*.tsv"), key=lambda path: path.stat().st_mtime
        )
    }
    return {stage: (s, peaks[stage]) for stage, s in seconds.items()} | {
        WHOLE: (whole, peaks[WHOLE])
    }


def watch_memory(process: psutil.Popen, peaks: Counter[str]) -> None:
    """Keep the peak resident bytes of each stage, by its script, and of all processes together."""
    with suppress(psutil.NoSuchProcess):  # after the end of all
        while process.status() != psutil.STATUS_ZOMBIE:
            now: Counter[str] = Counter()
            for one in [process, *process.children(recursive=True)]:
                with suppress(psutil.Error):  # the process ended after it was listed
                    size, words = one.memory_info().rss, one.cmdline()
                    now[WHOLE] += size
                    if len(words) > 1 and words[1].endswith(".py"):
                        now[Path(words[1]).stem] += size
            for name, size in now.items():
                peaks[name] = max(peaks[name], size)
            time.sleep(POLL_S)


def table(sizes: dict[int, Costs]) -> list[str]:
    """Return the lines to print: seconds and megabytes by rows, and how they grow."""
    heads = "".join(f"{f'{rows} rows':>20}" for rows in sizes)
    lines = [f"{'stage':22}{heads}  growth of seconds, of memory"]
    for stage in next(iter(sizes.values())):
        costs = [size[stage] for size in sizes.values()]
        cells = "".join(f"{s:10.1f} s{size / 1e6:5.0f} MB" for s, size in costs)
        growth = ", ".join(
            f"{after[0] / before[0]:.1f} and {after[1] / before[1]:.1f}"
            for before, after in pairwise(costs)
        )
        lines.append(f"{stage:22}{cells}  {growth}")
    return lines


if __name__ == "__main__":
    main()
