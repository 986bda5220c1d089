"""The engine, llama.cpp, and our own program: fetched, built, tested and described.

A later build continues from the work folder of an earlier one. `engine.json` has no time and no
path of the machine, so a second build of the same engine does not change it.
"""

import json
import logging
import os
import shutil
import tarfile
import tempfile
from collections.abc import Mapping
from pathlib import Path

from specmoe.config.engines import CMAKE_FLAGS, Backend, Engine, PathEngine, PypiEngine
from specmoe.config.models import Recipe
from specmoe.engine.identity import ALL_BINARIES, install, measuring_files, require_compiler
from specmoe.engine.job import server_command
from specmoe.engine.machine import build_of, output_of, require_device
from specmoe.engine.process import cmake_cache, run_build_tool
from specmoe.engine.server import Server
from specmoe.errors import EngineError, MeasurementError
from specmoe.files import sha256_of
from specmoe.models.package import download

_logger = logging.getLogger(__name__)

PYPI_PACKAGE = "llama-cpp-python"


def fetch(engine: PypiEngine, work: Path, output: int) -> Path:
    """Return the folder of llama.cpp's sources in `work`, fetched unless it has this commit."""
    source = work / f"source-{engine.commit}"
    if not source.exists():
        _logger.info("fetching llama.cpp %s", engine.commit)
        for left in work.glob("fetch-*"):  # by a fetch that was killed
            shutil.rmtree(left)
        with tempfile.TemporaryDirectory(dir=work, prefix="fetch-") as scratch:
            pinned = PYPI_PACKAGE, engine.version, engine.sha256
            archive = download("source distribution", *pinned, Path(scratch), output)
            # Its digest was checked; Debian 12 has Python 3.11.2, of before `filter`.
            with tarfile.open(archive) as tar:
                tar.extractall(scratch, [one for one in tar if "/vendor/" in one.name])  # noqa: S202
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
    engine: Engine,
    engine_id: str,
    backend: Backend,
    folder: Path,
    log: Path,
    environment: Mapping[str, str] | None = None,
) -> None:
    """Make a tested engine in `folder`: `bin/` with its programs, and `engine.json`.

    `log` receives what the tools print; `environment` may choose the device. Raises EngineError.
    """
    with log.open("w") as output:
        if isinstance(engine, PathEngine):
            install(Path(engine.path), folder / "bin")
            require_device(backend, folder / "bin" / "llama-server", environment or {})
            self_test(folder / "bin", backend, log, environment)
            told, number = build_of(folder / "bin" / "llama-server")
            commit = engine.commit if engine.commit != "unknown" else told
            build: dict[str, object] = {
                "commit": f"{commit}-b{number}" if number else commit,
                "flags": {},
                "compiler": "unknown: built elsewhere",
            }
        else:
            build = _built(engine, backend, folder, log, output.fileno(), environment or {})
    facts = {
        "id": engine_id,
        "source": engine.source,
        "commit": engine.commit,
        "backend": backend,
        **build,
        "binaries_sha256": {file.name: sha256_of(file) for file in measuring_files(folder / "bin")},
    }
    (folder / "engine.json").write_text(json.dumps(facts, indent=1) + "\n")


def _built(
    engine: PypiEngine,
    backend: Backend,
    folder: Path,
    log: Path,
    output: int,
    environment: Mapping[str, str],
) -> dict[str, object]:
    """Build with the configured flags, then with each fallback's, until the self-test passes."""
    require_compiler()
    _logger.info("llama.cpp is fetched and built, which takes minutes; see %s", log)
    work = folder / "work"
    work.mkdir(parents=True, exist_ok=True)
    source, build, binaries = fetch(engine, work, output), work / "build", folder / "bin"
    failure: EngineError | None = None
    for fallback in ({}, *FALLBACKS):
        flags = engine.cmake | CMAKE_FLAGS[backend] | fallback
        compile_llama(source, build, backend, flags, output)
        install(build / "bin", binaries)
        require_device(backend, binaries / "llama-server", environment)
        _logger.info("self-test of the engine on a quantized model")
        try:
            self_test(binaries, backend, log, environment)
        except EngineError as error:
            failure = error
            _logger.info("the self-test failed, as on some virtual machines; other flags are tried")
            continue
        compiler = cmake_cache(build).get("CMAKE_CXX_COMPILER") or "c++"
        version = output_of(compiler, "--version").partition("\n")[0]
        return {"flags": flags, "compiler": version or "unknown"}
    assert failure is not None
    raise failure


