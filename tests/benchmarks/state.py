"""Speedups beside planted loads: what of a machine's state moves them.

Each round has both targets, each a baseline and a server that drafts, alone and beside a load of
`load.py` on another CPU, all in a drawn order. Prints, by load, the mean speedup of each target
over the rounds with the error of the mean, what both servers lose to the load, and the MoE's
speedup over that of the dense model. For Linux, with nothing else running.
"""

import argparse
import os
import subprocess
import sys
import tempfile
from contextlib import ExitStack, contextmanager
from pathlib import Path
from time import sleep

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "workflow/scripts")]

from specmoe.config.block import Arm  # noqa: E402
from specmoe.config.methods import Method  # noqa: E402
from specmoe.engine.job import server_command, speculation_flags  # noqa: E402
from specmoe.engine.server import Server  # noqa: E402

TEXT = ROOT / "resources/prompts/code.txt"
LOADS = ("alone", "memory", "arithmetic")
PROMPT, CONTEXT, SETTLE_S, LIMIT_S = 64, 512, 1.0, 600.0


@contextmanager
def load(kind, cpu):
    """Keep a CPU busy, or do nothing if `alone`."""
    if kind == "alone":
        yield
        return
    program = [sys.executable, Path(__file__).with_name("load.py"), "--kind", kind, "--share", "1"]
    with subprocess.Popen(program) as running:
        try:
            os.sched_setaffinity(running.pid, {cpu})
            sleep(SETTLE_S)
            yield
        finally:
            running.terminate()


def rates(given, target, random, log):
    """Return the logarithms of both servers' rates beside each load, an array (loads, 2)."""
    command = {"binary": given.engine / "bin/llama-server", "target": target}
    command |= {"context": CONTEXT, "threads": given.threads, "gpu_layers": 0}
    found = np.zeros((len(LOADS), 2))
    arm = Arm(gamma=given.gamma, method=Method.DRAFT)
    with ExitStack() as live:
        servers = [
            live.enter_context(Server(server_command(**command, speculation=flags), file, LIMIT_S))
            for flags, file in [
                ((), log / "baseline.log"),
                (speculation_flags(arm, given.draft, 0), log / "drafting.log"),
            ]
        ]
        ids = servers[0].tokenize(TEXT.read_text())[:PROMPT]
        for server in servers:
            for thread in Path(f"/proc/{server.pid}/task").iterdir():
                os.sched_setaffinity(int(thread.name), {*range(given.threads)})
            server.complete(ids, n_predict=8, temperature=0, seed=1)
        for place in random.permutation(len(LOADS)):
            with load(LOADS[place], given.threads):
                for which in random.permutation(2):
                    answer = servers[which].complete(
                        ids, n_predict=given.tokens, temperature=0, seed=1
                    )
                    found[place, which] = np.log(answer["timings"]["predicted_per_second"])
    return found


def spread(logs):
    """Return the geometric mean of rounds and the error of its logarithm, as words."""
    return f"{np.exp(logs.mean()):.2f} ± {logs.std(ddof=1) / np.sqrt(len(logs)):.2f}"


def main() -> None:
    """Measure, and print a line for each load."""
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("engine", "dense", "moe", "draft"):
        parser.add_argument(f"--{name}", type=Path, required=True, help="a folder, or a GGUF file")
    for name, default in {"rounds": 32, "tokens": 40, "gamma": 8, "threads": 1}.items():
        parser.add_argument(f"--{name}", type=int, default=default)
    given, random = parser.parse_args(), np.random.default_rng(1)
    logs = np.zeros((given.rounds, 2, len(LOADS), 2))
    with tempfile.TemporaryDirectory() as folder:
        for number in range(given.rounds):
            for which in random.permutation(2):
                target = (given.dense, given.moe)[which]
                logs[number, which] = rates(given, target, random, Path(folder))
            print(f"round {number + 1} of {given.rounds}", file=sys.stderr, flush=True)
    speedups = logs[..., 1] - logs[..., 0]
    lost = 1 - np.exp((logs - logs[:, :, :1]).mean(axis=(0, 1)))
    for place, kind in enumerate(LOADS):
        dense, moe = speedups[:, :, place].T
        losses = "baseline loses {:.0%}, drafting {:.0%}".format(*lost[place])
        print(f"{kind}: dense {spread(dense)}, MoE {spread(moe)}, MoE over dense", end=" ")
        print(f"{spread(moe - dense)}; {losses}")
    print("MoE over dense, all:", spread((speedups[:, 1] - speedups[:, 0]).mean(axis=1)))


if __name__ == "__main__":
    main()
