"""How our own programs of the engine are compiled."""

import os

import pytest

from specmoe.engine.programs import build_programs
from specmoe.errors import EngineError


def test_an_engine_whose_build_is_gone_is_named_with_the_ways_out(tmp_path):
    with pytest.raises(EngineError, match=r"work/build, .* measurement\.pass_samples to 0"):
        build_programs(tmp_path, os.open(os.devnull, os.O_WRONLY))


def test_a_build_that_was_moved_is_named_with_the_ways_out(tmp_path):
    build = tmp_path / "copy" / "work" / "build"
    build.mkdir(parents=True)
    (build / "CMakeCache.txt").write_text(f"CMAKE_HOME_DIRECTORY:INTERNAL={tmp_path}/made/source\n")
    with pytest.raises(EngineError, match=r"made in another folder than .*; delete .*/copy"):
        build_programs(tmp_path / "copy", os.open(os.devnull, os.O_WRONLY))
