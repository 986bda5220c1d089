"""The self-test passes with a working engine only."""

import shutil

import pytest

from specmoe.config.backend import Backend
from specmoe.engine.build import self_test
from specmoe.errors import EngineError


def test_a_working_engine_passes(engine_bin, tmp_path):
    self_test(engine_bin, Backend.CPU, tmp_path / "log")


def test_an_engine_that_crashes_fails(engine_bin, tmp_path):
    for binary in ("llama-quantize", "llama-server"):
        shutil.copy(engine_bin / binary, tmp_path / binary)
    dies = tmp_path / "llama-server"
    dies.write_text("#!/bin/sh\nkill -SEGV $$\n")
    with pytest.raises(EngineError, match=r"fails its self-test: .*killed by SIGSEGV"):
        self_test(tmp_path, Backend.CPU, tmp_path / "log")
