"""Small models, and the job of measuring them, for the tests of the engine."""

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from itertools import count
from pathlib import Path

import pytest
from pydantic import TypeAdapter

from specmoe.config.models import AnyModel, Model
from specmoe.engine.job import Job, server_command
from specmoe.engine.server import Server
from specmoe.models.derived import make_entry
from specmoe.models.gguf import read_info
from specmoe.models.info import save_info

from ..blocks import job_of, measured
from ..conftest import build_engine
from ..recipes import DENSE, MOE, SMALL, write_models

Make = Callable[[str], Path]
"""Gives the file of a model of set `methods` by its id."""


@pytest.fixture(scope="session")
def march_bin(snakemake, _study) -> Path:
    """The binaries of the engine of March 2026."""
    built = os.environ.get("SPECMOE_TEST_MARCH_ENGINE")
    return Path(built) if built else build_engine(snakemake, _study, "march")


@pytest.fixture(scope="session")
def family(tmp_path_factory) -> dict[str, Path]:
    """A draft model, and a dense target and an MoE that begin with its layers and have twice as
    many."""
    return write_models(tmp_path_factory.mktemp("family"), draft=SMALL, target=DENSE, moe=MOE)


@pytest.fixture(scope="session")
def job_in(engine_bin, family, tmp_path_factory, root) -> Callable[[Path], Job]:
    """Give the job of measuring the small family, with its logs in a folder."""
    prompts = tmp_path_factory.mktemp("prompts")
    for name in ("code.txt", "passage.txt"):  # small enough for a small context
        text = (root / "resources/prompts" / name).read_text()
        (prompts / name).write_text(text[:600])
    models = {"target": family["target"], "drafts": {"draft": family["draft"]}}
    given = models | {"binaries": engine_bin}
    return lambda folder: job_of(prompts, server_log=folder / "server.log", **given)


@pytest.fixture
def job(job_in, tmp_path) -> Job:
    """The job of measuring the small family, with its logs in the test's own folder."""
    return job_in(tmp_path)


@pytest.fixture
def do(job):
    """Measure a block of the small family, or of other models; returns its record."""
    return lambda block, **other_models: measured(block, replace(job, **other_models))


@pytest.fixture
def serve(job):
    """Give the server of an arm of a block of the small family, not yet started."""
    return lambda block, arm, **other: replace(job, **other).server(block, arm, job.server_log)


@pytest.fixture(scope="session")
def make(engine_bin, root, _study, tmp_path_factory) -> Make:
    """Give the file of a model of the set; it is made when it is first asked for."""
    folder = tmp_path_factory.mktemp("methods")
    kinds: TypeAdapter[AnyModel] = TypeAdapter(Model)
    entries = {
        name: kinds.validate_python(entry)
        for name, entry in _study["model_sets"]["methods"].items()
    }

    @cache
    def made(name: str) -> Path:
        out, source = folder / f"{name}{entries[name].suffix}", entries[name].made_from
        if source:
            info = made(source).with_suffix(".json")
            save_info(read_info(info.with_suffix(".gguf")), info)
        engine = engine_bin.with_name("engine.json")
        make_entry(entries, name, engine, root, out, folder / f"{name}.log")
        return out

    return made


@pytest.fixture(scope="session")
def start(engine_bin, tmp_path_factory):
    """Give the server of a model, not yet started."""
    folder, numbers = tmp_path_factory.mktemp("servers"), count()

    def server(model: Path, words: Sequence[str] = (), context: int = 256) -> Server:
        program = engine_bin / "llama-server"
        command = server_command(
            program, model, context=context, threads=1, gpu_layers=0, args=words
        )
        return Server(command, folder / f"{next(numbers)}.log", 120)

    return server
