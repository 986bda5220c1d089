"""The self-test passes with a working engine only."""

import shutil

import pytest

from specmoe.config.engines import Backend
from specmoe.engine.build import self_test
from specmoe.errors import EngineError

from ..processes import write_program


def test_an_engine_of_llama_server_alone_passes(engine_bin, tmp_path):
    (tmp_path / "llama-server").symlink_to(engine_bin / "llama-server")
    self_test(tmp_path, Backend.CPU, tmp_path / "log")


@pytest.mark.parametrize(
    ("program", "says"),
    [
        # What a native build does on a processor that lacks an instruction.
        ("llama-quantize", r"llama-quantize failed \(killed by SIGILL"),
        ("llama-server", r"fails its self-test: .*killed by SIGILL.*campaign.engine: portable"),
    ],
)
def test_an_engine_for_another_processor_is_refused_with_the_way_out(
    engine_bin, tmp_path, program, says
):
    binaries = tmp_path / "bin"
    shutil.copytree(engine_bin, binaries, symlinks=True)
    (binaries / program).unlink()
    write_program(binaries / program, "kill -ILL $$")
    with pytest.raises(EngineError, match=says):
        self_test(binaries, Backend.CPU, tmp_path / "log")
