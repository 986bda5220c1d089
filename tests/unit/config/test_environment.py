"""Exported variables: those that reach the engine's processes, and those that are refused."""

import pytest

from specmoe.config.engines import build_environment, engine_environment, refuse_exported, steers
from specmoe.errors import MeasurementError

HOSTILE = {
    **{"LLAMA_ARG_CACHE_TYPE_K": "q8_0", "LLAMA_ARG_CTX_SIZE": "256", "LLAMA_ARG_THREADS": "1"},
    **{"LLAMA_LOG_VERBOSITY": "0", "LLAMA_GRAPH_REUSE_DISABLE": "1", "GGML_CUDA_FORCE_MMQ": "1"},
    **{"OMP_WAIT_POLICY": "passive", "CUDA_VISIBLE_DEVICES": ""},
}


def test_only_variables_that_find_libraries_and_files_and_configured_ones_reach_the_engine():
    exported = HOSTILE | {"PATH": "/bin", "HOME": "/home/me", "HF_TOKEN": "secret", "LANG": "de_DE"}
    passed = {"PATH": "/bin", "HOME": "/home/me", "LC_ALL": "C.UTF-8"}
    assert engine_environment({}, exported) == passed
    given = {"OMP_NUM_THREADS": "2"}
    assert engine_environment(given, exported) == passed | given


def test_compiler_flags_do_not_reach_the_build():
    exported = {"PATH": "/bin", "CXX": "clang++", "CXXFLAGS": "-O0", "LDFLAGS": "-static"}
    assert build_environment(exported) == {"PATH": "/bin", "CXX": "clang++"}


@pytest.mark.parametrize("name", HOSTILE)
def test_each_hostile_variable_is_refused_by_name(name):
    with pytest.raises(MeasurementError, match=rf"{name} would .*: call env -u {name} snakemake"):
        refuse_exported({}, {name: "1"})
    assert steers(name)


def test_variables_of_the_configuration_may_be_exported_too():
    refuse_exported({"CUDA_VISIBLE_DEVICES"}, {"CUDA_VISIBLE_DEVICES": "1", "PATH": "/bin"})


@pytest.mark.parametrize(
    "name", ["PATH", "CUDA_HOME", "CUDA_PATH", "LLAMA_CACHE", "HF_HOME", "CUDA_VERSION", "LANG"]
)
def test_a_variable_that_names_a_place_steers_nothing(name):
    assert not steers(name)
    refuse_exported({}, {name: "x"})