def compile_llama(
    source: Path, build: Path, backend: Backend, flags: Mapping[str, str], output: int
) -> None:
    """Compile with merged sources, or one by one where another commit's cannot be merged."""
    build.mkdir(parents=True, exist_ok=True)
    # A later build of our programs must find the recipe that this build had.
    recipe = Path(shutil.copy2(RECIPE, build)).absolute()
    merged = {"CMAKE_PROJECT_llama.cpp_INCLUDE": str(recipe)}
    try:
        _cmake(source, build, backend, merged | {**flags}, output)
    except EngineError:
        _logger.info("llama.cpp does not compile with merged sources; compiling one by one")
        _cmake(source, build, backend, flags, output)


def _cmake(
    source: Path, build: Path, backend: Backend, flags: Mapping[str, str], output: int
) -> None:
    needs = f" for backend {backend} (what that needs: config/README.md, Your engine)"
    generator = ["-G", "Ninja"] if shutil.which("ninja") else []
    # A cache of another generator or other flags would prevail over the new ones.
    (build / "CMakeCache.txt").unlink(missing_ok=True)
    _logger.info("building llama.cpp")
    command = ["cmake", "-S", str(source), "-B", str(build), *generator]
    command += [f"-D{key}={value}" for key, value in flags.items()]
    run_build_tool(command, output, f"llama.cpp could not be configured{needs}")
    command = ["cmake", "--build", str(build), "--parallel", str(os.cpu_count() or 1)]
    command += [word for name in ALL_BINARIES for word in ("--target", name)]
    run_build_tool(command, output, f"llama.cpp could not be compiled{needs}")


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
        write_model(full, SELF_TEST_RECIPE)
        quantize(binaries, full, quantized, "Q4_K_M", log)
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


PROGRAM = "model_passes"
_SOURCE = Path(__file__).with_name(f"{PROGRAM}.cpp")


def require_build(engine: Path) -> str:
    """Return the sources of an engine; raises EngineError if nothing more can be built of them."""
    build = engine / "work" / "build"
    source = cmake_cache(build).get("CMAKE_HOME_DIRECTORY")
    # CMake's files name their folder, so a build that was moved or copied is of no use.
    if not source or not Path(source).resolve().is_relative_to(engine.resolve()):
        raise EngineError(
            f"the build of the engine is gone from {build}, or was made in another folder, and"
            f" timing passes needs it; delete {engine} to build it again, or set"
            " measurement.pass_samples to 0"
        )
    return source


def build_program(engine: Path, output: int) -> None:
    """Compile our program into the folder of an engine that was built from source."""
    source, build = require_build(engine), engine / "work" / "build"
    step = f"-DCMAKE_PROJECT_INCLUDE={_SOURCE.with_name('program.cmake')}"
    definitions = [step, f"-DSPECMOE_PROGRAM={_SOURCE}"]
    error = (
        f"{PROGRAM} could not be compiled against this llama.cpp"
        " (measurement.pass_samples: 0 measures without it)"
    )
    run_build_tool(["cmake", "-S", source, "-B", str(build), *definitions], output, error)
    jobs = str(os.cpu_count() or 1)
    command = ["cmake", "--build", str(build), "--parallel", jobs, "--target", PROGRAM]
    run_build_tool(command, output, error)
    shutil.copy2(build / "bin" / PROGRAM, engine / PROGRAM)
