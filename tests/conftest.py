"""What several kinds of test share: the workflow's folder, its configuration, a built engine."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
import yaml
from pydantic import TypeAdapter

from specmoe.config.backend import Backend
from specmoe.config.schema import Engine
from specmoe.engine.identity import engine_id

ROOT = Path(__file__).resolve().parents[1]
CATALOGS = ["engines", "models", "prompts", "suites", "config"]

# A shell's background jobs ignore Ctrl-C, and so would every process that a test starts and
# interrupts.
signal.signal(signal.SIGINT, signal.default_int_handler)

Snakemake = Callable[..., subprocess.CompletedProcess[str]]


def merge(into: dict[str, Any], overlay: dict[str, Any]) -> dict[str, Any]:
    """Merge mappings key by key, as snakemake merges its config files."""
    for key, value in overlay.items():
        if isinstance(value, dict) and isinstance(into.get(key), dict):
            merge(into[key], value)
        else:
            into[key] = value
    return into


@pytest.fixture(scope="session")
def root() -> Path:
    """The workflow's folder."""
    return ROOT


@pytest.fixture(scope="session")
def _study() -> dict[str, Any]:
    study: dict[str, Any] = {}
    for catalog in CATALOGS:
        merge(study, yaml.safe_load((ROOT / "config" / f"{catalog}.yaml").read_text()))
    return study


@pytest.fixture
def study(_study: dict[str, Any]) -> dict[str, Any]:
    """The default configuration as snakemake would hand it over; the test's to change."""
    return deepcopy(_study)


@pytest.fixture
def demo(study: dict[str, Any]) -> dict[str, Any]:
    """The configuration of the demo."""
    return merge(study, yaml.safe_load((ROOT / "config" / "demo.yaml").read_text()))


@pytest.fixture(scope="session")
def snakemake() -> Snakemake:
    """Run snakemake on the real Snakefile; `folder` is where its results go."""

    def run(*args: str, folder: Path, **options: Any) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [
                *(sys.executable, "-m", "snakemake", "--cores", "2"),
                *("--snakefile", str(ROOT / "Snakefile"), "--directory", str(folder), *args),
            ],
            capture_output=True,
            text=True,
            check=False,
            **options,
        )

    return run


def built_binaries(study: dict[str, Any], name: str) -> Path:
    """Return the folder of the binaries that the workflow builds of an engine of the study."""
    entry = TypeAdapter(Engine).validate_python(study["engines"][name])
    return ROOT / "results/engines" / engine_id(name, Backend.CPU, entry, {}) / "bin"


@pytest.fixture(scope="session")
def engine_bin(snakemake: Snakemake, _study: dict[str, Any]) -> Path:
    """The folder of llama.cpp's binaries, built by the workflow's own rule; minutes, once."""
    built = os.environ.get("SPECMOE_TEST_ENGINE")
    if built:
        return Path(built)
    done = snakemake("engine", "--configfile", str(ROOT / "config/demo.yaml"), folder=ROOT)
    assert done.returncode == 0, done.stdout + done.stderr
    return built_binaries(_study, "current")


@pytest.fixture(scope="session")
def demo_site(snakemake: Snakemake, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder in which the page of the shipped demo campaign is rendered."""
    folder = tmp_path_factory.mktemp("demo_site")
    overlay = str(ROOT / "resources/campaigns/demo/campaign.yaml")
    done = snakemake("site", "--configfile", overlay, folder=folder)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder
