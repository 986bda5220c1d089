"""Model files made by llama.cpp: its converter from safetensors to GGUF, and llama-quantize.

Only the converter needs PyTorch, so it has an environment of its own, which the first conversion
makes.
"""

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from filelock import FileLock

from specmoe.config.environment import engine_environment
from specmoe.errors import EngineError, ModelError
from specmoe.exit_words import exit_words
from specmoe.files import engine_path

CONVERTER = "convert_hf_to_gguf.py"
LOG_LINES_SHOWN = 5


def environment_python(environment: Path, requirements: Path, log: Path) -> Path:
    """Return the Python of the converter's environment, a folder that is made if it is missing.

    The environment has the pinned packages of `requirements`. Raises EngineError if they cannot be
    installed.
    """
    python, installed = environment / "bin" / "python", environment / "installed.txt"
    with FileLock(environment.with_suffix(".lock")):
        if not installed.exists() or installed.read_text() != requirements.read_text():
            _install(environment, requirements, log)
            installed.write_text(requirements.read_text())
    return python


def convert(python: Path, converter: Path, source: Path, out: Path, kind: str, log: Path) -> None:
    """Write the GGUF `out` of type `kind` from a folder of safetensors.

    `python` is the Python of the converter's environment, `converter` the folder of the engine's
    converter. Raises EngineError if the engine has no converter, ModelError if it fails.
    """
    script = converter / CONVERTER
    if not script.is_file():
        raise EngineError(f"no {CONVERTER} in {converter}; give a folder of llama.cpp's source")
    command = [str(python), str(script), str(source.resolve()), "--outfile", str(out)]
    code = _run([*command, "--outtype", kind.lower()], log)
    if code != 0:
        out.unlink(missing_ok=True)
        last = [line for line in log.read_text().splitlines() if line.strip()][-LOG_LINES_SHOWN:]
        raise ModelError(
            f"{out.name}: llama.cpp's converter ended with code {code}; the end of {log}:\n"
            + "\n".join(last)
        )


def quantize(
    binaries: Path, source: Path, target: Path, kind: str, log: Path, imatrix: Path | None = None
) -> None:
    """Write `target`, the model `source` quantized to the type `kind`, with llama-quantize.

    `imatrix` is an importance matrix, `log` receives llama-quantize's output. Raises EngineError.
    """
    options = ["--allow-requantize", *(["--imatrix", str(imatrix)] if imatrix else [])]
    command = [str(binaries / "llama-quantize"), *options, str(engine_path(source))]
    code = _run([*command, str(target), kind], log, engine_environment({}, os.environ))
    if code != 0:
        target.unlink(missing_ok=True)
        raise EngineError(f"llama-quantize failed on {source} ({exit_words(code)}); see {log}")


def _install(environment: Path, requirements: Path, log: Path) -> None:
    pip = [str(environment / "bin" / "python"), "-m", "pip", "--disable-pip-version-check"]
    for command in (
        [sys.executable, "-m", "venv", "--clear", str(environment)],
        [*pip, "install", "--require-hashes", "--requirement", str(requirements)],
    ):
        if _run(command, log) != 0:
            raise EngineError(
                "the converter's packages could not be installed; on Linux give pip an index that"
                " has PyTorch's CPU build (PIP_EXTRA_INDEX_URL, see pytorch.org) and use Python"
                f" 3.11; see {log}"
            )


def _run(command: list[str], log: Path, environment: Mapping[str, str] | None = None) -> int:
    """Return a command's exit code, after its output was appended to `log`."""
    with log.open("a") as output:
        done = subprocess.run(command, stdout=output, stderr=output, env=environment, check=False)
    return done.returncode
