"""Fixtures of all tests: the workflow's folder, its configuration, a built engine."""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
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

from specmoe.campaign.gate import LoadedCampaign, load_campaign
from specmoe.config.engines import PROGRAM, Backend, Engine
from specmoe.config.load import merge_catalogs
from specmoe.engine.build import build_program
from specmoe.engine.identity import engine_id
from specmoe.paper.pdf import INSTALL_TEX, missing_tex

from .small_campaign import run_campaign, tiny_campaign

ROOT = Path(__file__).resolve().parents[1]

# A shell's background jobs ignore Ctrl-C, and the processes that a test starts would inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)

# Tools that come as packages, like cmake, are beside the interpreter; rules find them there too.
os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"

# Test processes that run side by side measure side by side: each has its own lock.
if "PYTEST_XDIST_WORKER" in os.environ:
    OWN_TMPDIR = tempfile.TemporaryDirectory(prefix="specmoe-tests-")
    os.environ["TMPDIR"] = OWN_TMPDIR.name
    os.environ["SPECMOE_TESTS_LOCK_FOLDER"] = OWN_TMPDIR.name

# No test relies on a time.
settings.register_profile("specmoe", settings(), deadline=None)
settings.load_profile("specmoe")

CSV = ROOT.parent / "shared/reference/published/runs.csv"
needs_csv = pytest.mark.skipif(
    not CSV.exists(),
    reason="the authors' runs.csv is theirs, not in this repository, and not at"
    " ../shared/reference/published/runs.csv",
)
needs_tex = pytest.mark.skipif(
    bool(missing_tex()) and not os.environ.get("CI"), reason=f"needs TeX: {INSTALL_TEX}"
)

Snakemake = Callable[..., str]
Once = Callable[[str, Callable[[Path], str]], Path]
"""Gives the folder of a name; a function fills it, the first time, and returns what it printed."""
PRINTED = "printed.txt"


def merge(into: dict[str, Any], overlay: dict[str, Any]) -> dict[str, Any]:
    """Merge mappings key by key, as snakemake merges its config files."""
    update_config(into, overlay)
    return into


def verb(*words: object) -> list[str]:
    """Return the command line of one of the package's verbs."""
    return [sys.executable, str(ROOT / "workflow/scripts/specmoe"), *map(str, words)]


def linked(file: str | Path, to: str | Path) -> None:
    """Give a file a second name, or copy it where the file system has no such thing."""
    try:
        os.link(file, to)
    except OSError:
        shutil.copy2(file, to)


def copied(folder: Path, to: Path) -> Path:
    """Copy a folder whose files snakemake made, with their times.

    Models and engines, which are most of its 75 MB, are linked: no test writes into one.
    """

    def copy(file: str, to: str) -> None:
        large = file.endswith(".gguf") or Path(file).parent.name == "bin"
        (linked if large else shutil.copy2)(file, to)

    return shutil.copytree(folder, to, dirs_exist_ok=True, symlinks=True, copy_function=copy)


def listed(*words: str) -> list[str]:
    """Return the files of the checkout that git lists."""
    return subprocess.check_output(["git", "ls-files", *words], cwd=ROOT, text=True).splitlines()


def shipped(name: str, folder: Path) -> LoadedCampaign:
    """Return a shipped campaign, whose results are to be below a folder."""
    overlay = yaml.safe_load((ROOT / f"resources/campaigns/{name}/campaign.yaml").read_text())
    return load_campaign(merge_catalogs(ROOT, overlay), ROOT, folder)


def copied_workflow(to: Path) -> Path:
    """Copy the workflow, but not what was made in its folder, such as the demo's paper."""
    for name in listed("--cached", "--others", "--exclude-standard", ":!tests"):
        (to / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, to / name)
    return to


@pytest.fixture(scope="session")
def root() -> Path:
    """The workflow's folder."""
    return ROOT


@pytest.fixture(scope="session")
def _study() -> dict[str, Any]:
    return dict(merge_catalogs(ROOT, {}))


@pytest.fixture
def study(_study: dict[str, Any]) -> dict[str, Any]:
    """The default configuration as snakemake passes it; a test may change it."""
    return deepcopy(_study)


@pytest.fixture
def synthetic(study: dict[str, Any]) -> dict[str, Any]:
    """The configuration of the synthetic campaign."""
    return merge(study, yaml.safe_load((ROOT / "config" / "synthetic.yaml").read_text()))


@pytest.fixture
def campaign_of(tmp_path):
    """Load the campaign of a configuration for a CPU, with results in the test's own folder."""

    def load(data, **campaign):
        data["campaign"] |= {"backend": "cpu"} | campaign
        return load_campaign(data, ROOT, tmp_path)

    return load


