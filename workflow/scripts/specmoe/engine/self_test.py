"""The self-test of an engine: that it runs on a machine.

Built for another processor, an engine may crash, so its folder notes the machines it was tested on.
"""

import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path

from specmoe.config.engines import Backend
from specmoe.config.synthetic_recipe import Recipe
from specmoe.engine.flags import server_command
from specmoe.engine.machine import host_id, processor_name
from specmoe.engine.server import Server
from specmoe.errors import EngineError, MeasurementError

# K-quants need rows of a multiple of 256.
SELF_TEST_RECIPE = Recipe(
    layers=4,
    hidden=256,
    heads=4,
    kv_heads=2,
    head_size=64,
    ffn=256,
    gdn_value_heads=4,
    gdn_key_heads=2,
    gdn_head_size=64,
    experts=4,
    experts_used=2,
    expert_ffn=256,
)
SELF_TEST_TYPE = "Q4_K_M"
SELF_TEST_TOKENS = 8
SELF_TEST_S = 60.0  # limit of its start, and of its one request
_TESTED = "tested"  # folder of notes in an engine's folder


def self_test(
    binaries: Path, backend: Backend, log: Path, environment: Mapping[str, str] | None = None
) -> None:
    """Quantize a small synthetic model and generate with it; raises EngineError if that fails.

    Some virtual machines cannot run the matrix kernels that only a quantized model uses.
    `environment` is `measurement.environment`.
    """
    # They load numpy, and jobs that measure import this module.
    from specmoe.models.derived import quantize
    from specmoe.models.synthetic import write_model

    with tempfile.TemporaryDirectory(prefix="specmoe-") as scratch:
        full, quantized = Path(scratch, "full.gguf"), Path(scratch, "quantized.gguf")
        write_model(full, SELF_TEST_RECIPE)
        quantize(binaries, full, quantized, SELF_TEST_TYPE, log)
        command = server_command(
            binaries / "llama-server",
            quantized,
            context=256,
            threads=1,
            gpu_layers=0 if backend == Backend.CPU else 99,
        )
        server_log = log.with_suffix(".selftest.log")
        try:
            with Server(command, server_log, SELF_TEST_S, SELF_TEST_S, environment) as server:
                answer = server.complete(
                    server.tokenize("self-test"),
                    n_predict=SELF_TEST_TOKENS,
                    temperature=0,
                    seed=1,
                )
        except MeasurementError as error:
            raise EngineError(f"the engine fails its self-test: {error}") from error
    if len(answer["tokens"]) != SELF_TEST_TOKENS:
        raise EngineError(f"the engine fails its self-test: it generated {answer['tokens']}")


def mark_tested(engine: Path) -> None:
    """Note in an engine's folder that it passed its self-test on this machine."""
    _mark(engine).parent.mkdir(exist_ok=True)
    _mark(engine).touch()


def forget_tests(engine: Path) -> None:
    """Remove the notes of an engine that is built again."""
    shutil.rmtree(engine / _TESTED, ignore_errors=True)


def require_tested(engine: Path, backend: Backend, environment: Mapping[str, str]) -> None:
    """Test an engine on this machine, unless it was. Raises EngineError if it does not run here.

    `engine` is its folder, `environment` is `measurement.environment`.
    """
    if _mark(engine).exists():
        return
    _mark(engine).parent.mkdir(exist_ok=True)
    try:
        self_test(engine / "bin", backend, _mark(engine).with_suffix(".log"), environment)
    except EngineError as error:
        raise EngineError(
            f"engine {engine.name} was built on another machine and does not run on this one"
            f" ({processor_name()}, {host_id()}); measure with campaign.engine: portable, which"
            f" fits every processor, or build the engine here in a folder of its own: {error}"
        ) from error
    mark_tested(engine)


def _mark(engine: Path) -> Path:
    return engine / _TESTED / f"{host_id()}.ok"
