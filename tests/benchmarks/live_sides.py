"""Compare blocks whose sides are live together with blocks whose sides follow one another.

Usage: python tests/benchmarks/live_sides.py --engine results/engines/ID/bin --folder SCRATCH
       [--models demo] [--target moe_q4] [--draft draft_0.8b] [--repeats 8]

A benchmark, not a test: it judges nothing. The two arrangements measure the same runs in the same
minutes, repeat by repeat. Compare the columns: seconds belong to one machine.
"""

import json
import math
import statistics
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "workflow/scripts"), str(ROOT)]

from tests.benchmarks.pair_of_models import pair_parser, write_pair  # noqa: E402

from specmoe.config.block import Arrangement, Block, PromptSource, Side  # noqa: E402
from specmoe.config.gate import Gate  # noqa: E402
from specmoe.config.methods import Method  # noqa: E402
from specmoe.measure import paired  # noqa: E402

GAMMAS = (4, 8, 16)
ARRANGEMENTS = (Arrangement.TOGETHER, Arrangement.IN_TURN)


def main() -> None:
    """Parse the command line, measure by turns, and print the table."""
    parser = pair_parser(__doc__)
    parser.add_argument("--repeats", type=int, default=8)
    parser.add_argument("--n-predict", type=int, default=64)
    args = parser.parse_args()
    job = write_pair(args.engine, args.folder, args.models, args.target, args.draft)
    records: dict[Arrangement, list[dict[str, Any]]] = {one: [] for one in ARRANGEMENTS}
    seconds: dict[Arrangement, float] = dict.fromkeys(ARRANGEMENTS, 0.0)
    for repeat in range(args.repeats):
        for arrangement in ARRANGEMENTS if repeat % 2 else reversed(ARRANGEMENTS):
            one = replace(block(repeat, args.n_predict), arrangement=arrangement)
            clock = time.perf_counter()
            records[arrangement].append(paired.measure(one, job))
            seconds[arrangement] += time.perf_counter() - clock
    print(json.dumps({name: summary(records[name], seconds[name]) for name in records}, indent=1))


def block(repeat: int, n_predict: int) -> Block:
    """Return one comparison of the target alone with three γ on two texts."""
    texts = ("short_factual", "code")
    return Block(
        block=f"bench/r{repeat}",
        suite="bench",
        target="target",
        methods=(Method.DRAFT,),
        draft="draft",
        draft_model="draft",
        repeat=repeat,
        sides=(Side(), *(Side(gamma, p_min=0.0, n_min=0) for gamma in GAMMAS)),
        prompts=tuple(PromptSource(text, f"resources/prompts/{text}.txt") for text in texts),
        passes=1,
        n_predict=n_predict,
        temperature=0.0,
        seed=42,
        warmups=6,
        warmup_tokens=16,
        order_seed=1,
        context=1024,
        threads=0,
        gpu_layers=0,
        gate=Gate().model_dump(),
    )


def summary(records: list[dict[str, Any]], seconds: float) -> dict[str, Any]:
    """Return how log speedups spread between repeats, and what the blocks took."""
    logs = {gamma: [log_ratio(one, f"g{gamma}", "alone") for one in records] for gamma in GAMMAS}
    between = [log_ratio(one, "g8", "g4") for one in records]
    private = [sum(side["private_bytes"] for side in one["sides"]) for one in records]
    runs = [run for record in records for run in record["runs"]]
    return {
        "sd of log speedup": {f"γ {g}": round(statistics.stdev(v), 4) for g, v in logs.items()},
        "sd of γ 8 against 4": round(statistics.stdev(between), 4),
        "seconds": round(seconds, 1),
        "measured share": round(sum(run["wall_ms"] for run in runs) / 1000 / seconds, 3),
        "private bytes of all sides (MB)": round(max(private) / 1e6),
        "runs measured again": sum(run["measured_again"] for run in runs),
        "CPU time of other processes, idle sides included": round(
            statistics.median(run["others_share"] or 0 for run in runs), 4
        ),
    }


def log_ratio(record: dict[str, Any], side: str, other: str) -> float:
    """Return the mean log of the ratio of two sides' decoding times over the prompts."""
    times = {
        (run["side"], run["prompt"]): run["answer"]["timings"]["predicted_ms"]
        for run in record["runs"]
    }
    prompts = {prompt for _, prompt in times}
    return statistics.fmean(math.log(times[other, p] / times[side, p]) for p in prompts)


if __name__ == "__main__":
    main()
