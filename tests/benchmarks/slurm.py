"""A campaign on a SLURM cluster of two nodes on this machine, and what faults leave of it.

Each node is a slurmd in a mount namespace of its own: with its own machine id, so that rows tell
the nodes apart, its own measuring lock, and a core of its own where the machine has two. The
cluster runs suite B on one node and on two. Then, on two nodes each time: a node is lost
while it measures, a job is cancelled, a job runs into its time limit, the controller restarts.
After each fault the same command is typed again, and every row must be there once. Prints wall
times, blocks by machine, what was kept and what was said.

Usage (as root, on a machine that is no node of a cluster; Debian: apt-get install slurm-wlm munge):
    python tests/benchmarks/slurm.py --engine results/engines/ID/bin --models FOLDER \\
        --snakemake .venv-slurm/bin/snakemake --folder NEW_FOLDER

A benchmark, not a test: it writes /etc/slurm/slurm.conf and takes some 20 minutes on two cores. The
nodes share the machine's memory, and snakemake itself runs beside them.
"""

import argparse
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "workflow/scripts"))

from specmoe.runs.schema import read_runs  # noqa: E402

CONFIGURATION = Path("/etc/slurm/slurm.conf")
NODES = ("n1", "n2")
DAEMONS = ("munged", "slurmctld", "slurmd")
POLL_S = 0.5
TIMED = 4  # passes of a block where wall times are compared: longer than SLURM takes to start it
LONG = 12  # and in which a fault happens: more than a minute


