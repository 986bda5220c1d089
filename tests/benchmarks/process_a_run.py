"""Compare blocks with a process for every single run: the time of the same runs.

Usage: python tests/benchmarks/process_a_run.py --engine results/engines/ID/bin --folder SCRATCH
       [--models demo] [--target moe_q4] [--draft draft_0.8b] [--repeats 3] [--passes 2]

A benchmark, not a test: it judges nothing. Starts, warm-ups and ends count on both sides; a process
for every run has no warm-up. The two take turns, so that both meet the same machine. Compare the
ratio: seconds belong to one machine.
"""

import sys
import time
from dataclasses import replace
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "workflow/scripts"), str(ROOT)]

from tests.benchmarks.live_sides import block  # noqa: E402
from tests.benchmarks.pair_of_models import pair_parser, write_pair  # noqa: E402

from specmoe.config.block import Block  # noqa: E402
from specmoe.engine.job import Job  # noqa: E402
from specmoe.measure import paired  # noqa: E402


def main() -> None:
    """Parse the command line, measure by turns, and print both times and their ratio."""
    parser = pair_parser(__doc__)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--passes", type=int, default=2)
    parser.add_argument("--n-predict", type=int, default=64)
    args = parser.parse_args()
    job = write_pair(args.engine, args.folder, args.models, args.target, args.draft)
    blocks_s = processes_s = measured_s = 0.0
    for repeat in range(args.repeats):
        one = replace(block(repeat, args.n_predict), passes=args.passes)
        clock = time.perf_counter()
        record = paired.measure(one, job)
        blocks_s += time.perf_counter() - clock
        measured_s += sum(run["wall_ms"] for run in record["runs"]) / 1000
        clock = time.perf_counter()
        measure_each_alone(one, job)
        processes_s += time.perf_counter() - clock
    runs = one.runs * args.repeats
    print(f"{args.target} with {args.draft}, {runs} runs of {args.n_predict} tokens")
    print(f"blocks: {blocks_s:.1f} s, of which {measured_s / blocks_s:.0%} are measured runs")
    print(f"a process a run: {processes_s:.1f} s")
    print(f"ratio: {blocks_s / processes_s:.2f}")


def measure_each_alone(one: Block, job: Job) -> None:
    """Do every run of a block in a process of its own, without warm-ups."""
    for number in range(one.passes):
        for source in one.prompts:
            for side in one.sides:
                single = replace(one, sides=(side,), prompts=(source,), passes=1, warmups=0)
                paired.measure(replace(single, block=f"{one.block}/{number}"), job)


if __name__ == "__main__":
    main()