@pytest.fixture(scope="session")
def snakemake() -> Snakemake:
    """Run snakemake on the real Snakefile, with results in `folder`; return what it prints.

    It may be `under` another command.
    """

    def run(*args: str, folder: Path, fails: bool = False, under: Any = (), **options: Any) -> str:
        command = [*under, sys.executable, "-m", "snakemake", "--cores", "2"]
        command += ["--snakefile", str(ROOT / "Snakefile"), "--directory", str(folder), *args]
        done = subprocess.run(command, capture_output=True, text=True, check=False, **options)
        assert (done.returncode != 0) == fails, done.stdout + done.stderr
        return done.stdout + done.stderr

    return run


def build_engine(snakemake: Snakemake, study: dict[str, Any], name: str) -> Path:
    """Return the folder of an engine's binaries, built by the workflow's own rule: minutes, once.

    It is the engine that users build. Test processes that run side by side share the build: the
    later one waits.
    """
    (ROOT / "results").mkdir(exist_ok=True)
    with FileLock(ROOT / "results/test_engines.lock"):
        path = ROOT / "results/test_engine.yaml"
        path.write_text(yaml.safe_dump({"campaign": {"engine": name}}))
        configs = [ROOT / "config/synthetic.yaml", path]
        snakemake("engine", "--configfile", *map(str, configs), folder=ROOT)
    entry = TypeAdapter(Engine).validate_python(study["engines"][name])
    return ROOT / "results/engines" / engine_id(name, Backend.CPU, entry, {}) / "bin"


@pytest.fixture(scope="session")
def engine_bin(snakemake: Snakemake, _study: dict[str, Any]) -> Path:
    """The folder of llama.cpp's binaries."""
    built = os.environ.get("SPECMOE_TEST_ENGINE")
    return Path(built) if built else build_engine(snakemake, _study, "current")


@pytest.fixture(scope="module")
def module_folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder for what the tests of a module share; it goes with them, as models are large."""
    folder = tmp_path_factory.mktemp("module")
    yield folder
    shutil.rmtree(folder)


@pytest.fixture(scope="session")
def once(tmp_path_factory: pytest.TempPathFactory) -> Once:
    """Give a folder that is made once for all test processes; later ones wait, and only read it."""
    # As deep as the folders of tests: the workflow's own files are relative inputs, and a campaign
    # that is copied to another depth would be made again.
    shared = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        shared = shared.parent / "once"

    def made(name: str, make: Callable[[Path], str]) -> Path:
        folder = shared / name
        folder.mkdir(parents=True, exist_ok=True)
        with FileLock(folder.with_suffix(".lock")):
            if not (folder / PRINTED).exists():
                (folder / PRINTED).write_text(make(folder))
        return folder

    return made


@pytest.fixture(scope="session")
def model_passes(engine_bin: Path, once: Once) -> Path:
    """Our program, compiled against the engine's libraries."""

    def build(folder: Path) -> str:
        build_program(engine_bin.with_name("engine.json"), folder / "log")
        return ""

    # A later process must not write the file that another one runs.
    once("model_passes", build)
    return engine_bin.parent / PROGRAM


@pytest.fixture(scope="session")
def demo(snakemake: Snakemake, once: Once) -> Path:
    """A folder with the paper and the page of the shipped demo; a test may only read it."""
    asked = ("paper", "page", "--configfile", str(ROOT / "resources/campaigns/demo/campaign.yaml"))
    return once("demo", lambda folder: snakemake(*asked, folder=folder))


@pytest.fixture(scope="session")
def atlas_page(snakemake: Snakemake, once: Once) -> Path:
    """The atlas, as the workflow writes it."""
    folder = once("atlas", lambda folder: snakemake("atlas", folder=folder))
    return folder / "results/atlas/index.html"


@pytest.fixture
def tiny(engine_bin: Path) -> dict[str, Any]:
    """The small campaign's configuration, which a test may change."""
    return tiny_campaign(engine_bin)


@pytest.fixture
def campaign(snakemake, tmp_path):
    """Run snakemake on a configuration, in the test's own folder."""
    return partial(run_campaign, snakemake, tmp_path)


@pytest.fixture(scope="session")
def finished(snakemake, engine_bin, once) -> Path:
    """The small campaign, finished but for its PDFs; a test may only read it."""
    config, asked = tiny_campaign(engine_bin), ("tables", "paper/figures")
    return once("finished", lambda folder: run_campaign(snakemake, folder, config, *asked))


@pytest.fixture
def measured(finished, tmp_path) -> Path:
    """The small campaign, finished, in the test's own folder."""
    return copied(finished, tmp_path)
