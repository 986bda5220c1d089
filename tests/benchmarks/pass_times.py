"""Compare passes as pass_bench times them with the engine's own llama-batched-bench.

Usage: python tests/benchmarks/pass_times.py --engine results/engines/ID --model MODEL.gguf
       [--widths 1,2,5,9,17] [--depth 32] [--rounds 3] [--threads 0]

A benchmark, not a test: it judges nothing. The two programs take turns. Both are of the engine's
build; llama-batched-bench is compiled for the comparison. It decodes one token of each of as many
sequences, so a hybrid model has a recurrent state a token there, and one state in ours. Compare the
steps: the time of a pass over that of one token.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "workflow/scripts"), str(ROOT)]

from specmoe.config.timed_passes import Outputs  # noqa: E402
from specmoe.engine.machine_id import physical_cores  # noqa: E402
from specmoe.engine.pass_bench import (  # noqa: E402
    PROGRAM,
    pass_bench_command,
    read_pass_bench,
)

THEIRS = "llama-batched-bench"
TOKENS = 8  # decoded by llama-batched-bench in each sequence
SAMPLES = 8

Times = dict[int, float]  # milliseconds by width


def main() -> None:
    """Parse the command line, time passes by turns, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--engine", required=True, type=Path, help="its folder, with `work`")
    parser.add_argument("--model", required=True, type=Path, help="GGUF")
    parser.add_argument("--widths", default="1,2,5,9,17")
    parser.add_argument("--depth", type=int, default=32, help="tokens before a pass")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=0)
    args = parser.parse_args()
    widths = [int(width) for width in args.widths.split(",")]
    threads = args.threads or physical_cores()
    build = args.engine / "work/build"
    subprocess.run(
        ["cmake", "--build", str(build), "--parallel", str(os.cpu_count()), "--target", THEIRS],
        check=True,
        stdout=subprocess.DEVNULL,
    )
    rounds = [
        (
            ours(args.engine / PROGRAM, args.model, widths, args.depth, threads),
            theirs(build / "bin" / THEIRS, args.model, widths, args.depth, threads),
        )
        for _ in range(args.rounds)
    ]
    print(f"{'width':>5} | {PROGRAM:>10} | {THEIRS:>19} | ratio")
    for width in widths:
        one, other = (
            statistics.median(times[at][width] / times[at][1] for times in rounds) for at in (0, 1)
        )
        print(f"{width:5} | {one:10.2f} | {other:19.2f} | {one / other:5.2f}")


def ours(program: Path, model: Path, widths: Sequence[int], depth: int, threads: int) -> Times:
    """Return what pass_bench measures, with the output of every token."""
    command = pass_bench_command(
        program,
        model,
        ROOT / "resources/prompts/passage.txt",
        widths=widths,
        outputs=[Outputs.ALL],
        samples=SAMPLES,
        depth=depth,
        threads=threads,
        gpu_layers=0,
    )
    return {timing.width: timing.ms for timing in read_pass_bench(_printed(command))}


def theirs(program: Path, model: Path, widths: Sequence[int], depth: int, threads: int) -> Times:
    """Return what llama-batched-bench measures for as many sequences."""
    command = [str(program), "--model", str(model), "--output-format", "jsonl"]
    command += ["--ctx-size", str(max(widths) * (depth + TOKENS)), "--threads", str(threads)]
    command += ["-npp", str(depth), "-ntg", str(TOKENS), "-npl", ",".join(map(str, widths))]
    lines = [line for line in _printed(command).splitlines() if line.startswith("{")]
    return {line["pl"]: 1000 * line["t_tg"] / TOKENS for line in map(json.loads, lines)}


def _printed(command: list[str]) -> str:
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    return done.stdout.decode()


if __name__ == "__main__":
    main()
