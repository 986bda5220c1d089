"""Small models that tests of the engine share."""

import os
from dataclasses import replace
from pathlib import Path

import pytest

from specmoe.models.synthetic import write_model

from ..conftest import built_binaries
from ..recipes import SMALL


@pytest.fixture(scope="session")
def march_bin(snakemake, root, _study) -> Path:
    """The binaries of the engine of March 2026, built by the workflow's own rule; minutes, once."""
    built = os.environ.get("SPECMOE_TEST_MARCH_ENGINE")
    if built:
        return Path(built)
    demo = ("--configfile", str(root / "config/demo.yaml"))
    done = snakemake("engine", *demo, "--config", "campaign={engine: march}", folder=root)
    assert done.returncode == 0, done.stdout + done.stderr
    return built_binaries(_study, "march")


@pytest.fixture(scope="session")
def family(tmp_path_factory) -> dict[str, Path]:
    """A draft, and a target of twice its layers that it is nested in."""
    folder = tmp_path_factory.mktemp("family")
    recipes = {"draft": SMALL, "target": replace(SMALL, layers=8)}
    for name, recipe in recipes.items():
        write_model(folder / f"{name}.gguf", recipe)
    return {name: folder / f"{name}.gguf" for name in recipes}


@pytest.fixture(scope="session")
def stranger(tmp_path_factory) -> Path:
    """A model of another vocabulary."""
    path = tmp_path_factory.mktemp("stranger") / "stranger.gguf"
    write_model(path, replace(SMALL, vocabulary=1024))
    return path


@pytest.fixture(scope="session")
def prompt_folder(tmp_path_factory, root) -> Path:
    """The workflow's prompts, small enough for a small context."""
    folder = tmp_path_factory.mktemp("prompts")
    for name in ("code.txt", "passage.txt"):
        text = (root / "resources/prompts" / name).read_text()
        (folder / name).write_text(text[:600])
    return folder
