"""Whether a model's weights are numbers, as the engine itself reads them."""

import re
from collections.abc import Mapping
from pathlib import Path

from specmoe.engine.server import Server, server_command
from specmoe.errors import MeasurementError, ModelError
from specmoe.files import engine_path

# llama.cpp, src/llama-model-loader.cpp, of each tensor that has a NaN or an infinity.
_INVALID = re.compile(r"tensor '([^']*)' has invalid data")
# src/llama-context.cpp, of an EAGLE-3 or DFlash draft that shares its target's embedding. Its own
# tensors are loaded by then.
_NEEDS_TARGET = "requires ctx_other to be set"


def check_tensors(
    server: Path, model: Path, log: Path, limit_s: float, environment: Mapping[str, str]
) -> None:
    """Make sure that no weight of a model is NaN or infinite.

    `server` is an engine's llama-server, which reads every tensor and ends; `limit_s` seconds are
    given to it. `environment` is `measurement.environment`. Raises ModelError for such a weight,
    and MeasurementError if the engine cannot load the model.
    """
    command = server_command(server, engine_path(model), context=64, threads=1, gpu_layers=0)
    try:
        with Server(
            [*command, "--check-tensors", "--no-warmup"], log, limit_s, limit_s, environment
        ):
            pass
    except MeasurementError as error:
        text = log.read_text(errors="replace")
        invalid = _INVALID.findall(text)
        if not invalid and _NEEDS_TARGET in text:
            return
        if not invalid:
            raise
        more = f" and {len(invalid) - 1} others" if len(invalid) > 1 else ""
        raise ModelError(
            f"{model}: weights of its tensor {invalid[0]}{more} are NaN or infinite"
            f" (llama-server --check-tensors, see {log}); make or fetch the file again"
        ) from error
