"""The self-test passes with a working engine only."""

import re
import shutil
import subprocess

import pytest

from specmoe.config.engines import Backend
from specmoe.engine.build import mark_tested, require_tested, self_test
from specmoe.errors import EngineError


def test_an_engine_that_crashes_fails(engine_bin, tmp_path):
    for binary in ("llama-quantize", "llama-server"):
        shutil.copy(engine_bin / binary, tmp_path / binary)
    dies = tmp_path / "llama-server"
    dies.write_text("#!/bin/sh\nkill -SEGV $$\n")
    with pytest.raises(EngineError, match=r"fails its self-test: .*killed by SIGSEGV"):
        self_test(tmp_path, Backend.CPU, tmp_path / "log")


@pytest.fixture
def engine(engine_bin, tmp_path):
    """An engine's folder, with the programs of a working engine and no note of a test."""
    folder = tmp_path / "current-cpu-0123abcd"
    shutil.copytree(engine_bin, folder / "bin", symlinks=True)
    return folder


def test_an_engine_is_tested_once_on_a_machine_that_did_not_build_it(engine):
    require_tested(engine, Backend.CPU, {})
    shutil.rmtree(engine / "bin")
    require_tested(engine, Backend.CPU, {})
    shutil.rmtree(engine / "tested")
    with pytest.raises((EngineError, OSError)):
        require_tested(engine, Backend.CPU, {})
    mark_tested(engine)  # by the machine that built it
    require_tested(engine, Backend.CPU, {})


def test_an_engine_for_another_processor_is_one_line_with_the_way_out(engine, tmp_path):
    # What a native build does on a processor that lacks an instruction.
    source = tmp_path / "illegal.c"
    source.write_text("int main(void) { __builtin_trap(); }\n")
    subprocess.run(["cc", source, "-o", engine / "bin/llama-quantize"], check=True)
    with pytest.raises(EngineError) as fault:
        require_tested(engine, Backend.CPU, {})
    first = str(fault.value).splitlines()[0]
    assert first.startswith("engine current-cpu-0123abcd was built on another machine")
    assert "campaign.engine: portable" in first
    # SIGILL on x86, SIGTRAP on Arm.
    assert re.search(r"llama-quantize failed on \S+ \(killed by SIG(ILL|TRAP)", first)
