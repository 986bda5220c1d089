"""Speedups beside planted loads: what of a machine's state moves them. For Linux.

Each round has both targets, each a baseline and a server that drafts, alone and beside a load of
`load.py` on the next CPU, all in a drawn order. Prints, by load, mean speedups with their standard
errors, the MoE's over the dense model's, and what both servers lose to the load.
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

TEXT = (ROOT / "resources/prompts/code.txt").read_text()
LOADS = ("alone", "memory", "arithmetic")
PROMPT, CONTEXT, SETTLE_S, LIMIT_S = 64, 512, 1.0, 600.0


@contextmanager
def planted(kind, cpu):
    """Keep a CPU busy; not if it is `alone`."""
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


def measure(given, target, random, folder):
    """Return the logarithms of the rates of baseline and drafting, an array (loads, 2)."""
    drafting = speculation_flags(Arm(gamma=given.gamma, method=Method.DRAFT), given.draft, 0)
    how = {"context": CONTEXT, "threads": given.threads, "gpu_layers": 0}
    found = np.zeros((len(LOADS), 2))
    with ExitStack() as live:
        servers = []
        for flags in ((), drafting):
            command = server_command(given.engine / "bin/llama-server", target, **how)
            log = Path(folder, f"{len(servers)}.log")
            servers.append(live.enter_context(Server([*command, *flags], log, LIMIT_S)))
            for thread in Path(f"/proc/{servers[-1].pid}/task").iterdir():
                os.sched_setaffinity(int(thread.name), range(given.threads))
        ask = {"prompt": servers[0].tokenize(TEXT)[:PROMPT], "temperature": 0, "seed": 1}
        for server in servers:
            server.complete(n_predict=8, **ask)  # the first request is slow
        for place in random.permutation(len(LOADS)):
            with planted(LOADS[place], given.threads):
                for which in random.permutation(2):
                    answer = servers[which].complete(n_predict=given.tokens, **ask)
                    found[place, which] = np.log(answer["timings"]["predicted_per_second"])
    return found


def spread(logs):
    """Return the geometric mean of rounds, and its standard error, in words."""
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
                logs[number, which] = measure(given, target, random, folder)
    speedups = logs[..., 1] - logs[..., 0]
    lost = 1 - np.exp((logs - logs[:, :, :1]).mean(axis=(0, 1)))
    for (dense, moe), losses, kind in zip(speedups.transpose(2, 1, 0), lost, LOADS, strict=True):
        speeds = f"dense {spread(dense)}, MoE {spread(moe)}, ratio {spread(moe - dense)}"
        print(f"{kind}: {speeds};", "the baseline loses {:.0%}, drafting {:.0%}".format(*losses))
    print("ratio over all loads:", spread((speedups[:, 1] - speedups[:, 0]).mean(axis=1)))


if __name__ == "__main__":
    main()
