"""The processor is asked what it traps, with a real compiler, before llama.cpp is built."""

import platform
import subprocess
from pathlib import Path

import pytest
import yaml

from specmoe.config.backend import Backend
from specmoe.config.schema import PypiEngine
from specmoe.engine import build, processor_probe
from specmoe.engine.build import make_engine
from specmoe.engine.processor_probe import Answer, Outcome, ask_processor, compiler_flags
from specmoe.errors import EngineError

TRAPS = "#include <csignal>\nint main() {\n#ifndef TAME\nstd::raise(SIGILL);\n#endif\n}\n"
PYPI = {"source": "pypi", "version": "0.0.1", "sha256": "0" * 64, "commit": "0123456"}


@pytest.fixture
def plant(monkeypatch, tmp_path):
    """Put another source in the place of the probe's."""

    def run(source: str) -> None:
        path = tmp_path / "planted.cpp"
        path.write_text(source)
        monkeypatch.setattr(processor_probe, "PROBE", path)

    return run


@pytest.fixture
def ask(tmp_path):
    """Ask the processor about definitions of CMake; returns its answer and the compiler's words."""

    def run(definitions: dict[str, str]) -> tuple[Answer, str]:
        with (tmp_path / "log").open("w") as log:
            answer = ask_processor(definitions, tmp_path, log.fileno())
        return answer, (tmp_path / "log").read_text()

    return run


def shipped_definitions() -> list[dict[str, str]]:
    """Return the definitions of the shipped engine as configured, and with each fallback."""
    path = Path(__file__).resolve().parents[3] / "config/engines.yaml"
    entry = yaml.safe_load(path.read_text())["engines"]["current"]
    return [entry["cmake"] | addition for addition in [{}, *entry["fallbacks"]]]


@pytest.mark.parametrize("definitions", shipped_definitions())
def test_the_shipped_probe_is_compiled_with_the_shipped_flags(ask, definitions):
    answer, said = ask(definitions)
    # A machine of those that the probe is for may trap what it lists.
    assert answer.outcome in {Outcome.RAN, Outcome.TRAPPED}, said


def test_the_shipped_probe_runs_without_any_instructions_chosen(ask):
    off = {"GGML_NATIVE": "OFF", "GGML_AVX": "OFF", "GGML_AVX2": "OFF"}
    answer, said = ask(off | {"GGML_FMA": "OFF", "GGML_F16C": "OFF", "GGML_BMI2": "OFF"})
    assert answer == (Outcome.RAN, ""), said


