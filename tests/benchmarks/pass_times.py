"""Compare passes as pass_bench times them with the engine's own llama-batched-bench.

Usage: python tests/benchmarks/pass_times.py --engine results/engines/ID --model MODEL.gguf
       [--widths 1,2,5,9,17] [--depth 32] [--rounds 3] [--samples 8] [--threads 0]

A benchmark, not a test: it judges nothing. The programs take turns. Both are of the engine's build
and compiled for the comparison. llama-batched-bench decodes one token of each of as many sequences,
so a hybrid model has a recurrent state a token there, and one state in ours. Compare the steps: the
time of a pass over that of one token, both of the fastest round, for llama-batched-bench prints a
mean that every disturbance of a round lengthens.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "workflow/scripts"), str(ROOT)]

from specmoe.config.block import Outputs, TimedPasses  # noqa: E402
from specmoe.engine.build import PASS_BENCH, build_programs  # noqa: E402
from specmoe.engine.machine import physical_cores  # noqa: E402
from specmoe.measure.pass_times import pass_bench_command, read_pass_bench  # noqa: E402

THEIRS = "llama-batched-bench"
TOKENS = 8  # decoded by llama-batched-bench in each sequence

Times = dict[int, float]  # milliseconds by width


def main() -> None:
    """Parse the command line, time passes by turns, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--engine", required=True, type=Path, help="its folder, with `work`")
    parser.add_argument("--model", required=True, type=Path, help="GGUF")
    parser.add_argument("--widths", default="1,2,5,9,17")
    parser.add_argument("--depth", type=int, default=32, help="tokens before a pass")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--samples", type=int, default=8, help="of pass_bench in a round")
    parser.add_argument("--threads", type=int, default=0)
    args = parser.parse_args()
    widths = [int(width) for width in args.widths.split(",")]
    threads = args.threads or physical_cores()
    programs = built(args.engine)
    asked = (args.model, widths, args.depth, threads)
    ways = {
        PASS_BENCH: lambda: ours(programs[PASS_BENCH], *asked, args.samples),
        THEIRS: lambda: theirs(programs[THEIRS], *asked),
    }
    by_round = [{name: measure() for name, measure in ways.items()} for _ in range(args.rounds)]
    fastest = {
        name: {width: min(times[name][width] for times in by_round) for width in widths}
        for name in ways
    }
    print(" | ".join(["width", *(f"{name:>19}" for name in ways), "ours / theirs"]))
    for width in widths:
        steps = [fastest[name][width] / fastest[name][1] for name in ways]
        shown = [
            f"{fastest[name][width]:8.2f} ms = {steps[at]:5.2f}" for at, name in enumerate(ways)
        ]
        print(" | ".join([f"{width:5}", *shown, f"{steps[0] / steps[1]:13.2f}"]))


def built(engine: Path) -> dict[str, Path]:
    """Compile both programs in the engine's build, and return where they are."""
    with tempfile.TemporaryFile() as output:
        build_programs(engine, output.fileno())
    build = engine / "work/build"
    jobs = str(os.cpu_count())
    command = ["cmake", "--build", str(build), "--parallel", jobs, "--target", THEIRS]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return {name: build / "bin" / name for name in (PASS_BENCH, THEIRS)}


def ours(
    program: Path, model: Path, widths: Sequence[int], depth: int, threads: int, samples: int
) -> Times:
    """Return what pass_bench measures, with the output of every token."""
    passes = TimedPasses(
        model=model.stem,
        widths=tuple(widths),
        outputs=(Outputs.ALL,),
        samples=samples,
        text="resources/prompts/passage.txt",
        depth=depth,
        threads=threads,
        gpu_layers=0,
        environment={},
        gate={},
    )
    command = pass_bench_command(program, model, ROOT, passes)
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
