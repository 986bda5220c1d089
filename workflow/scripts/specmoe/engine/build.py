"""The engine, llama.cpp, and our own program: fetched, built, tested and described.

A later build continues from the work folder of an earlier one. `engine.json` has no time and no
path of the machine, so a second build of the same engine does not change it.
"""

import json
import logging
import os
import re
import shutil
import tarfile
import tempfile
from collections.abc import Mapping
from pathlib import Path

from specmoe.config.base import resource
from specmoe.config.engines import CMAKE_FLAGS, PROGRAM, Backend, Engine, PathEngine, PypiEngine
from specmoe.config.models import Recipe
from specmoe.engine.identity import BINARIES, fact, install, measuring_files, require_compiler
from specmoe.engine.job import server_command
from specmoe.engine.process import run_build_tool
from specmoe.engine.server import Server
from specmoe.errors import EngineError, MeasurementError
from specmoe.files import sha256_of
from specmoe.hardware.machine import build_of, output_of, require_device, text_of
from specmoe.models.package import download

_logger = logging.getLogger(__name__)


def fetch(engine: PypiEngine, work: Path, log: Path) -> Path:
    """Return the folder of llama.cpp's sources in `work`, fetched unless it has this commit."""
    source = work / f"source-{engine.commit}"
    if not source.exists():
        _logger.info("fetching llama.cpp %s", engine.commit)
        for left in work.glob("fetch-*"):  # by a fetch that was killed
            shutil.rmtree(left)
        with (
            tempfile.TemporaryDirectory(dir=work, prefix="fetch-") as scratch,
            log.open("ab") as output,
        ):
            given = "llama-cpp-python", engine.version, engine.sha256, Path(scratch)
            archive = download("source distribution", *given, output.fileno())
            # Its digest was checked; Debian 12 has Python 3.11.2, of before `filter`.
            with tarfile.open(archive) as tar:
                tar.extractall(scratch, [member for member in tar if "/vendor/" in member.name])  # noqa: S202
            [fetched] = Path(scratch).glob("*/vendor/llama.cpp")
            fetched.rename(source)
    return source


# Added in turn where the finished engine fails its self-test, as it does where the processor traps
# an instruction that it lists. Both change the kernels alone, so only these are compiled again.
FALLBACKS: tuple[dict[str, str], ...] = (
    # Some virtual machines list AMX and trap its first instruction; see build.cmake.
    {"SPECMOE_KERNEL_FLAGS": "-mno-amx-tile;-mno-amx-int8;-mno-amx-bf16"},
    {"GGML_NATIVE": "OFF"},
)

# How sources are merged and compiled, see there.
RECIPE = Path(__file__).with_name("build.cmake")


def make_engine(
    engine: Engine, backend: Backend, folder: Path, log: Path, environment: Mapping[str, str]
) -> None:
    """Make a tested engine in a folder, named by its id: `bin/` with programs, and `engine.json`.

    `log` receives what the tools print; `environment` may choose the device. Raises EngineError.
    """
    log.write_text("")
    if isinstance(engine, PathEngine):
        install(engine.folder, folder / "bin")
        require_device(backend, folder / "bin" / "llama-server", environment)
        self_test(folder / "bin", backend, log, environment)
        told, number = build_of(folder / "bin" / "llama-server")
        commit = engine.commit if engine.commit != "unknown" else told
        build: dict[str, object] = {
            "commit": f"{commit}-b{number}" if number else commit,
            "flags": {},
            "compiler": "unknown: built elsewhere",
        }
    else:
        build = _built(engine, backend, folder, log, environment)
    facts = {
        "id": folder.name,
        "source": engine.source,
        "commit": engine.commit,
        "backend": backend,
        **build,
        "binaries_sha256": {file.name: sha256_of(file) for file in measuring_files(folder / "bin")},
    }
    (folder / "engine.json").write_text(json.dumps(facts, indent=1) + "\n")


def _built(
    engine: PypiEngine, backend: Backend, folder: Path, log: Path, environment: Mapping[str, str]
) -> dict[str, object]:
    """Build with the configured flags, then with each fallback's, until the self-test passes."""
    require_compiler()
    _logger.info("llama.cpp is fetched and built, which takes minutes; see %s", log)
    work = folder / "work"
    work.mkdir(parents=True, exist_ok=True)
    source, build, binaries = fetch(engine, work, log), work / "build", folder / "bin"
    for fallback in ({}, *FALLBACKS):
        flags = engine.cmake | CMAKE_FLAGS[backend] | fallback
        compile_llama(source, build, backend, flags, log)
        install(build / "bin", binaries)
        require_device(backend, binaries / "llama-server", environment)
        _logger.info("self-test of the engine on a quantized model")
        try:
            self_test(binaries, backend, log, environment)
            break
        except EngineError:
            if fallback == FALLBACKS[-1]:
                raise
            _logger.info("the self-test failed, as on some virtual machines; other flags are tried")
    cache = text_of(build / "CMakeCache.txt")
    compiler = re.search(r"^CMAKE_CXX_COMPILER:\w+=(.+)$", cache, re.MULTILINE)
    version = output_of(compiler[1] if compiler else "c++", "--version").partition("\n")[0]
    return {"flags": flags, "compiler": version or "unknown"}


