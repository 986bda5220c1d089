"""The test of an engine on a machine: a small quantized model must load and generate."""

import tempfile
from collections.abc import Mapping
from pathlib import Path

from specmoe.config.backend import Backend
from specmoe.config.synthetic_recipe import Recipe
from specmoe.engine.server import Server, server_command
from specmoe.errors import EngineError, MeasurementError
from specmoe.models.converter import quantize
from specmoe.models.synthetic import write_model

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


def self_test(
    binaries: Path, backend: Backend, log: Path, environment: Mapping[str, str] | None = None
) -> None:
    """Quantize a small synthetic model and generate with it; raises EngineError if that fails.

    Some virtual machines cannot run the matrix kernels that only a quantized model uses.
    `environment` is `measurement.environment`.
    """
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
