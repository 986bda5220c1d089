"""Fetching and building llama.cpp: a fault is named, with its remedy."""

import json
import re
import shutil
import subprocess
import tarfile
from pathlib import Path

import pytest

from specmoe.config.engines import Backend
from specmoe.engine import build
from specmoe.engine.build import build_program, compile_llama, fetch, make_engine, require_build
from specmoe.engine.identity import BINARIES
from specmoe.errors import EngineError
from specmoe.files import sha256_of

from .test_identity import PYPI

LLAMA = Path(__file__).with_name("llama.cmake")
SAMPLING = "const char *file() { return __FILE__; } int main() { return !file(); }"


@pytest.fixture
def compiled(tmp_path):
    """Compile three sources with the recipe; return the command of each file, and the log."""

    def run(engine: str = "engine", **sources: str) -> tuple[dict[str, str], str]:
        work, log = tmp_path / engine / "work", tmp_path / "log"
        folder = work / "source-0123456"
        folder.mkdir(parents=True)
        shutil.copy(LLAMA, folder / "CMakeLists.txt")
        for name, default in (("chat_a", ""), ("chat_b", ""), ("sampling", SAMPLING)):
            (folder / f"{name.replace('_', '-')}.cpp").write_text(sources.get(name, default))
        flags = {"CMAKE_BUILD_TYPE": "Release", "BUILD_SHARED_LIBS": "ON"}
        flags |= {"CMAKE_EXPORT_COMPILE_COMMANDS": "ON", "PROGRAMS": ";".join(BINARIES)}
        compile_llama(folder, work / "build", Backend.CPU, flags, log)
        engine_json = work.parent / "engine.json"
        engine_json.write_text(json.dumps({"commit": "0123456", "flags": flags}))
        commands = json.loads((work / "build/compile_commands.json").read_text())
        return {Path(one["file"]).name: one["command"] for one in commands}, log.read_text()

    return run


def test_only_sources_that_the_recipe_names_are_merged_and_hardly_optimized(compiled):
    commands, log = compiled(
        chat_a="static int a() { return 0; }", chat_b="int b() { return a(); }"
    )
    assert commands.keys() == {"llama-common-chat.cpp", "sampling.cpp"}
    optimized = {file: re.findall(r" -O\d", words)[-1] for file, words in commands.items()}
    assert optimized == {"llama-common-chat.cpp": " -O1", "sampling.cpp": " -O3"}
    assert "$ cmake --build" in log


def test_sources_that_cannot_be_merged_are_compiled_one_by_one(compiled, caplog):
    caplog.set_level("INFO")
    same = "static int a() { return 0; }"
    commands, _ = compiled(chat_a=same, chat_b=same)
    assert commands.keys() == {"chat-a.cpp", "chat-b.cpp", "sampling.cpp"}
    assert "does not compile with merged sources" in caplog.text


def test_an_engine_is_the_same_whatever_the_folder(compiled, tmp_path):
    engines = "engine", "an engine $(touch pwned) elsewhere"
    for engine in engines:
        compiled(engine)
    first, second = (
        {file.name: sha256_of(file) for file in (tmp_path / engine / "work/build/bin").iterdir()}
        for engine in engines
    )
    assert len(first) == len(BINARIES) + 1 and first == second
    assert not [*tmp_path.rglob("pwned")]


def test_our_program_is_built_in_a_moved_folder_and_not_without_sources(
    compiled, tmp_path, monkeypatch
):
    compiled()
    program = "const char *file(); int main() { return !file(); }"
    (tmp_path / "model_passes.cpp").write_text(program)
    monkeypatch.setattr(build, "_STEP", shutil.copy(build._STEP, tmp_path))
    moved = (tmp_path / "engine").rename(tmp_path / "moved")
    build_program(moved / "engine.json", tmp_path / "log")
    (moved / "work/build/bin").rename(moved / "bin")
    shutil.rmtree(moved / "work")
    subprocess.run([moved / "model_passes"], check=True)
    with pytest.raises(EngineError, match=r"gone from .*, .* measurement\.pass_samples to 0"):
        build_program(moved / "engine.json", tmp_path / "log")


@pytest.fixture
def builds(tmp_path, monkeypatch):
    """Make an engine without its tools; returns which fallback each build has.

    The self-test of the first `failures` builds fails.
    """

    def run(failures: int) -> list[str | None]:
        built: list[str | None] = []

        def self_test(*_):
            if len(built) <= failures:
                raise EngineError("killed by SIGSEGV")

        tools = {
            "fetch": lambda *_: Path(),
            "compile_llama": lambda *words: built.append(words[3].get("CMAKE_CXX_FLAGS")),
            "install": lambda *_: None,
            "self_test": self_test,
        }
        fallbacks = {"CMAKE_CXX_FLAGS": "-DA"}, {"CMAKE_CXX_FLAGS": "-DB"}
        for name, does in (tools | {"FALLBACKS": fallbacks}).items():
            monkeypatch.setattr(build, name, does)
        (tmp_path / "engine").mkdir()
        make_engine(PYPI, Backend.CPU, tmp_path / "engine", tmp_path / "log", {})
        return built

    return run


@pytest.mark.parametrize("built", [[None], [None, "-DA"], [None, "-DA", "-DB"]])
def test_an_engine_that_fails_its_self_test_is_built_with_a_fallback(builds, tmp_path, built):
    assert builds(failures=len(built) - 1) == built
    info = json.loads((tmp_path / "engine/engine.json").read_text())
    assert info["flags"].get("CMAKE_CXX_FLAGS") == built[-1]


def test_an_engine_that_never_passes_its_self_test_is_refused(builds, tmp_path):
    with pytest.raises(EngineError, match="SIGSEGV"):
        builds(failures=3)
    assert not (tmp_path / "engine/engine.json").exists()


def test_the_sources_of_a_distribution_are_unpacked(monkeypatch, tmp_path):
    def downloaded(*words):
        with tarfile.open(words[-2] / "a.tar.gz", "w:gz") as tar:
            for name in ("x/setup.py", "x/vendor/llama.cpp/src/main.cpp"):
                tar.add(__file__, name)
        return words[-2] / "a.tar.gz"

    monkeypatch.setattr(build, "download", downloaded)
    source = fetch(PYPI, tmp_path, tmp_path / "log")
    files = [path.relative_to(tmp_path) for path in tmp_path.rglob("*/*") if path.is_file()]
    assert files == [Path("source-0123456/src/main.cpp")]
    assert fetch(PYPI, tmp_path, tmp_path / "log") == source == tmp_path / "source-0123456"


def test_a_missing_compiler_is_told_before_anything_is_fetched(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(EngineError, match=r"no C\+\+ compiler found, .*build-essential"):
        make_engine(PYPI, Backend.CPU, tmp_path / "engine", tmp_path / "log", {})
    assert not (tmp_path / "engine").exists()
    with pytest.raises(EngineError, match=r"no C\+\+ compiler found"):
        require_build(tmp_path / "engine")  # before the program that is there is deleted
