"""Show what the gate sees of a quiet machine and of one with busy neighbours.

Usage: SPECMOE_TEST_ENGINE=FOLDER python tests/benchmarks/taken_away.py [--requests 30]

A benchmark, not a test. FOLDER has a llama-server. Requests to one server take turns: without a
neighbour, with a busy loop on one CPU, and with one on every CPU. Prints each indicator's spread,
how often the rule fires with the default limits, and what it would be with others. The speed is
printed beside them, and the rule does not see it.
"""

import argparse
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import psutil

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "workflow/scripts"), str(ROOT)]

from tests.recipes import SMALL  # noqa: E402

from specmoe.config.backend import Backend  # noqa: E402
from specmoe.config.gate import Gate  # noqa: E402
from specmoe.engine.machine_id import physical_cores  # noqa: E402
from specmoe.engine.server import Server, server_command  # noqa: E402
from specmoe.engine.taken_away import (  # noqa: E402
    Observation,
    Watch,
    was_taken_away,
)
from specmoe.models.synthetic import write_model  # noqa: E402

PROMPT = list(range(300, 364))
WARM_UPS = 2
LIMITS = (0.01, 0.02, 0.05, 0.1, 0.2)
LIMITED = ("steal_share", "wait_share", "others_share")
SPIN = "print('up', flush=True)\nwhile True: pass"


class Seen(NamedTuple):
    """One request."""

    observation: Observation
    wall_s: float
    tokens_per_second: float
    observing_ms: float


def main() -> None:
    """Parse the command line, send the requests, print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--requests", type=int, default=30, help="of each kind")
    parser.add_argument("--n-predict", type=int, default=256)
    args = parser.parse_args()
    cpus = psutil.cpu_count() or 1
    threads = physical_cores()
    neighbours = {"quiet": 0, "one busy CPU": 1, f"all {cpus} busy": cpus}
    binaries = Path(os.environ["SPECMOE_TEST_ENGINE"])
    with TemporaryDirectory() as folder:
        model = Path(folder, "model.gguf")
        write_model(model, SMALL)
        command = server_command(
            binaries / "llama-server", model, context=2048, threads=threads, gpu_layers=0
        )
        with Server(command, Path(folder, "log"), start_limit_s=60, run_limit_s=600) as server:
            watch = Watch(server.pid, threads, Backend.CPU)
            for _ in range(WARM_UPS):
                request(server, watch, args.n_predict)
            seen: dict[str, list[Seen]] = {kind: [] for kind in neighbours}
            for _ in range(args.requests):
                for kind, number in neighbours.items():
                    with busy(number):
                        seen[kind].append(request(server, watch, args.n_predict))
    for kind, requests in seen.items():
        report(kind, requests)


@contextmanager
def busy(number: int) -> Iterator[None]:
    """Run `number` busy loops beside what is done within."""
    loops = [
        subprocess.Popen([sys.executable, "-S", "-c", SPIN], stdout=subprocess.PIPE)
        for _ in range(number)
    ]
    for loop in loops:
        assert loop.stdout is not None
        loop.stdout.readline()
    try:
        yield
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


def request(server: Server, watch: Watch, n_predict: int) -> Seen:
    """Send one request and observe it."""
    clock = time.perf_counter()
    start = watch.start()
    started = time.perf_counter()
    answer = server.complete(PROMPT, n_predict=n_predict, temperature=0, seed=1)
    ended = time.perf_counter()
    observation = watch.stop(start)
    observing_s = time.perf_counter() - ended + started - clock
    speed = answer["timings"]["predicted_per_second"]
    return Seen(observation, ended - started, speed, observing_s * 1000)


def report(kind: str, requests: list[Seen]) -> None:
    """Print the spread of every indicator, and how often the rule fires."""
    print(f"\n{kind}: {len(requests)} requests{'min':>14}{'median':>9}{'p90':>9}{'max':>9}")
    for name in Observation._fields:
        spread(name, [getattr(one.observation, name) for one in requests])
    for name in ("wall_s", "tokens_per_second", "observing_ms"):
        spread(name, [getattr(one, name) for one in requests])
    reasons = [was_taken_away(one.observation, Gate()) for one in requests]
    print(f"  the rule fires: {sum(map(bool, reasons))} of {len(requests)}")
    for name in LIMITED:
        values = [getattr(one.observation, name) for one in requests]
        above = [sum(value is not None and value > limit for value in values) for limit in LIMITS]
        counts = ", ".join(f"{of} > {limit:g}" for of, limit in zip(above, LIMITS, strict=True))
        print(f"  {name}: {counts}")


def spread(name: str, values: list[float | None]) -> None:
    """Print one line of a table; nothing for an indicator that this machine does not have."""
    known = sorted(value for value in values if value is not None)
    if known:
        p90 = known[int(0.9 * (len(known) - 1))]
        numbers = (known[0], statistics.median(known), p90, known[-1])
        print(f"  {name:22}" + "".join(f"{number:9.3f}" for number in numbers), flush=True)


if __name__ == "__main__":
    main()
