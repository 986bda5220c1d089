"""Time passes over few tokens at once with several engines, to see what their kernels do.

Usage: python tests/benchmarks/narrow_passes.py BIN [BIN ...] [--type Q8_0]

Each BIN is a folder with llama-bench. The model has four layers of the dense 4B's shape. Engines
take turns, on one thread; printed is the least time of each width over that of a single token.
"""

import argparse
import json
import subprocess
import tempfile
from pathlib import Path
from sys import path as module_path

ROOT = Path(__file__).resolve().parents[2]
module_path[:0] = [str(ROOT), str(ROOT / "workflow/scripts")]

from specmoe.config.synthetic_recipe import Recipe  # noqa: E402
from specmoe.models.synthetic import write_model  # noqa: E402

WIDTHS = (1, 2, 3, 4, 5, 8, 9, 16, 17)
TURNS, SAMPLES = 4, 8
SHAPE = {
    **{"layers": 4, "hidden": 2560, "heads": 16, "kv_heads": 4, "head_size": 256, "ffn": 9216},
    **{"gdn_value_heads": 32, "gdn_key_heads": 16, "gdn_head_size": 128, "tied": True},
}


def main() -> None:
    """Parse the command line and print a line for each engine."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("engines", nargs="+", type=Path, metavar="BIN")
    parser.add_argument("--type", default="Q8_0", help="dtype of the recipe")
    args = parser.parse_args()
    least: dict[Path, dict[int, int]] = {engine: {} for engine in args.engines}
    with tempfile.TemporaryDirectory() as folder:
        model = Path(folder) / "model.gguf"
        write_model(model, Recipe(**SHAPE, dtype=args.type))
        for _ in range(TURNS):
            for engine, times in least.items():
                for width, time_ns in measured(engine, model).items():
                    times[width] = min(time_ns, times.get(width, time_ns))
    for engine, times in least.items():
        multiples = ", ".join(f"{width}: {times[width] / times[1]:.1f}" for width in WIDTHS)
        print(f"{engine}: {multiples}")


def measured(engine: Path, model: Path) -> dict[int, int]:
    """Return the least time of a pass of each width, in ns."""
    command = [engine / "llama-bench", "-m", model, "-p", ",".join(map(str, WIDTHS))]
    command += ["-n", "0", "-t", "1", "-r", str(SAMPLES), "-o", "json"]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return {row["n_prompt"]: min(row["samples_ns"]) for row in json.loads(done.stdout)}


if __name__ == "__main__":
    main()