def compile_llama(
    source: Path, build: Path, backend: Backend, flags: Mapping[str, str], log: Path
) -> None:
    """Compile with merged sources, or one by one where another commit's cannot be merged."""
    error = f"llama.cpp could not be built for backend {backend}"
    error += " (what that needs: config/README.md, Your engine)"
    _logger.info("building llama.cpp")
    try:
        _cmake(source, build, flags, log, error, *BINARIES)
    except EngineError:
        _logger.info("llama.cpp does not compile with merged sources; compiling one by one")
        _cmake(source, build, {**flags, "SPECMOE_ONE_BY_ONE": "ON"}, log, error, *BINARIES)


def _cmake(
    source: Path, build: Path, flags: Mapping[str, str], log: Path, error: str, *targets: str
) -> None:
    # A cache of another generator, folder or flags would prevail over the new ones.
    (build / "CMakeCache.txt").unlink(missing_ok=True)
    command = ["cmake", "-S", str(source), "-B", str(build)]
    command += ["-G", "Ninja"] if shutil.which("ninja") else []
    command += [f"-DCMAKE_PROJECT_llama.cpp_INCLUDE={RECIPE}"]
    command += [f"-D{key}={value}" for key, value in flags.items()]
    run_build_tool(command, log, error)
    command = ["cmake", "--build", str(build), "--parallel", str(os.cpu_count() or 1)]
    run_build_tool([*command, "--target", *targets], log, error)


SELF_TEST_TOKENS = 8
SELF_TEST_S = 60.0  # limit of its start, and of its one request


def self_test(
    binaries: Path, backend: Backend, log: Path, environment: Mapping[str, str] | None = None
) -> None:
    """Quantize a small synthetic model and generate with it; raises EngineError if that fails.

    Some virtual machines cannot run the matrix kernels that only a quantized model uses.
    """
    # They load numpy, and jobs that measure import this module.
    from specmoe.models.derived import quantize
    from specmoe.models.synthetic import write_model

    with tempfile.TemporaryDirectory(prefix="specmoe-") as scratch:
        full, quantized = Path(scratch, "full.gguf"), Path(scratch, "quantized.gguf")
        recipe = Recipe.model_validate(resource("self_test"))
        if (binaries / "llama-quantize").is_file():
            write_model(full, recipe)
            quantize(binaries, full, quantized, "Q4_K_M", log)
        else:  # written quantized, of a simpler type
            write_model(quantized, recipe.model_copy(update={"dtype": "Q8_0"}))
        command = server_command(
            binaries / "llama-server",
            quantized,
            context=256,
            threads=1,
            gpu_layers=0 if backend == Backend.CPU else 99,
        )
        server_log = log.with_suffix(".selftest.log")
        try:
            with Server(command, server_log, SELF_TEST_S, environment) as server:
                prompt = server.tokenize("self-test")
                answer = server.complete(prompt, n_predict=SELF_TEST_TOKENS, temperature=0, seed=1)
        except MeasurementError as error:
            raise EngineError(f"the engine fails its self-test: {error}") from error
    if len(answer["tokens"]) != SELF_TEST_TOKENS:
        raise EngineError(f"the engine fails its self-test: it generated {answer['tokens']}")


_STEP = Path(__file__).with_name("program.cmake")


def require_build(engine: Path) -> Path:
    """Return the sources of an engine; raises EngineError if nothing can be built of them."""
    require_compiler()
    source = engine / "work" / f"source-{fact(engine / 'engine.json', 'commit')}"
    if not source.is_dir():
        raise EngineError(
            f"the sources of the engine are gone from {source}, and timing passes needs them;"
            f" delete {engine} to build it again, or set measurement.pass_samples to 0"
        )
    return source


def build_program(engine: Path, log: Path) -> None:
    """Compile our program beside the engine.json of an engine that was built from source.

    In a folder that was moved or copied, the libraries of llama.cpp are compiled again.
    """
    source, build = require_build(engine.parent), engine.with_name("work") / "build"
    flags = fact(engine, "flags") | {"SPECMOE_PROGRAM": str(_STEP)}
    error = (
        f"{PROGRAM} could not be compiled against this llama.cpp"
        " (measurement.pass_samples: 0 measures without it)"
    )
    log.write_text("")
    _cmake(source, build, flags, log, error, PROGRAM)
    shutil.copy2(build / "bin" / PROGRAM, engine.with_name(PROGRAM))
