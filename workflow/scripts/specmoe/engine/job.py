"""What the jobs that measure with an engine share: command line, needs, log, and precautions."""

import logging
import os
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from specmoe.config.backend import Backend
from specmoe.config.block import Block, Side
from specmoe.config.environment import refuse_exported
from specmoe.engine.devices import require_device
from specmoe.engine.flags import speculation_flags
from specmoe.engine.machine_id import physical_cores, refuse_other_host
from specmoe.engine.measuring_lock import alone
from specmoe.engine.memory import usable_memory
from specmoe.engine.server import Server, server_command
from specmoe.engine.supervise import end_with
from specmoe.errors import ModelError, SpecmoeError
from specmoe.files import engine_path, named_if_damaged, read_record
from specmoe.progress_lines import lines_to

# For every job (snakemake/shell.py). The Snakefile refuses the user's own before it starts jobs.
SET_BY_SNAKEMAKE = "OMP_NUM_THREADS"


@dataclass(frozen=True)
class Job:
    """What a measuring job needs besides what it measures."""

    root: Path  # prompt files are relative to this folder
    binaries: Path  # folder of the engine's programs
    target: Path  # GGUF
    draft: Path | None  # what the side that drafts loads: a GGUF, or a cache of n-grams
    server_log: Path  # receives the engine's output; each side of a block has a log beside it
    start_limit_s: float
    run_limit_s: float
    backend: Backend
    usable_memory: int  # bytes that models can use

    def log_of(self, side: Side) -> Path:
        """Return the file that receives the output of a side's engine."""
        return self.server_log.with_name(f"{self.server_log.stem}.{side.name}.log")

    def command(self, block: Block, side: Side) -> list[str]:
        """Return llama-server's command line for a side of a block."""
        file = engine_path(self.draft) if self.draft else None
        layers = block.gpu_layers
        drafting = speculation_flags(block.method, side, file, layers) if block.method else []
        return server_command(
            self.binaries / "llama-server",
            engine_path(self.target),
            context=block.context,
            threads=block.threads or physical_cores(),
            gpu_layers=block.gpu_layers,
            slots=block.slots,
            args=block.engine_args,
            speculation=drafting if side.speculates else (),
        )

    def server(self, command: list[str], block: Block, log: Path) -> Server:
        """Return a server, not yet started, in the environment of a block."""
        return Server(command, log, self.start_limit_s, self.run_limit_s, block.environment)


def engine_job(description: str | None) -> ArgumentParser:
    """Return a parser of the arguments that every job has which measures one target."""
    parser = engine_jobs(description)
    parser.add_argument("--target", required=True, type=Path, help="GGUF")
    parser.add_argument("--server-log", required=True, type=Path)
    return parser


def engine_jobs(description: str | None) -> ArgumentParser:
    """Return a parser of the arguments that every measuring job has, whatever its targets."""
    parser = ArgumentParser(description=description)
    parser.add_argument("--root", required=True, type=Path, help="folder of the prompt files")
    parser.add_argument("--engine", required=True, type=Path, help="engine.json")
    parser.add_argument("--host", required=True, type=Path, help="its description, if it exists")
    parser.add_argument("--start-limit-s", required=True, type=float)
    parser.add_argument("--run-limit-s", required=True, type=float)
    parser.add_argument("--workflow-pid", type=int, help="end when this process ends")
    parser.add_argument("--out", required=True, type=Path)
    return parser


def job_of(args: Namespace, draft: Path | None = None) -> Job:
    """Return the job that the arguments of `engine_job` describe."""
    backend = _backend(args.engine)
    host = read_record(args.host) if args.host.exists() else {}
    memory = psutil.virtual_memory().total
    return Job(
        root=args.root,
        binaries=args.engine.parent / "bin",
        target=args.target,
        draft=draft,
        server_log=args.server_log,
        start_limit_s=args.start_limit_s,
        run_limit_s=args.run_limit_s,
        backend=backend,
        usable_memory=usable_memory(memory, host.get("gpu_memory_bytes"), backend),
    )


def provenance(engine: Path, target_card: Path, draft_card: Path | None) -> dict[str, Any]:
    """Return the engine and the digests of the models that made a record, for the record."""
    return {
        "engine": _fact(engine, "id"),
        "engine_commit": _fact(engine, "commit"),
        "backend": _fact(engine, "backend"),
        "target_sha256": _fact(target_card, "sha256"),
        "draft_sha256": _fact(draft_card, "sha256") if draft_card else None,
    }


def _backend(engine: Path) -> Backend:
    with named_if_damaged(engine):
        return Backend(_fact(engine, "backend"))


def _fact(description: Path, key: str) -> Any:
    """Return what the description of an engine or a model says; measuring needs little of it."""
    with named_if_damaged(description):
        return read_record(description)[key]


def refuse_without_template(card: Path, model: str) -> None:
    """Raise ModelError for a model without a chat template on its card.

    llama-server would write chats in a format of its own choice instead, and say nothing.
    """
    with named_if_damaged(card):
        has_template = read_record(card).get("chat_template")
    if not has_template:
        raise ModelError(
            f"model {model} has no chat template; give its workload template: raw, or name a file"
            " of the model that has one"
        )


@contextmanager
def alone_on_its_host(args: Namespace, environment: Mapping[str, str]) -> Iterator[None]:
    """Measure only on the campaign's machine, alone, and only while the workflow runs.

    `environment` has the variables that the configuration gives the engine. Raises
    MeasurementError on another machine, or if other variables that steer the engine are exported,
    and EngineError if the engine's GPU has gone.
    """
    if args.workflow_pid:
        end_with(args.workflow_pid)
    refuse_exported(environment, os.environ.keys() - {SET_BY_SNAKEMAKE})
    refuse_other_host(args.host)
    with alone():
        require_device(_backend(args.engine), args.engine.parent / "bin/llama-server", environment)
        yield


@contextmanager
def log_of_job(path: Path) -> Iterator[None]:
    """Write what the room `measure` logs to a job's own log: every run, and the job's fault.

    Runs are logged at level DEBUG, which the console leaves out.
    """
    with path.open("w", encoding="utf-8") as file:
        try:
            with lines_to(file, "specmoe.measure", logging.DEBUG):
                yield
        except (SpecmoeError, OSError) as error:
            print(f"{type(error).__name__}: {error}", file=file, flush=True)
            raise
