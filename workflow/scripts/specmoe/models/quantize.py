"""Models quantized by llama.cpp's llama-quantize."""

import os
import subprocess
from pathlib import Path

from specmoe.config.environment import engine_environment
from specmoe.errors import EngineError
from specmoe.files import engine_path
from specmoe.words import exit_words


def quantize(
    binaries: Path, source: Path, target: Path, kind: str, log: Path, imatrix: Path | None = None
) -> None:
    """Write `target`, the model `source` quantized to the type `kind`, with llama-quantize.

    `imatrix` is an importance matrix, `log` receives llama-quantize's output. Raises EngineError.
    """
    options = ["--allow-requantize", *(["--imatrix", str(imatrix)] if imatrix else [])]
    command = [str(binaries / "llama-quantize"), *options, str(engine_path(source))]
    environment = engine_environment({}, os.environ)
    with log.open("a") as output:
        code = subprocess.run(
            [*command, str(target), kind],
            stdout=output,
            stderr=output,
            env=environment,
            check=False,
        ).returncode
    if code != 0:
        target.unlink(missing_ok=True)
        raise EngineError(f"llama-quantize failed on {source} ({exit_words(code)}); see {log}")