@pytest.mark.skipif(platform.machine() != "x86_64", reason="flags of x86-64")
def test_the_shipped_probe_touches_tiles_only_where_llama_cpp_does(tmp_path):
    tiles = ["-mamx-tile", "-mamx-int8", "-mavx512f", "-mavx512vnni"]

    def assembly(flags: list[str]) -> str:
        command = ["c++", *flags, "-S", "-o", "-", str(processor_probe.PROBE)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            pytest.skip("the compiler knows no AMX")
        return done.stdout

    assert "ldtilecfg" in assembly(tiles)
    assert "ldtilecfg" not in assembly([*tiles, "-mno-amx-int8"])
    assert "zmm" in assembly(["-mavx512f"])
    assert "zmm" not in assembly([])


def test_a_trap_is_told_with_its_signal_and_turned_off_by_a_flag(plant, ask):
    plant(TRAPS)
    assert ask({})[0] == (Outcome.TRAPPED, "SIGILL")
    assert ask({"CMAKE_CXX_FLAGS": "-DTAME"})[0] == (Outcome.RAN, "")


def test_a_probe_that_is_not_compiled_concludes_nothing(plant, ask):
    plant("#error not with this compiler\n")
    answer, said = ask({})
    assert answer == (Outcome.UNKNOWN, "")
    assert "not with this compiler" in said


@pytest.mark.parametrize("body", ["return 1;", "std::raise(SIGKILL);"])
def test_a_probe_that_ends_for_another_reason_concludes_nothing(plant, ask, body):
    plant(f"#include <csignal>\nint main() {{ {body} }}\n")
    assert ask({})[0] == (Outcome.UNKNOWN, "")


def test_a_probe_that_hangs_concludes_nothing(plant, ask, monkeypatch):
    monkeypatch.setattr(processor_probe, "LIMIT_S", 3.0)
    plant("volatile int x;\nint main() { for (;;) { x = 1; } }\n")
    assert ask({})[0] == (Outcome.UNKNOWN, "")


def test_a_compiler_that_is_not_there_concludes_nothing(ask):
    assert ask({"CMAKE_CXX_COMPILER": "/no/such/compiler"})[0] == (Outcome.UNKNOWN, "")


def test_the_compiler_is_the_one_the_build_takes(plant, ask, monkeypatch, tmp_path):
    compiler = tmp_path / "my compiler"
    compiler.write_text('#!/bin/sh\nexec c++ -DTAME "$@"\n')
    compiler.chmod(0o755)
    plant(TRAPS)
    monkeypatch.setenv("CXX", f"'{compiler}'")
    assert ask({})[0] == (Outcome.RAN, "")


def test_nothing_is_left_behind(ask, tmp_path):
    ask({})
    assert [path.name for path in tmp_path.iterdir()] == ["log"]


@pytest.mark.parametrize(
    ("definitions", "machine", "flags"),
    [
        ({}, "x86_64", ["-march=native"]),
        ({"GGML_NATIVE": "ON"}, "arm64", ["-mcpu=native"]),
        ({"GGML_NATIVE": "ON"}, "aarch64", ["-mcpu=native"]),
        ({"GGML_NATIVE": "off"}, "arm64", []),
        (
            {"CMAKE_CXX_FLAGS": "-mno-amx-tile '-Da=b c'"},
            "x86_64",
            ["-mno-amx-tile", "-Da=b c", "-march=native"],
        ),
        (
            {"GGML_NATIVE": "OFF", "GGML_AVX2": "OFF", "GGML_AMX_TILE": "1"},
            "x86_64",
            ["-msse4.2", "-mf16c", "-mfma", "-mbmi2", "-mavx", "-mamx-tile"],
        ),
    ],
)
def test_flags_follow_from_definitions_and_machine(monkeypatch, definitions, machine, flags):
    monkeypatch.setenv("CXXFLAGS", "-O1")  # reaches no build
    assert compiler_flags(definitions, machine) == flags


@pytest.fixture
def built(monkeypatch):
    """The flags that llama.cpp was asked to be built with; fetching and compiling are left out."""
    flags: list[dict[str, str]] = []
    monkeypatch.setattr(build, "_fetch", lambda *args: Path())
    monkeypatch.setattr(build, "_compile", lambda source, build, asked, *rest: flags.append(asked))
    monkeypatch.setattr(build, "install", lambda *args: None)
    monkeypatch.setattr(build, "_compiler", lambda build: "c++")
    monkeypatch.setattr(build, "self_test", lambda *args: None)
    return flags


@pytest.fixture
def make(tmp_path):
    """Make an engine with fallbacks; returns what was said."""

    def run(*fallbacks: str) -> list[str]:
        said: list[str] = []
        entry = PypiEngine(**PYPI, fallbacks=[{"CMAKE_CXX_FLAGS": flag} for flag in fallbacks])
        (tmp_path / "engine").mkdir()
        make_engine(entry, "e", Backend.CPU, tmp_path / "engine", tmp_path / "log", said.append)
        return said

    return run


def test_what_the_processor_traps_is_not_built(plant, built, make):
    plant(TRAPS)
    said = make("-DNO_HELP", "-DTAME")
    assert [flags.get("CMAKE_CXX_FLAGS") for flags in built] == ["-DTAME"]
    instead = "(SIGILL); building with {'CMAKE_CXX_FLAGS': '-DTAME'} instead"
    assert said[0] == f"this processor traps what the flags as configured turn on {instead}"
    assert len([line for line in said if "traps" in line]) == 2


def test_where_nothing_traps_the_configured_flags_are_built_and_nothing_is_said(built, make):
    said = make("-DTAME")
    assert [flags.get("CMAKE_CXX_FLAGS") for flags in built] == [None]
    assert not [line for line in said if "traps" in line]


def test_where_everything_traps_the_last_is_built(plant, built, make):
    plant(TRAPS)
    make("-DA", "-DB")
    assert [flags.get("CMAKE_CXX_FLAGS") for flags in built] == ["-DB"]


def test_where_the_probe_is_not_compiled_builds_are_tried_in_turn(plant, built, make, monkeypatch):
    def self_test(*args):
        if "CMAKE_CXX_FLAGS" not in built[-1]:
            raise EngineError("killed by SIGILL")

    plant("#error not with this compiler\n")
    monkeypatch.setattr(build, "self_test", self_test)
    make("-DTAME")
    assert [flags.get("CMAKE_CXX_FLAGS") for flags in built] == [None, "-DTAME"]


def test_after_a_self_test_that_fails_the_remaining_fallback_is_built(
    plant, built, make, monkeypatch
):
    def self_test(*args):
        if len(built) == 1:
            raise EngineError("killed by SIGILL")

    plant(TRAPS)
    monkeypatch.setattr(build, "self_test", self_test)
    make("-DTAME", "-DTAME -DMORE")
    assert [flags["CMAKE_CXX_FLAGS"] for flags in built] == ["-DTAME", "-DTAME -DMORE"]
