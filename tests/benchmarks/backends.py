"""Measure a small campaign on several backends: how far their tokens agree, and why no farther.

Usage: python tests/benchmarks/backends.py cpu vulkan --folder /tmp/backends

Models and engines are made in the folder, once; `--engine vulkan=PATH` takes finished binaries
instead. On Mesa's software driver, which computes on the processor, add `--devices 0`; such times
say nothing of a GPU. config/README.md says what Vulkan needs.

A benchmark, not a test. Greedy tokens of two backends may part where two tokens are about equally
likely. So where they first differ, the target alone is asked on both: after the tokens that both
have, by how many nats does the first backend's token lead the other's? It is a tie if that is at
most `--tolerance` on the first backend. Else the likeliest tokens of both backends are printed.
"""

import argparse
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pandas as pd
import yaml

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "workflow/scripts"))

from specmoe.config.backend import Backend  # noqa: E402
from specmoe.config.block import Block  # noqa: E402
from specmoe.config.parse import parse  # noqa: E402
from specmoe.engine.job import Job  # noqa: E402
from specmoe.measure.common_prefix import common_prefix  # noqa: E402
from specmoe.measure.divergence import find_divergences, judge_all  # noqa: E402

RUN = ["suite", "target", "draft", "gamma", "prompt", "repeat", "pass"]
MODELS = "synthetic"
TARGETS = ["moe_q4", "dense_4b"]
# Nats; batches alone move the gap of two tokens as much on the CPU (specmoe/audit/ties.py).
TOLERANCE = 0.3
LIMIT_S = 600.0


def main() -> None:
    """Parse the command line, measure, and print the comparison."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("backends", nargs="+", help="the first is what others are compared with")
    parser.add_argument("--folder", required=True, type=Path)
    parser.add_argument("--engine", action="append", default=[], metavar="BACKEND=PATH")
    parser.add_argument("--devices", help="GGML_VK_VISIBLE_DEVICES of Vulkan")
    parser.add_argument("--cores", default="all")
    parser.add_argument("--tolerance", type=float, default=TOLERANCE, help="of a tie, in nats")
    args = parser.parse_args()
    built = dict(one.split("=", 1) for one in args.engine)
    args.folder.mkdir(parents=True, exist_ok=True)
    for backend in args.backends:
        config = campaign(backend, built.get(backend), args.devices)
        path = args.folder / f"{backend}.yaml"
        path.write_text(yaml.safe_dump(config))
        targets = ["runs", f"results/on-{backend}/host.json"]
        command = [sys.executable, "-m", "snakemake", *targets, "--cores", args.cores]
        command += ["--rerun-incomplete", "--snakefile", str(ROOT / "Snakefile")]
        command += ["--directory", str(args.folder)]
        subprocess.run([*command, "--configfile", str(path)], check=True)
    first, *others = args.backends
    for backend in others:
        for line in compare(args.folder / "results", first, backend, args.tolerance):
            print(line)


def campaign(backend: str, binaries: str | None, devices: str | None) -> dict[str, Any]:
    """Return the overlay of one backend's campaign, on the synthetic campaign's models."""
    chosen = {"GGML_VK_VISIBLE_DEVICES": devices} if devices and backend == "vulkan" else {}
    suite = {"targets": TARGETS, "drafts": ["draft_0.8b"], "gammas": [4]}
    overlay: dict[str, Any] = {
        "campaign": {
            "name": f"on-{backend}",
            "backend": backend,
            "models": MODELS,
            "suites": ["B"],
        },
        "suites": {"B": suite | {"prompts": ["code", "short_factual"]}},
        "measurement": {
            **{"n_predict": 32, "repeats": 1, "pass_samples": 0, "gpu_layers": 99},
            **{"environment": chosen, "gate": {"retries": 0}},
        },
    }
    if binaries:
        overlay["campaign"]["engine"] = "built"
        overlay["engines"] = {"built": {"source": "path", "path": binaries}}
    return overlay


def compare(results: Path, first: str, other: str, tolerance: float) -> list[str]:
    """Return the lines to print about two backends."""
    runs = {
        backend: pd.read_parquet(results / f"on-{backend}/runs.parquet").set_index(RUN)
        for backend in (first, other)
    }
    gaps = ask_both(results, first, other, runs)
    host = json.loads((results / f"on-{other}/host.json").read_text())
    lines = [f"{other}: {host['devices']}; memory of the GPU: {host['gpu_memory_bytes']}"]
    for key, row in runs[other].iterrows():
        base = runs[first].loc[key]
        same = common_prefix(base["tokens"], row["tokens"])
        lines.append(
            f"  {' '.join(map(str, key)):<50} {same:>3} of {len(row['tokens'])} tokens as on"
            f" {first}, {row['tokens_per_second']:.1f} against"
            f" {base['tokens_per_second']:.1f} tok/s"
        )
        if row["run"] in gaps:
            lines += describe(gaps[row["run"]], tolerance)
    return lines


# What each backend says about the place where a run leaves the other backend's.
Answers = dict[str, dict[str, Any]]


def ask_both(
    results: Path, first: str, other: str, runs: dict[str, pd.DataFrame]
) -> dict[str, Answers]:
    """Return both backends' answers about each run of `other` that leaves the one of `first`."""
    rows = []
    for key, row in runs[other].iterrows():
        base = runs[first].loc[key]
        gamma = {"gamma": 0 if pd.isna(key[3]) else key[3], "prompt": key[4]}
        given = {"target_model": row["target_model"], "block": base["block"]} | gamma
        rows.append(given | {"run": base["run"], "baseline": None, "tokens": base["tokens"]})
        same = common_prefix(base["tokens"], row["tokens"])
        left = {"run": f"{other} {row['run']}", "baseline": base["run"], "common_prefix": same}
        rows.append(given | left | {"tokens": row["tokens"]})
    answers: dict[str, Answers] = {}
    for target in TARGETS:
        found = find_divergences(rows, target)
        for backend in (first, other):
            for one in judge_all(found, *asked(results, backend, target))["divergences"]:
                answers.setdefault(one["run"].removeprefix(f"{other} "), {})[backend] = one
    return answers