class Cluster:
    """A controller and its nodes; `folder` has their state and logs."""

    def __init__(self, folder: Path) -> None:
        """Write the cluster's configuration."""
        self.folder = folder
        self.nodes: dict[str, subprocess.Popen[bytes]] = {}
        host = socket.gethostname()
        lines = [
            *("ClusterName=specmoe", f"SlurmctldHost={host}(127.0.0.1)", "AuthType=auth/munge"),
            *("ProctrackType=proctrack/linuxproc", "TaskPlugin=task/none", "SlurmUser=root"),
            *("SelectType=select/cons_tres", "SelectTypeParameters=CR_CPU", "ReturnToService=2"),
            *(f"StateSaveLocation={folder}/state", f"SlurmdSpoolDir={folder}/spool.%n"),
            *(f"SlurmctldLogFile={folder}/slurmctld.log", f"SlurmdLogFile={folder}/slurmd.%n.log"),
            *(f"SlurmctldPidFile={folder}/slurmctld.pid", f"SlurmdPidFile={folder}/slurmd.%n.pid"),
            # The executor asks after a job's end how it ended.
            *("MinJobAge=3600", "SlurmdTimeout=15", "OverTimeLimit=0", "KillWait=5"),
            *(
                f"NodeName={node} NodeHostname={host} NodeAddr=127.0.0.1 Port={17001 + place}"
                " CPUs=1 RealMemory=10000 State=UNKNOWN"
                for place, node in enumerate(NODES)
            ),
            "PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP",
        ]
        (folder / "state").mkdir(parents=True)
        CONFIGURATION.parent.mkdir(exist_ok=True)
        CONFIGURATION.write_text("\n".join(lines) + "\n")

    def start(self) -> None:
        """Start the controller and all nodes."""
        Path("/run/munge").mkdir(mode=0o755, exist_ok=True)
        shutil.chown("/run/munge", "munge", "munge")
        subprocess.run(["runuser", "-u", "munge", "munged"], check=False)
        self.start_controller()
        for node in NODES:
            self.start_node(node)
        self._wait(set(NODES))

    def start_controller(self) -> None:
        """Start the controller, which goes on with the jobs that it knew."""
        subprocess.run(["slurmctld"], check=True)

    def stop_controller(self) -> None:
        """Stop the controller; nodes and their jobs run on."""
        subprocess.run(["scontrol", "shutdown", "slurmctld"], check=False)
        time.sleep(2)
        _end("slurmctld")

    def start_node(self, node: str) -> None:
        """Start a node with a machine id and a folder of locks of its own."""
        identity = self.folder / f"machine-id.{node}"
        identity.write_text(f"{NODES.index(node) + 1:032x}\n")
        script = (
            f"mount --bind {identity} /etc/machine-id && mount -t tmpfs -o mode=1777 locks"
            f" /run/lock && exec taskset --cpu-list {_core(node)} slurmd -D -N {node}"
        )
        with (self.folder / f"{node}.out").open("ab") as log:
            self.nodes[node] = subprocess.Popen(
                ["unshare", "--mount", "--propagation", "private", "sh", "-c", script],
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def lose_node(self, node: str) -> None:
        """Kill a node and all that it runs, as a loss of power would."""
        process = self.nodes.pop(node)
        namespace = Path(f"/proc/{process.pid}/ns/mnt").readlink()
        for entry in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                if (entry / "ns/mnt").readlink() == namespace:
                    os.kill(int(entry.name), signal.SIGKILL)
        process.wait()

    def only(self, nodes: set[str]) -> None:
        """Let only these nodes take jobs."""
        for node in NODES:
            state = "resume" if node in nodes else "drain"
            words = ["scontrol", "update", f"NodeName={node}", f"State={state}"]
            # A node that is up already cannot resume.
            subprocess.run([*words, "Reason=asked"], check=False, capture_output=True)
        self._wait(nodes)

    def stop(self) -> None:
        """Stop everything."""
        for node in list(self.nodes):
            self.lose_node(node)
        for daemon in DAEMONS:
            _end(daemon)

    def _wait(self, nodes: set[str]) -> None:
        for _ in range(120):
            states = _output("sinfo", "-N", "-h", "-o", "%N %t").split()
            ready = {
                name
                for name, state in zip(states[::2], states[1::2], strict=False)
                if state in {"idle", "alloc", "mix"}
            }
            if nodes <= ready:
                return
            time.sleep(POLL_S)
        raise SystemExit(f"nodes {nodes} are not ready: {states}")


def main() -> None:
    """Parse the command line, run the campaigns, print what came of them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--engine", required=True, type=Path, help="folder of llama.cpp's programs")
    parser.add_argument("--models", required=True, type=Path, help="made models of set synthetic")
    parser.add_argument("--snakemake", required=True, type=Path, help="with the plugin for SLURM")
    parser.add_argument("--folder", required=True, type=Path, help="a new folder")
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--only", nargs="+", choices=CASES, help="some of the cases")
    args = parser.parse_args()
    args.folder.mkdir(parents=True)
    folder = args.folder.resolve()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    with _cluster(folder / "cluster") as cluster:
        for number, (name, fault) in enumerate(CASES.items()):
            if name in (args.only or CASES):
                case = Case(folder / f"case{number}", args, passes=LONG if fault else TIMED)
                cluster.only({"n1"} if name == "one node" else set(NODES))
                case.run(name, cluster, fault)


class Case:
    """A campaign in a folder of its own."""

    def __init__(self, folder: Path, args: argparse.Namespace, passes: int) -> None:
        """Write its configuration, and link the models."""
        self.folder = folder
        models = folder / "results/models/synthetic"
        shutil.copytree(args.models, models, copy_function=os.link)
        for file in models.rglob("*"):
            os.utime(file)
        overlay = {
            "campaign": {
                **{"name": "cluster", "engine": "built", "models": "synthetic", "backend": "cpu"},
                **{"suites": ["B"], "hosts": "same"},
            },
            "engines": {"built": {"source": "path", "path": str(args.engine.resolve())}},
            "suites": {"B": {"targets": ["moe_q4", "dense_4b"]}},
            # A core for each node.
            "measurement": {
                **{"n_predict": 64, "repeats": args.repeats, "threads": 1, "pass_samples": 0},
                "passes": passes,
                "gate": {"retries": 0},
            },
        }
        (folder / "overlay.yaml").write_text(yaml.safe_dump(overlay))
        campaign = [
            *(str(args.snakemake.absolute()), "advise", "--directory", str(folder)),
            *("--snakefile", str(ROOT / "Snakefile")),
            *("--configfile", str(ROOT / "config/synthetic.yaml"), str(folder / "overlay.yaml")),
        ]
        # Only what measures, and what follows, is a job of the cluster here.
        subprocess.run(
            [*campaign, "--cores", "1", "--omit-from", "describe_host"],
            check=True,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        self.command = [
            *(*campaign, "--workflow-profile", str(ROOT / "profiles/slurm")),
            *("--jobs", "2", "--latency-wait", "10"),
            # Without accounting the queue is asked, and small jobs need not wait.
            *("--slurm-status-command", "squeue", "--slurm-init-seconds-before-status-checks", "3"),
            *("--seconds-between-status-checks", "3"),
        ]

    def run(
        self, name: str, cluster: Cluster, fault: Callable[[Cluster, Path], None] | None
    ) -> None:
        """Measure, with a fault in the middle if one is given, and print what came of it."""
        began = time.monotonic()
        process = self._start(0)
        if fault:
            self._wait_for_blocks(2, process)
            fault(cluster, self.folder)
        code = process.wait()
        kept, again = self._blocks(), 0
        while code and again < 3:
            again += 1
            cluster.only(set(NODES))
            code = self._start(again).wait()
        wall = time.monotonic() - began
        said = self._said()
        print(f"\n## {name}: {wall:.0f} s, exit {code}, typed again {again} times")
        took = sum(json.loads(Path(record).read_text())["elapsed_s"] for record in self._blocks())
        print(f"blocks kept by the first call: {len(kept)}, in the end: {len(self._blocks())}")
        print(f"the blocks themselves took {took:.0f} s, one after the other")
        for line in said:
            print(f"  | {line}")
        if code == 0:
            runs = read_runs(self.folder / "results/cluster/runs.parquet")
            assert runs["run"].is_unique
            blocks = runs.drop_duplicates("block")["host"].value_counts()
            print(f"runs {len(runs)}, blocks by machine: {dict(blocks)}")
            measured = set(self._blocks().items()) & set(kept.items())
            print(f"records that no further call touched: {len(measured)} of {len(kept)}")
        sys.stdout.flush()

    def _start(self, number: int) -> "subprocess.Popen[bytes]":
        if number:
            subprocess.run([*self.command, "--unlock"], check=False, capture_output=True)
        with (self.folder / f"call{number}.log").open("wb") as log:
            return subprocess.Popen(self.command, stdout=log, stderr=subprocess.STDOUT)

    def _wait_for_blocks(self, count: int, process: "subprocess.Popen[bytes]") -> None:
        while len(self._blocks()) < count and process.poll() is None:
            time.sleep(POLL_S)
        time.sleep(3)  # the next ones measure

    def _blocks(self) -> dict[str, int]:
        records = (self.folder / "results/cluster/blocks").rglob("r*.json")
        return {str(record): record.stat().st_mtime_ns for record in records}

    def _said(self) -> list[str]:
        lines = []
        for log in sorted(self.folder.glob("call*.log")):
            text = log.read_text(errors="replace")
            lines += re.findall(r"^.*(?:Error|error:|failed|cancel|FAIL|TIMEOUT).*$", text, re.M)
        return [line[:200] for line in list(dict.fromkeys(lines))[:12]]


def _core(node: str) -> int:
    """Return the core that a node computes on."""
    cores = sorted(os.sched_getaffinity(0))
    return cores[NODES.index(node) % len(cores)]


def _lose_a_node(cluster: Cluster, folder: Path) -> None:
    cluster.lose_node("n2")
    time.sleep(40)
    cluster.start_node("n2")


def _cancel(cluster: Cluster, folder: Path) -> None:
    jobs = _output("squeue", "-h", "-t", "R", "-o", "%i").split()
    subprocess.run(["scancel", jobs[0]], check=True)


def _reach_limit(cluster: Cluster, folder: Path) -> None:
    # SLURM counts whole minutes, and a block has LONG passes.
    [job, *_] = _output("squeue", "-h", "-t", "R", "-o", "%i").split()
    subprocess.run(["scontrol", "update", f"JobId={job}", "TimeLimit=1"], check=True)


def _restart(cluster: Cluster, folder: Path) -> None:
    cluster.stop_controller()
    time.sleep(10)
    cluster.start_controller()


CASES: dict[str, Callable[[Cluster, Path], None] | None] = {
    "one node": None,
    "two nodes": None,
    "a node is lost": _lose_a_node,
    "a job is cancelled": _cancel,
    "a job reaches its limit": _reach_limit,
    "the controller restarts": _restart,
}


@contextmanager
def _cluster(folder: Path) -> Iterator[Cluster]:
    cluster = Cluster(folder)
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.stop()


def _output(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stdout


def _end(name: str) -> None:
    subprocess.run(["pkill", "-x", name], check=False)


if __name__ == "__main__":
    main()
