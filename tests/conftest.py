"""Fixtures of all tests: the workflow's folder, its configuration, a built engine."""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable
from copy import deepcopy
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml
from filelock import FileLock
from hypothesis import settings
from pydantic import TypeAdapter
from snakemake.utils import update_config

from specmoe.config.backend import Backend
from specmoe.config.engines import Engine
from specmoe.engine.identity import engine_id
from specmoe.engine.pass_bench import PROGRAM, build_pass_bench

from .small_campaign import run_campaign, tiny_campaign

ROOT = Path(__file__).resolve().parents[1]
CATALOGS = ["engines", "models", "prompts", "suites", "config"]

# A shell's background jobs ignore Ctrl-C, and the processes that a test starts would inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)

# Test processes that run side by side measure side by side: each has its own lock.
if "PYTEST_XDIST_WORKER" in os.environ:
    OWN_TMPDIR = tempfile.TemporaryDirectory(prefix="specmoe-tests-")
    os.environ["TMPDIR"] = OWN_TMPDIR.name
    os.environ["SPECMOE_TESTS_LOCK_FOLDER"] = OWN_TMPDIR.name

# No test relies on a time.
settings.register_profile("specmoe", settings(), deadline=None)
settings.load_profile("specmoe")

Snakemake = Callable[..., str]


def merge(into: dict[str, Any], overlay: dict[str, Any]) -> dict[str, Any]:
    """Merge mappings key by key, as snakemake merges its config files."""
    update_config(into, overlay)
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
    """The default configuration as snakemake passes it; a test may change it."""
    return deepcopy(_study)


@pytest.fixture
def demo(study: dict[str, Any]) -> dict[str, Any]:
    """The configuration of the demo."""
    return merge(study, yaml.safe_load((ROOT / "config" / "demo.yaml").read_text()))


@pytest.fixture(scope="session")
def snakemake() -> Snakemake:
    """Run snakemake on the real Snakefile, with results in `folder`; return what it prints."""

    def run(*args: str, folder: Path, fails: bool = False, **options: Any) -> str:
        command = [sys.executable, "-m", "snakemake", "--cores", "2"]
        command += ["--snakefile", str(ROOT / "Snakefile"), "--directory", str(folder), *args]
        done = subprocess.run(command, capture_output=True, text=True, check=False, **options)
        assert (done.returncode != 0) == fails, done.stdout + done.stderr
        return done.stdout + done.stderr

    return run


def build_engine(snakemake: Snakemake, study: dict[str, Any], name: str) -> Path:
    """Return the folder of an engine's binaries, built by the workflow's own rule: minutes, once.

    Test processes that run side by side share the build: the later one waits.
    """
    quick = {"CMAKE_PROJECT_llama.cpp_INCLUDE": str(ROOT / "tests/quick_build.cmake")}
    overlay = {"campaign": {"engine": name}, "engines": {name: {"cmake": quick}}}
    (ROOT / "results").mkdir(exist_ok=True)
    with FileLock(ROOT / "results/test_engines.lock"):
        path = ROOT / "results/test_engine.yaml"
        path.write_text(yaml.safe_dump(overlay))
        configs = [ROOT / "config/demo.yaml", path]
        snakemake("engine", "--configfile", *map(str, configs), folder=ROOT)
    merged = merge(deepcopy(study), overlay)
    entry = TypeAdapter(Engine).validate_python(merged["engines"][name])
    return ROOT / "results/engines" / engine_id(name, Backend.CPU, entry, {}) / "bin"


@pytest.fixture(scope="session")
def engine_bin(snakemake: Snakemake, _study: dict[str, Any]) -> Path:
    """The folder of llama.cpp's binaries."""
    built = os.environ.get("SPECMOE_TEST_ENGINE")
    return Path(built) if built else build_engine(snakemake, _study, "current")


@pytest.fixture(scope="session")
def pass_bench(engine_bin: Path) -> Path:
    """The program that times passes, compiled against the engine's libraries."""
    with FileLock(ROOT / "results/test_engines.lock"), tempfile.TemporaryFile() as output:
        build_pass_bench(engine_bin.parent, output.fileno())
    return engine_bin.parent / PROGRAM


@pytest.fixture(scope="session")
def demo_site(snakemake: Snakemake, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with the rendered page of the shipped demo campaign."""
    folder = tmp_path_factory.mktemp("demo_site")
    overlay = str(ROOT / "resources/campaigns/demo/campaign.yaml")
    snakemake("site", "--configfile", overlay, folder=folder)
    return folder


@pytest.fixture
def tiny(engine_bin: Path) -> dict[str, Any]:
    """The small campaign's configuration, which a test may change."""
    return tiny_campaign(engine_bin)


@pytest.fixture
def campaign(snakemake, tmp_path):
    """Run snakemake on a configuration, in the test's own folder."""
    return partial(run_campaign, snakemake, tmp_path)


@pytest.fixture(scope="session")
def _finished(snakemake, engine_bin, tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("finished")
    run_campaign(snakemake, folder, tiny_campaign(engine_bin), "paper")
    return folder


@pytest.fixture
def measured(_finished, tmp_path) -> Path:
    """The small campaign, finished, in the test's own folder."""
    shutil.copytree(_finished, tmp_path, dirs_exist_ok=True, symlinks=True)
    return tmp_path
