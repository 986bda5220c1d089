"""Write a model of true shape, and print its speed and the bound by the memory's bandwidth.

Usage: python tests/benchmarks/true_shape.py --engine results/engines/ID/bin --folder SCRATCH

A benchmark, not a test: it judges nothing. The model stays in the folder. The machine must do
nothing else, or the engine's threads wait for each other, and its memory must hold the model, or
every pass reads it from disk.
"""

import argparse
import json
import resource
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[2]
SCRIPTS = ROOT / "workflow/scripts"
sys.path.insert(0, str(SCRIPTS))

from specmoe.config.synthetic_recipe import Recipe  # noqa: E402
from specmoe.engine.machine_id import physical_cores  # noqa: E402
from specmoe.models.gguf import read_card  # noqa: E402
from specmoe.models.sizes import Size, size_of_card  # noqa: E402
from specmoe.plan.bandwidth_probe import probe  # noqa: E402

GENERATED = 32
BATCHES = (1, 2, 5, 9, 17)
REPETITIONS = 5
# Bytes of one unit of ru_maxrss (getrusage(2)).
RSS_UNIT = 1 if sys.platform == "darwin" else 1024


def main() -> None:
    """Parse the command line, write the model, measure it, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--engine", required=True, type=Path, help="folder of llama-bench")
    parser.add_argument("--folder", required=True, type=Path, help="where the model is written")
    parser.add_argument("--model", default="dense_0.8b", help="of the set true_shape")
    args = parser.parse_args()
    sets = yaml.safe_load((ROOT / "config/models.yaml").read_text())["model_sets"]
    recipe = Recipe(**sets["true_shape"][args.model]["recipe"])
    path = args.folder / f"{args.model}.gguf"
    args.folder.mkdir(parents=True, exist_ok=True)
    print(f"{args.model}: {write(path, recipe)}", flush=True)
    bench = args.engine / "llama-bench"
    run(bench, path, positions=(), generated=1, repetitions=1)  # reads the file from disk
    before = probe()
    rows = run(bench, path, BATCHES, GENERATED, REPETITIONS)
    after = probe()
    # A large difference means that something else used the memory.
    print(f"memory gave {before / 1e9:.1f} GB/s before and {after / 1e9:.1f} after")
    for line in table(rows, size_of_card(read_card(path, "not hashed")), max(before, after)):
        print(line)


def write(path: Path, recipe: Recipe) -> str:
    """Write the model in a process of its own, and return its size, time and memory."""
    script = SCRIPTS / "write_synthetic_model.py"
    command = [sys.executable, str(script), "--recipe", recipe.to_json(), "--out", str(path)]
    began = time.perf_counter()
    subprocess.run(command, check=True)
    seconds = time.perf_counter() - began
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * RSS_UNIT
    size = path.stat().st_size
    return f"{size / 1e9:.2f} GB written in {seconds:.1f} s, with {peak / 1e6:.0f} MB of memory"


def run(
    bench: Path, model: Path, positions: tuple[int, ...], generated: int, repetitions: int
) -> list[dict[str, Any]]:
    """Return llama-bench's rows: one for each batch, and the last for decoding."""
    prompts = ",".join(map(str, positions)) or "0"
    command = [str(bench), "-m", str(model), "-p", prompts, "-n", str(generated)]
    command += ["-r", str(repetitions), "-t", str(physical_cores()), "-ngl", "0", "-o", "json"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return list(json.loads(done.stdout))


def table(rows: list[dict[str, Any]], size: Size, bandwidth: float) -> list[str]:
    """Return the lines to print; `bandwidth` is in bytes a second."""
    single_ms = pass_ms(rows[-1])
    lines = [
        f"one token reads {size.pass_bytes(1) / 1e9:.2f} GB",
        "pass          ms  in decoding ones   tok/s   bound  share of it",
    ]
    for row in rows:
        width = row["n_prompt"] or 1
        rate, bound = width * 1000 / pass_ms(row), width * bandwidth / size.pass_bytes(width)
        name = f"batch {width}" if row["n_prompt"] else "decode"
        lines.append(
            f"{name:8} {pass_ms(row):7.1f} {pass_ms(row) / single_ms:17.2f} {rate:7.1f} "
            f"{bound:7.1f} {rate / bound:12.0%}"
        )
    return lines


def pass_ms(row: dict[str, Any]) -> float:
    """Return the median time of one pass: of the whole batch, or of one decoded token."""
    return statistics.median(row["samples_ns"]) / 1e6 / (row["n_gen"] or 1)


if __name__ == "__main__":
    main()
