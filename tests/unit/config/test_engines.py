"""Backends that `auto` stands for, and the environment and words that engines are given."""

import platform
import shutil

import pytest
from pydantic import TypeAdapter, ValidationError

from specmoe.config.block import Arm
from specmoe.config.engines import (
    CMAKE_FLAGS,
    Backend,
    EngineArgs,
    build_environment,
    detect_backend,
    engine_environment,
    refuse_exported,
)
from specmoe.config.methods import Method
from specmoe.engine.job import server_command, speculation_flags
from specmoe.errors import MeasurementError

HOSTILE = [
    *("LLAMA_ARG_CACHE_TYPE_K", "LLAMA_LOG_VERBOSITY", "LLAMA_GRAPH_REUSE_DISABLE"),
    *("GGML_CUDA_FORCE_MMQ", "OMP_WAIT_POLICY", "CUDA_VISIBLE_DEVICES"),
]
PLACES = ["PATH", "CUDA_HOME", "CUDA_PATH", "LLAMA_CACHE", "HF_HOME", "CUDA_VERSION", "LANG"]


def test_only_variables_that_find_libraries_and_files_and_configured_ones_reach_the_engine():
    exported = dict.fromkeys([*HOSTILE, "HF_TOKEN", "LANG"], "x")
    exported |= {"PATH": "/bin", "HOME": "/home/me"}
    passed = {"PATH": "/bin", "HOME": "/home/me", "LC_ALL": "C.UTF-8"}
    assert engine_environment({}, exported) == passed
    given = {"OMP_NUM_THREADS": "2"}
    assert engine_environment(given, exported) == passed | given


def test_compiler_flags_do_not_reach_the_build():
    exported = {"PATH": "/bin", "CXX": "clang++", "CXXFLAGS": "-O0", "LDFLAGS": "-static"}
    assert build_environment(exported) == {"PATH": "/bin", "CXX": "clang++"}


@pytest.mark.parametrize("name", HOSTILE)
def test_each_hostile_variable_is_refused_by_name_and_one_that_names_a_place_steers_nothing(name):
    with pytest.raises(MeasurementError, match=rf"{name} would .*: call env -u {name} snakemake"):
        refuse_exported({}, {name: "1"})
    refuse_exported({name}, [name, *PLACES])  # the configuration gives it


@pytest.mark.parametrize(
    ("tools", "vendors", "found"),
    [
        (["nvcc", "nvidia-smi", "glslc"], ["0x10de"], Backend.CUDA),
        (["hipconfig", "rocminfo", "glslc"], ["0x1002"], Backend.HIP),
        (["glslc"], ["0x1002"], Backend.VULKAN),
        (["glslc", "nvidia-smi"], ["0x8086", "0x10de"], Backend.VULKAN),
        # Without a GPU, the tools alone give nothing; nor does a GPU without them.
        (["glslc"], [], Backend.CPU),
        (["hipconfig"], ["0x1002"], Backend.CPU),
        ([], ["0x10de"], Backend.CPU),
        (["glslc"], ["0x1af4"], Backend.CPU),  # a virtual machine's
    ],
)
def test_auto_is_the_best_backend_whose_gpu_and_tools_are_present(
    monkeypatch, tmp_path, tools, vendors, found
):
    """On a Linux machine with GPUs of these PCI vendors."""
    monkeypatch.setattr(platform, "system", lambda: "Linux")
    monkeypatch.setattr(shutil, "which", lambda tool: tool if tool in tools else None)
    for number, vendor in enumerate(vendors):
        folder = tmp_path / f"renderD{128 + number}" / "device"
        folder.mkdir(parents=True)
        (folder / "vendor").write_text(f"{vendor}\n")
    assert detect_backend(Backend.AUTO, tmp_path) == found


def test_on_apple_silicon_auto_is_metal_and_a_backend_that_is_named_is_taken(monkeypatch):
    monkeypatch.setattr(platform, "system", lambda: "Darwin")
    monkeypatch.setattr(platform, "machine", lambda: "arm64")
    assert detect_backend(Backend.AUTO) == Backend.METAL
    assert [detect_backend(asked) for asked in CMAKE_FLAGS] == list(CMAKE_FLAGS)
    assert {*CMAKE_FLAGS} == {*Backend} - {Backend.AUTO}


def read(*words):
    return TypeAdapter(EngineArgs).validate_python([*words])


def test_other_words_are_the_engines_to_judge_and_numbers_are_words_too():
    words = ["--numa", "distribute", "--prio", "-1", "-C", "3", "--no-kv-offload", "--frobnicate"]
    assert read(*words) == words
    assert read("--poll", 0, "--rope-freq-scale", 0.5)[1::2] == ["0", "0.5"]


def test_what_specmoe_sets_itself_is_refused(tmp_path):
    command = server_command(tmp_path, tmp_path, context=1, threads=1, gpu_layers=1)
    for method in Method:
        arm = Arm(4, 0.5, n_match=3, p_min=0.0, method=method)
        command += speculation_flags(arm, tmp_path, 1)
    flags = {word for word in command[1:] if word.startswith("--")} | {"--host"}
    assert len(flags) > 15
    for flag in flags - {"--flash-attn"}:  # which is left out where it is given
        with pytest.raises(ValidationError, match="is refused"):
            read(flag)
