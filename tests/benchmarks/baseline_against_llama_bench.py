"""Compare a campaign's baseline with llama-bench on the same model and depth.

Usage: python tests/benchmarks/baseline_against_llama_bench.py results/engines/ID MODEL.gguf ...

A benchmark, not a test. Both sides take turns, so that a drift of the machine affects both; their
ratio counts. llama-bench times only passes; the server also samples and detokenizes.
"""

import argparse
import csv
import io
import statistics
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "workflow/scripts"))

from specmoe.engine.machine import physical_cores  # noqa: E402
from specmoe.engine.server import Server, server_command  # noqa: E402

DEPTH = 64
GENERATED = 64
WARM_UPS = 2


def main() -> None:
    """Parse the command line and print one line per model."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("engine", type=Path, help="folder of a built engine")
    parser.add_argument("models", type=Path, nargs="+")
    parser.add_argument("--turns", type=int, default=5)
    args = parser.parse_args()
    print("model              server  llama-bench  ratio of medians  (tok/s)")
    for model in args.models:
        turns = [
            (by_server(args.engine / "bin", model), by_bench(args.engine / "bin", model))
            for _ in range(args.turns)
        ]
        server, bench = (statistics.median(side) for side in zip(*turns, strict=True))
        print(f"{model.stem:16} {server:8.1f} {bench:12.1f} {server / bench:8.3f}", flush=True)


def by_server(binaries: Path, model: Path) -> float:
    """Return the rate of the paired protocol, in tokens per second."""
    command = server_command(
        binaries / "llama-server", model, context=2048, threads=physical_cores(), gpu_layers=0
    )
    text = (ROOT / "resources/prompts/passage.txt").read_text()
    with (
        TemporaryDirectory() as folder,
        Server(command, Path(folder, "log"), start_limit_s=600, run_limit_s=600) as server,
    ):
        prompt = server.tokenize(text)[:DEPTH]
        for _ in range(WARM_UPS + 1):
            answer = server.complete(prompt, n_predict=GENERATED, temperature=0, seed=1)
    return float((GENERATED - 1) / answer["timings"]["predicted_ms"] * 1000)


def by_bench(binaries: Path, model: Path) -> float:
    """Return the rate of llama-bench at the same depth, in tokens per second."""
    command = [str(binaries / "llama-bench"), "-m", str(model), "-p", "0", "-n", str(GENERATED)]
    command += ["-d", str(DEPTH), "-t", str(physical_cores()), "-r", "1", "-o", "csv"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    [row] = csv.DictReader(io.StringIO(done.stdout))
    return float(row["avg_ts"])


if __name__ == "__main__":
    main()
