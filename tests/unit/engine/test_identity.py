"""An engine's id: the same for the same engine, another for another, and cheap to ask for."""

import json
import re
import shutil
from pathlib import Path

import pytest

from specmoe.config.backend import Backend
from specmoe.config.load import load
from specmoe.config.schema import GitEngine, PathEngine, PypiEngine
from specmoe.engine import identity as module
from specmoe.engine.identity import engine_id, engine_ids, file_digests, maker_of, without_digits

PYPI = PypiEngine(
    source="pypi",
    version="0.0.1",
    sha256="0" * 64,
    commit="0123456",
    cmake={"GGML_NATIVE": "ON", "LLAMA_CURL": "OFF"},
)
GIT = GitEngine(source="git", url="https://example.org/llama", tag="b1", commit="0123456")
HERE = PathEngine(source="path", path="/here")


def of(entry, files=None, backend=Backend.CPU) -> str:
    return engine_id("mine", backend, entry, files or {})


@pytest.fixture
def binaries(tmp_path) -> Path:
    """A folder with what stands for an engine."""
    return planted(tmp_path / "binaries", "one")


def planted(folder: Path, content: str) -> Path:
    folder.mkdir()
    for name in ("llama-server", "llama-quantize", "llama-bench"):
        (folder / name).write_text(f"{name} {content}")
    return folder


@pytest.fixture
def memory(tmp_path) -> Path:
    return tmp_path / "results/engines/digests.json"


@pytest.fixture
def hashed(monkeypatch) -> list[str]:
    """The names of the files hashed since the test began."""
    names: list[str] = []
    sha256_of = module.sha256_of
    monkeypatch.setattr(
        module, "sha256_of", lambda path: names.append(path.name) or sha256_of(path)
    )
    return names


def test_an_id_is_name_backend_and_eight_digits():
    assert re.fullmatch(r"mine-cpu-[0-9a-f]{8}", of(PYPI))
    assert re.fullmatch(r"mine-cuda-[0-9a-f]{8}", of(PYPI, backend=Backend.CUDA))


@pytest.mark.parametrize(
    "change",
    [
        {"version": "0.0.2"},
        {"sha256": "1" * 64},
        {"commit": "0123457"},
        {"cmake": {"GGML_NATIVE": "OFF", "LLAMA_CURL": "OFF"}},
        {"fallbacks": [{"GGML_NATIVE": "OFF"}]},
    ],
)
def test_what_decides_what_is_built_makes_another_id(change):
    assert of(PYPI.model_copy(update=change)) != of(PYPI)


def test_another_tag_makes_another_id():
    assert of(GIT.model_copy(update={"tag": "b2"})) != of(GIT)


def test_the_order_of_flags_and_what_is_default_make_no_other_id():
    turned = {"LLAMA_CURL": "OFF", "GGML_NATIVE": "ON"}
    assert of(PYPI.model_copy(update={"cmake": turned, "fallbacks": []})) == of(PYPI)


def test_the_converter_makes_no_other_engine():
    with_converter = HERE.model_copy(update={"converter": "/source"})
    assert of(with_converter) == of(HERE)


def test_of_an_engine_built_elsewhere_the_files_count_and_not_their_folder():
    there = HERE.model_copy(update={"path": "/there"})
    assert of(HERE, {"llama-server": "a"}) == of(there, {"llama-server": "a"})
    assert of(HERE, {"llama-server": "a"}) != of(HERE, {"llama-server": "b"})
    assert of(HERE, {"llama-server": "a"}) != of(HERE, {"llama-server": "a", "libllama.so": "b"})


def test_of_files_that_nobody_has_seen_the_folder_counts():
    assert of(HERE) != of(HERE.model_copy(update={"path": "/there"}))


def test_in_a_table_an_id_is_name_and_backend():
    assert without_digits(of(PYPI)) == "mine-cpu"
    assert without_digits("current-cpu") == "current-cpu"  # of campaigns measured before


def test_files_are_hashed_once(binaries, memory, hashed):
    first = file_digests(binaries, memory)
    assert set(first) == {"llama-server", "llama-quantize", "llama-bench"}
    assert len(hashed) == 3
    assert file_digests(binaries, memory) == first
    assert len(hashed) == 3


