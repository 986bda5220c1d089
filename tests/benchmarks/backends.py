"""Measure a small campaign on several backends and print how far their tokens agree.

Usage: python tests/benchmarks/backends.py cpu vulkan --folder /tmp/backends

Models and engines are made in the folder, once; `--engine vulkan=PATH` takes finished binaries
instead. On Mesa's software driver, which computes on the processor, add `--devices 0`; such times
say nothing of a GPU. config/README.md says what Vulkan needs.

A benchmark, not a test: greedy tokens of two backends part where two are about equally likely.
"""

import argparse
import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import yaml

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "workflow/scripts"))

from specmoe.measure.common_prefix import common_prefix  # noqa: E402

RUN = ["suite", "target", "draft", "gamma", "prompt", "repeat", "pass"]


def main() -> None:
    """Parse the command line, measure, and print the comparison."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("backends", nargs="+", help="the first is what others are compared with")
    parser.add_argument("--folder", required=True, type=Path)
    parser.add_argument("--engine", action="append", default=[], metavar="BACKEND=PATH")
    parser.add_argument("--devices", help="GGML_VK_VISIBLE_DEVICES of Vulkan")
    parser.add_argument("--cores", default="all")
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
    for line in compare(args.folder / "results", args.backends):
        print(line)


def campaign(backend: str, binaries: str | None, devices: str | None) -> dict[str, Any]:
    """Return the overlay of one backend's campaign, on the demo's models."""
    chosen = {"GGML_VK_VISIBLE_DEVICES": devices} if devices and backend == "vulkan" else {}
    suite = {"targets": ["moe_q4", "dense_4b"], "drafts": ["draft_0.8b"], "gammas": [4]}
    overlay: dict[str, Any] = {
        "campaign": {
            "name": f"on-{backend}",
            "backend": backend,
            "models": "demo",
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


def compare(results: Path, backends: Sequence[str]) -> list[str]:
    """Return the lines to print."""
    runs = {
        backend: pd.read_parquet(results / f"on-{backend}/runs.parquet").set_index(RUN)
        for backend in backends
    }
    first, *others = backends
    lines = []
    for backend in others:
        host = json.loads((results / f"on-{backend}/host.json").read_text())
        lines.append(f"{backend}: {host['devices']}; memory of the GPU: {host['gpu_memory_bytes']}")
        for key, row in runs[backend].iterrows():
            base = runs[first].loc[key]
            same = common_prefix(base["tokens"], row["tokens"])
            lines.append(
                f"  {' '.join(map(str, key)):<50} {same:>3} of {len(row['tokens'])} tokens as on"
                f" {first}, {row['tokens_per_second']:.1f} against"
                f" {base['tokens_per_second']:.1f} tok/s"
            )
    return lines


if __name__ == "__main__":
    main()
