"""Fetching and building llama.cpp: what goes wrong is named, with the way out."""

import os
import subprocess
from pathlib import Path

import pytest

from specmoe.config.backend import Backend, detect_backend
from specmoe.config.schema import GitEngine, PathEngine, PypiEngine
from specmoe.engine import binaries, build
from specmoe.engine.build import make_engine, share_done
from specmoe.errors import EngineError

PYPI = PypiEngine(
    source="pypi",
    version="0.0.1",
    sha256="0" * 64,
    commit="0123456",
    cmake={"GGML_NATIVE": "ON"},
    fallbacks=[{"GGML_NATIVE": "OFF"}],
)


@pytest.fixture
def make(tmp_path):
    """Make an engine in a folder of the test's own; returns what was said."""

    def run(entry) -> list[str]:
        said: list[str] = []
        folder = tmp_path / "engine"
        folder.mkdir(exist_ok=True)
        make_engine(entry, "e-cpu", Backend.CPU, folder, tmp_path / "log", said.append)
        return said

    return run


def test_without_a_compiler_it_says_what_to_install_where(make, monkeypatch, tmp_path):
    monkeypatch.delenv("CXX", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(EngineError, match=r"no C\+\+ compiler.*xcode-select.*build-essential"):
        make(PYPI)


def test_without_cmake_it_says_what_to_install(make, monkeypatch, tmp_path):
    compiler = tmp_path / "c++"
    compiler.write_text("#!/bin/sh\n")
    compiler.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(EngineError, match="no CMake found; install it with `pip install cmake`"):
        make(PYPI)


def test_a_folder_without_binaries_is_named(make, tmp_path):
    with pytest.raises(EngineError, match=rf"no llama-server in {tmp_path}"):
        make(PathEngine(source="path", path=str(tmp_path)))


def test_binaries_without_the_tool_of_protocol_published_are_an_engine_all_the_same(
    make, monkeypatch, tmp_path
):
    monkeypatch.setattr(build, "self_test", lambda *args: None)
    for name in binaries.BINARIES:
        (tmp_path / name).write_text("binary")
    make(PathEngine(source="path", path=str(tmp_path)))
    assert "llama-server" in (tmp_path / "engine/engine.json").read_text()
    assert not (tmp_path / "engine/bin/llama-speculative").exists()


@pytest.fixture
def repository(tmp_path) -> Path:
    """A git repository with one commit and a tag."""
    folder = tmp_path / "repository"
    folder.mkdir()
    (folder / "CMakeLists.txt").write_text("cmake_minimum_required(VERSION 3.14)\nproject(none)\n")
    identity = {
        f"GIT_{who}_{what}": "x" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")
    }
    for command in (["init", "-q"], ["add", "."], ["commit", "-qm", "one"], ["tag", "b1"]):
        subprocess.run(["git", *command], cwd=folder, check=True, env=os.environ | identity)
    return folder


def test_a_tag_that_is_another_commit_is_refused(make, repository):
    entry = GitEngine(source="git", url=str(repository), tag="b1", commit="0000000")
    with pytest.raises(EngineError, match=r"tag b1 of .* is commit [0-9a-f]{40}, .* says 0000000"):
        make(entry)


def test_a_tag_that_is_not_there_is_named(make, repository):
    entry = GitEngine(source="git", url=str(repository), tag="b2", commit="0000000")
    with pytest.raises(EngineError, match=r"could not be cloned: git ended with code \d+"):
        make(entry)


def test_sources_that_do_not_compile_end_in_one_line(make, repository):
    head = subprocess.run(
        ["git", "rev-parse", "HEAD"], cwd=repository, capture_output=True, text=True, check=True
    ).stdout.strip()
    entry = GitEngine(source="git", url=str(repository), tag="b1", commit=head)
    with pytest.raises(
        EngineError, match=r"llama\.cpp could not be compiled: cmake ended with code"
    ):
        make(entry)


@pytest.fixture
def unreachable_tools(monkeypatch):
    """Stand in for fetching and compiling; an instruction that traps cannot be had on demand."""
    built: list[dict[str, str]] = []
    monkeypatch.setattr(build, "_fetch", lambda *args: Path())
    monkeypatch.setattr(build, "_compile", lambda source, build, flags, *rest: built.append(flags))
    monkeypatch.setattr(build, "install", lambda *args: None)
    monkeypatch.setattr(build, "_compiler", lambda build: "c++")
    monkeypatch.setattr(build, "sha256_of", lambda path: "0" * 64)
    return built


def test_an_engine_that_fails_its_self_test_is_built_again_with_the_fallback(
    make, unreachable_tools, monkeypatch, tmp_path
):
    def self_test(*args):
        if unreachable_tools[-1]["GGML_NATIVE"] == "ON":
            raise EngineError("killed by SIGSEGV")

    monkeypatch.setattr(build, "self_test", self_test)
    said = make(PYPI)
    assert [flags["GGML_NATIVE"] for flags in unreachable_tools] == ["ON", "OFF"]
    assert any("self-test failed" in line for line in said)
    assert '"GGML_NATIVE": "OFF"' in (tmp_path / "engine/engine.json").read_text()


def test_an_engine_that_never_passes_its_self_test_is_no_engine(
    make, unreachable_tools, monkeypatch, tmp_path
):
    def self_test(*args):
        raise EngineError("killed by SIGSEGV")

    monkeypatch.setattr(build, "self_test", self_test)
    with pytest.raises(EngineError, match=r"no build passes the self-test, 2 tried.*SIGSEGV"):
        make(PYPI)
    assert not (tmp_path / "engine/engine.json").exists()


@pytest.mark.parametrize(
    ("line", "share"),
    [("[54/216] Building", 0.25), ("[ 12%] Building", 0.12), ("-- The C compiler", None)],
)
def test_progress_is_read_from_ninja_and_make(line, share):
    assert share_done(line) == share


def test_a_backend_asked_for_is_not_second_guessed():
    assert detect_backend(Backend.METAL) == Backend.METAL


def test_on_linux_auto_is_cuda_with_compiler_and_driver_and_else_the_cpu(monkeypatch, tmp_path):
    monkeypatch.setattr("platform.system", lambda: "Linux")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert detect_backend(Backend.AUTO) == Backend.CPU
    for tool in ("nvcc", "nvidia-smi"):
        (tmp_path / tool).write_text("")
        (tmp_path / tool).chmod(0o755)
    assert detect_backend(Backend.AUTO) == Backend.CUDA


def test_on_apple_silicon_auto_is_metal(monkeypatch):
    monkeypatch.setattr("platform.system", lambda: "Darwin")
    monkeypatch.setattr("platform.machine", lambda: "arm64")
    assert detect_backend(Backend.AUTO) == Backend.METAL
