"""What the jobs that measure with an engine share: their command line, and their manners."""

import os
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from specmoe.config.environment import refuse_exported
from specmoe.engine.machine_id import refuse_other_host
from specmoe.engine.measuring_lock import alone
from specmoe.engine.supervise import end_with
from specmoe.errors import SpecmoeError

# For every job (snakemake/shell.py). The Snakefile looks for the user's own before it starts jobs.
SET_BY_SNAKEMAKE = "OMP_NUM_THREADS"


def engine_job(description: str | None) -> ArgumentParser:
    """Return a parser of what every such job is told."""
    parser = ArgumentParser(description=description)
    parser.add_argument("--root", required=True, type=Path, help="folder of the prompt files")
    parser.add_argument("--engine", required=True, type=Path, help="engine.json")
    parser.add_argument("--host", required=True, type=Path, help="the machine, if it is described")
    parser.add_argument("--target", required=True, type=Path, help="GGUF")
    parser.add_argument("--start-limit-s", required=True, type=float)
    parser.add_argument("--run-limit-s", required=True, type=float)
    parser.add_argument("--workflow-pid", type=int, help="end when this process does")
    parser.add_argument("--server-log", required=True, type=Path)
    parser.add_argument("--out", required=True, type=Path)
    return parser


@contextmanager
def alone_on_its_host(
    args: Namespace, environment: Iterable[str], say: Callable[[str], None]
) -> Iterator[None]:
    """Work on no machine but the campaign's, beside no other measurement, only while wanted.

    `environment` names the variables that the configuration gives the engine. Raises
    MeasurementError on another machine, or if others that steer the engine are exported.
    """
    if args.workflow_pid:
        end_with(args.workflow_pid)
    refuse_exported(environment, os.environ.keys() - {SET_BY_SNAKEMAKE})
    refuse_other_host(args.host)
    with alone(say):
        yield


@contextmanager
def log_of_job(path: Path) -> Iterator[Callable[[str], None]]:
    """Give a function that writes lines to a job's log, which a fault is written to as well."""
    with path.open("w", encoding="utf-8") as file:

        def note(line: str) -> None:
            print(line, file=file, flush=True)

        try:
            yield note
        except (SpecmoeError, OSError) as error:
            note(f"{type(error).__name__}: {error}")
            raise
