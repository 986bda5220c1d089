"""Measure what streaming an answer, with a time for each token, adds to its decoding time.

Usage: python tests/benchmarks/streaming_cost.py --engine results/engines/ID/bin MODEL.gguf ...
       [--turns 20] [--tokens 128]

A benchmark, not a test. Streamed and unstreamed requests of one server alternate, which of the two
comes first alternates too, and the ratio of their decoding times counts: seconds belong to one
machine.
"""

import argparse
import math
import statistics
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "workflow/scripts"))

from scipy import stats  # noqa: E402

from specmoe.engine.machine_id import physical_cores  # noqa: E402
from specmoe.engine.server import Server, server_command  # noqa: E402

DEPTH = 64
WARM_UPS = 2


def main() -> None:
    """Parse the command line and print one line per model."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("models", type=Path, nargs="+")
    parser.add_argument("--engine", type=Path, required=True, help="folder of llama-server")
    parser.add_argument("--turns", type=int, default=20)
    parser.add_argument("--tokens", type=int, default=128)
    args = parser.parse_args()
    print("model              tok/s  streamed over unstreamed, with its 95 % interval over turns")
    for model in args.models:
        rate, logs = compare(args.engine / "llama-server", model, args.turns, args.tokens)
        mean = statistics.fmean(logs)
        half = stats.t.ppf(0.975, len(logs) - 1) * statistics.stdev(logs) / math.sqrt(len(logs))
        low, middle, high = (math.exp(mean + shift) for shift in (-half, 0, half))
        print(f"{model.stem:16} {rate:8.1f}  {middle:.4f} [{low:.4f}, {high:.4f}]", flush=True)


def compare(binary: Path, model: Path, turns: int, tokens: int) -> tuple[float, list[float]]:
    """Return the median rate unstreamed in tokens a second, and the log ratio of each turn."""
    command = server_command(binary, model, context=2048, threads=physical_cores(), gpu_layers=0)
    text = (ROOT / "resources/prompts/passage.txt").read_text()
    times: dict[str, list[float]] = {"whole": [], "streamed": []}
    with (
        TemporaryDirectory() as folder,
        Server(command, Path(folder, "log"), start_limit_s=600, run_limit_s=600) as server,
    ):
        prompt = server.tokenize(text)[:DEPTH]
        ways = {"whole": server.complete, "streamed": server.complete_streamed}
        for turn in range(WARM_UPS + turns):
            for name in sorted(ways, reverse=bool(turn % 2)):
                answer = ways[name](prompt, n_predict=tokens, temperature=0, seed=1)
                if turn >= WARM_UPS:
                    times[name].append(answer["timings"]["predicted_ms"])
    ratios = zip(times["streamed"], times["whole"], strict=True)
    rate = (tokens - 1) * 1000 / statistics.median(times["whole"])
    return rate, [math.log(streamed / whole) for streamed, whole in ratios]


if __name__ == "__main__":
    main()