def test_a_file_that_changed_is_hashed_again_and_no_other(binaries, memory, hashed):
    first = file_digests(binaries, memory)
    (binaries / "llama-server").write_text("rebuilt, and longer")
    hashed.clear()
    second = file_digests(binaries, memory)
    assert hashed == ["llama-server"]
    assert {name for name in first if first[name] != second[name]} == {"llama-server"}


def test_libraries_beside_the_programs_count_and_their_other_names_do_not(binaries, memory):
    (binaries / "libllama.so.0.1").write_text("library")
    (binaries / "libllama.so").symlink_to("libllama.so.0.1")
    (binaries / "notes.txt").write_text("nothing of the engine")
    found = file_digests(binaries, memory)
    assert found.keys() - {"llama-server", "llama-quantize", "llama-bench"} == {"libllama.so.0.1"}


def test_a_folder_that_is_gone_has_what_was_seen_there_last(binaries, memory):
    seen = file_digests(binaries, memory)
    shutil.rmtree(binaries)
    assert file_digests(binaries, memory) == seen


def test_a_folder_that_never_was_has_nothing_and_leaves_nothing(tmp_path, memory):
    assert file_digests(tmp_path / "none", memory) == {}
    assert not memory.exists()


@pytest.mark.parametrize("text", ["", "{", "[]", '{"/x": {"llama-server": [1]}}'])
def test_a_damaged_memory_is_written_anew(binaries, memory, text):
    memory.parent.mkdir(parents=True)
    memory.write_text(text)
    digests = file_digests(binaries, memory)
    assert len(digests) == 3
    assert json.loads(memory.read_text())[str(binaries)].keys() == digests.keys()


def test_two_folders_are_remembered_side_by_side(binaries, memory, hashed, tmp_path):
    other = planted(tmp_path / "other", "two")
    assert file_digests(binaries, memory) != file_digests(other, memory)
    hashed.clear()
    file_digests(binaries, memory)
    file_digests(other, memory)
    assert hashed == []


@pytest.fixture
def ids(study, root, memory):
    """Return the ids of the engines of the study with another configuration over it."""

    def run(path: Path, source: str = "measured") -> dict[str, str]:
        study["engines"]["mine"] = {"source": "path", "path": str(path)}
        study["campaign"] |= {"engine": "mine", "source": source}
        return engine_ids(load(study, root), Backend.CPU, memory)

    return run


def test_one_name_and_two_folders_are_two_engines(ids, binaries, tmp_path):
    other = planted(tmp_path / "other", "two")
    assert ids(binaries) != ids(other)


def test_the_same_binaries_in_two_folders_are_one_engine(ids, binaries, tmp_path):
    shutil.copytree(binaries, tmp_path / "copy")
    assert ids(binaries) == ids(tmp_path / "copy")


@pytest.mark.parametrize("source", ["cached", "published"])
def test_for_a_campaign_that_others_measured_no_file_is_looked_at(
    ids, binaries, memory, hashed, source
):
    assert ids(binaries, source)
    assert hashed == []
    assert not memory.exists()


def test_a_suite_with_an_engine_of_its_own_has_that_engines_id(study, root, memory):
    study["suites"]["P"] |= {"engine": "march", "protocol": "published", "prompts": []}
    study["suites"]["P"]["prompt_lengths"] = [128]
    study["campaign"] |= {"suites": ["P"]}
    found = engine_ids(load(study, root), Backend.CPU, memory)
    assert list(found) == ["current", "march"]
    assert found["march"].startswith("march-cpu-")


@pytest.fixture
def engines(tmp_path) -> Path:
    """A folder with one engine, `there`."""
    (tmp_path / "engines/there").mkdir(parents=True)
    (tmp_path / "engines/there/engine.json").write_text("{}")
    return tmp_path / "engines"


@pytest.mark.parametrize(
    ("card", "maker"),
    [
        ('{"id": "there"}', "there"),
        ('{"id": "gone"}', "own"),
        (None, "own"),
        ("{", "own"),
        ("[]", "own"),
        ("{}", "own"),
    ],
)
def test_a_model_keeps_the_engine_that_made_it_while_that_is_there(engines, tmp_path, card, maker):
    if card is not None:
        (tmp_path / "card.json").write_text(card)
    assert maker_of(tmp_path / "card.json", engines, "own") == maker
