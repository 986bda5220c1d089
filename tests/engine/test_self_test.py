"""The self-test passes with a working engine only."""

import re
import shutil

import pytest

from specmoe.config.engines import Backend
from specmoe.engine.build import mark_tested, require_tested
from specmoe.errors import EngineError


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


@pytest.mark.parametrize(
    ("program", "says"),
    [
        # What a native build does on a processor that lacks an instruction.
        ("llama-quantize", r"llama-quantize failed on \S+ \(killed by SIGILL"),
        ("llama-server", r"fails its self-test: .*killed by SIGILL"),
    ],
)
def test_an_engine_for_another_processor_is_one_line_with_the_way_out(engine, program, says):
    (engine / "bin" / program).unlink()
    (engine / "bin" / program).write_text("#!/bin/sh\nkill -ILL $$\n")
    (engine / "bin" / program).chmod(0o755)
    with pytest.raises(EngineError) as fault:
        require_tested(engine, Backend.CPU, {})
    first = str(fault.value).splitlines()[0]
    assert first.startswith("engine current-cpu-0123abcd was built on another machine")
    assert "campaign.engine: portable" in first
    assert re.search(says, first)
