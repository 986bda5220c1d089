"""An engine's id: equal for equal engines, different for different ones, and cheap."""

import json
import re
import shutil
from pathlib import Path

import pytest

from specmoe import files as module
from specmoe.config.engines import Backend, PathEngine, PypiEngine
from specmoe.config.load import load
from specmoe.engine import build
from specmoe.engine.build import make_engine
from specmoe.engine.identity import digests_of_engine, engine_id, engine_ids, install
from specmoe.files import sha256_of

PYPI = PypiEngine(
    source="pypi",
    version="0.0.1",
    sha256="0" * 64,
    commit="0123456",
    cmake={"GGML_NATIVE": "ON", "LLAMA_CURL": "OFF"},
)
HERE = PathEngine(source="path", path="/here")
NAME, ALIAS = "libmade.so.0.1", "libmade.so.0"
PROGRAMS = ("llama-server", "llama-quantize", "llama-bench")


def of(entry, files=None) -> str:
    return engine_id("mine", Backend.CPU, entry, files or {})


@pytest.fixture
def binaries(tmp_path) -> Path:
    """A folder with stand-ins for the programs of an engine, and a library with two names."""
    folder = tmp_path / "binaries"
    folder.mkdir()
    for name in PROGRAMS:
        (folder / name).write_text(f"{name} one")
    (folder / NAME).write_text("library")
    (folder / ALIAS).symlink_to(NAME)
    return folder


@pytest.fixture
def memory(tmp_path) -> Path:
    return tmp_path / "results/engines/seen"


@pytest.fixture
def hashed(monkeypatch) -> list[str]:
    """The names of the files hashed since the test began."""
    names: list[str] = []
    sha256_of = module.sha256_of
    monkeypatch.setattr(
        module, "sha256_of", lambda path: names.append(path.name) or sha256_of(path)
    )
    return names


@pytest.mark.parametrize(
    ("entry", "change"),
    [
        (PYPI, {"version": "0.0.2"}),
        (PYPI, {"sha256": "1" * 64}),
        (PYPI, {"commit": "0123457"}),
        (PYPI, {"cmake": {"GGML_NATIVE": "OFF", "LLAMA_CURL": "OFF"}}),
        (HERE, {"path": "/there"}),  # while its files are unknown
    ],
)
def test_a_change_of_the_build_makes_another_id(entry, change):
    assert of(entry.model_copy(update=change)) != of(entry)
    assert re.fullmatch(r"mine-cpu-[0-9a-f]{8}", of(entry))


def test_the_id_of_an_engine_built_elsewhere_depends_on_its_files_only():
    there = HERE.model_copy(update={"path": "/there"})
    assert of(HERE, {"llama-server": "a"}) == of(there, {"llama-server": "a"})
    assert of(HERE, {"llama-server": "a"}) != of(HERE, {"llama-server": "b"})


def test_a_file_is_hashed_again_only_if_it_changed(binaries, memory, hashed):
    entry = PathEngine(source="path", path=str(binaries))
    first = digests_of_engine(entry, memory)
    assert set(first) == set(hashed) == {*PROGRAMS, NAME}  # and no other name of a library
    hashed.clear()
    assert digests_of_engine(entry, memory) == first
    assert hashed == []
    (binaries / "notes.txt").write_text("nothing of the engine")
    (binaries / "llama-lookup-create").write_text("makes files of n-grams")
    (binaries / "llama-server").write_text("rebuilt, and longer")
    second = digests_of_engine(entry, memory)
    assert hashed == ["llama-server"]
    assert {name for name in first if first[name] != second[name]} == {"llama-server"}


def test_a_missing_folder_has_its_last_known_digests_and_an_unknown_one_has_none(binaries, memory):
    binaries = binaries.rename(binaries.with_name("bin"))  # in the folder that is given
    entry = PathEngine(source="path", path=str(binaries.parent))
    assert digests_of_engine(HERE, memory) == {}
    assert not memory.exists()
    seen = digests_of_engine(entry, memory)
    shutil.rmtree(binaries)
    assert digests_of_engine(entry, memory) == seen != {}


def test_a_campaign_measured_elsewhere_reads_no_engine_files(study, root, binaries, memory, hashed):
    study["engines"]["mine"] = {"source": "path", "path": str(binaries)}
    study["campaign"] |= {"engine": "mine", "source": "shipped"}
    assert engine_ids(load(study, root), Backend.CPU, memory)
    assert hashed == []
    assert not memory.exists()


def test_what_is_installed_needs_nothing_of_the_folder_it_came_from(binaries, memory, tmp_path):
    out, lib = tmp_path / "engine/bin", tmp_path / "lib"  # beside that of others, as in /usr/lib
    out.mkdir(parents=True)
    (out / "libgone.so").touch()  # of an earlier build
    lib.mkdir()
    for name in ("libllama.so", "libz.so"):
        (lib / name).write_text(name)
    (binaries / "llama-bench").rename(tmp_path / "elsewhere")
    (binaries / "llama-bench").symlink_to(tmp_path / "elsewhere")
    install(binaries, out)
    assert not (out / "llama-bench").is_symlink()
    shutil.rmtree(binaries)
    for program in PROGRAMS:
        assert (out / program).read_text() == f"{program} one"
    assert (out / ALIAS).readlink() == Path(NAME)
    assert {file.name for file in out.iterdir()} == {*PROGRAMS, NAME, ALIAS}
    assert [file.name for file in (out / "../lib").iterdir()] == ["libllama.so"]
    entry = PathEngine(source="path", path=str(out))
    assert {*digests_of_engine(entry, memory)} == {*PROGRAMS, NAME, "libllama.so"}


def test_the_info_of_an_engine_has_the_digests_of_its_libraries(binaries, tmp_path, monkeypatch):
    monkeypatch.setattr(build, "self_test", lambda *args: None)
    entry = PathEngine(source="path", path=str(binaries))
    folder = tmp_path / "engine"
    folder.mkdir()
    make_engine(entry, Backend.CPU, folder, tmp_path / "log", {})
    digests = json.loads((folder / "engine.json").read_text())["binaries_sha256"]
    # An engine may lack llama-speculative, which only protocol `study` needs.
    assert digests == {name: sha256_of(binaries / name) for name in (*PROGRAMS, NAME)}