def asked(results: Path, backend: str, target: str) -> tuple[dict[str, Block], Job]:
    """Return the blocks of a backend's campaign by id, and the job that asks a target there."""
    records = (results / f"on-{backend}/blocks").rglob("*.json")
    blocks = [parse(Block, json.loads(record.read_text())["block"]) for record in records]
    [engine] = set(pd.read_parquet(results / f"on-{backend}/runs.parquet")["engine"])
    job = Job(
        root=ROOT,
        binaries=results / "engines" / engine / "bin",
        target=results / "models" / MODELS / f"{target}.gguf",
        draft=None,
        server_log=results / f"on-{backend}/logs/{target}.asked.log",
        start_limit_s=LIMIT_S,
        run_limit_s=LIMIT_S,
        backend=Backend(backend),
        usable_memory=0,
    )
    return {block.block: block for block in blocks}, job


def describe(answers: Answers, tolerance: float) -> list[str]:
    """Return the lines about one divergence; the first answer is that of the first backend."""
    [first, *_] = answers.values()
    gaps = ", ".join(f"{one['gap_nats']:+.3f} on {name}" for name, one in answers.items())
    least = " at least" if first["gap_is_at_least"] else ""
    tie = first["gap_nats"] <= tolerance and not first["gap_is_at_least"]
    place = f"{'a tie' if tie else 'NO TIE'} at token {first['position']}"
    lines = [
        f"    {place}: {first['baseline_token']} leads {first['token']} by{least} {gaps} nats"
        f" (tolerance {tolerance})"
    ]
    for name, one in {} if tie else answers.items():
        best = ", ".join(f"{each['token']} {each['logprob']:.3f}" for each in one["best"])
        lines.append(f"      likeliest on {name}: {best}")
    return lines


if __name__ == "__main__":
    main()
