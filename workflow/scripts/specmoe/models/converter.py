"""llama.cpp's own converter from safetensors to GGUF, and the Python it runs in.

The converter needs PyTorch, which nothing else here does: it has an environment of its own, made
when a model is converted for the first time.
"""

import subprocess
import sys
from pathlib import Path

from filelock import FileLock

from specmoe.errors import EngineError, ModelError

CONVERTER = "convert_hf_to_gguf.py"
LOG_LINES_SHOWN = 5


def environment_python(environment: Path, requirements: Path, log: Path) -> Path:
    """Return the Python of the converter's environment, a folder, made if it is not there.

    It holds the pinned and hashed packages of `requirements`. Raises EngineError with the way out
    if they cannot be had.
    """
    python, installed = environment / "bin" / "python", environment / "installed.txt"
    with FileLock(environment.with_suffix(".lock")):
        if not installed.exists() or installed.read_text() != requirements.read_text():
            _install(environment, requirements, log)
            installed.write_text(requirements.read_text())
    return python


def convert(python: Path, converter: Path, source: Path, out: Path, kind: str, log: Path) -> None:
    """Write the GGUF `out` of type `kind` from a folder of safetensors.

    `python` is that of the converter's environment, `converter` the folder of the engine's
    converter. Raises EngineError if the engine has none, ModelError if it cannot convert.
    """
    script = converter / CONVERTER
    if not script.is_file():
        raise EngineError(f"no {CONVERTER} in {converter}; give a folder of llama.cpp's source")
    command = [str(python), str(script), str(source.resolve()), "--outfile", str(out)]
    with log.open("a") as output:
        code = subprocess.run(
            [*command, "--outtype", kind.lower()], stdout=output, stderr=output, check=False
        ).returncode
    if code != 0:
        out.unlink(missing_ok=True)
        last = [line for line in log.read_text().splitlines() if line.strip()][-LOG_LINES_SHOWN:]
        raise ModelError(
            f"{out.name}: llama.cpp's converter ended with code {code}; the end of {log}:\n"
            + "\n".join(last)
        )


def _install(environment: Path, requirements: Path, log: Path) -> None:
    pip = [str(environment / "bin" / "python"), "-m", "pip", "--disable-pip-version-check"]
    with log.open("a") as output:
        for command in (
            [sys.executable, "-m", "venv", "--clear", str(environment)],
            [*pip, "install", "--require-hashes", "--requirement", str(requirements)],
        ):
            code = subprocess.run(command, stdout=output, stderr=output, check=False).returncode
            if code != 0:
                raise EngineError(
                    "the converter's packages could not be installed; on Linux give pip an index"
                    " that has PyTorch's CPU build (PIP_EXTRA_INDEX_URL, see pytorch.org) and use"
                    f" Python 3.11; see {log}"
                )
