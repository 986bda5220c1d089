"""The probe finds, with a real compiler, what the processor traps before llama.cpp is built."""

import platform
import subprocess
from pathlib import Path

import pytest
import yaml

from specmoe.engine import processor_probe
from specmoe.engine.processor_probe import compiler_flags, probe_processor

TRAPS = "#include <csignal>\nint main() {\n#ifndef TAME\nstd::raise(SIGILL);\n#endif\n}\n"


@pytest.fixture
def plant(monkeypatch, tmp_path):
    """Replace the source of the probe."""

    def run(source: str) -> None:
        (tmp_path / "planted.cpp").write_text(source)
        monkeypatch.setattr(processor_probe, "PROBE", tmp_path / "planted.cpp")

    return run


@pytest.fixture
def ask(tmp_path):
    """Run the probe with definitions of CMake; returns its result and the compiler's output."""

    def run(definitions: dict[str, str]) -> tuple[str | None, str]:
        with (tmp_path / "log").open("w") as log:
            answer = probe_processor(definitions, tmp_path, log.fileno())
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
    # The machine may trap what it lists.
    assert answer is not None, said


def test_the_shipped_probe_runs_without_any_instructions_chosen(ask):
    off = {"GGML_NATIVE": "OFF", "GGML_AVX": "OFF", "GGML_AVX2": "OFF"}
    answer, said = ask(off | {"GGML_FMA": "OFF", "GGML_F16C": "OFF", "GGML_BMI2": "OFF"})
    assert answer == "", said


@pytest.mark.skipif(platform.machine() != "x86_64", reason="flags of x86-64")
def test_the_shipped_probe_uses_tiles_only_where_llama_cpp_does(tmp_path):
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


def test_a_trap_is_named_by_its_signal_and_turned_off_by_a_flag(plant, ask, tmp_path):
    plant(TRAPS)
    assert ask({})[0] == "SIGILL"
    assert ask({"CMAKE_CXX_FLAGS": "-DTAME"})[0] == ""
    assert not list(tmp_path.glob("probe-*"))


def test_a_probe_that_does_not_compile_has_no_result(plant, ask):
    plant("#error not with this compiler\n")
    answer, said = ask({})
    assert answer is None
    assert "not with this compiler" in said
    assert ask({"CMAKE_CXX_COMPILER": "/no/such/compiler"})[0] is None


@pytest.mark.parametrize(
    "body", ["return 1;", "std::raise(SIGKILL);", "for (volatile int x;;) { x = 1; }"]
)
def test_a_probe_that_hangs_or_ends_for_another_reason_has_no_result(plant, ask, monkeypatch, body):
    monkeypatch.setattr(processor_probe, "LIMIT_S", 3.0)
    plant(f"#include <csignal>\nint main() {{ {body} }}\n")
    assert ask({})[0] is None


def test_the_compiler_is_the_one_the_build_takes(plant, ask, monkeypatch, tmp_path):
    compiler = tmp_path / "my compiler"
    compiler.write_text('#!/bin/sh\nexec c++ -DTAME "$@"\n')
    compiler.chmod(0o755)
    plant(TRAPS)
    monkeypatch.setenv("CXX", f"'{compiler}'")
    assert ask({})[0] == ""


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
