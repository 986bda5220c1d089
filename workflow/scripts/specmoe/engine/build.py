"""The engine: llama.cpp fetched, built, tested on a real model, and described.

A build leaves a work folder that a later build continues from. Its results are `bin/` and
`engine.json`. The latter has no time and no path of the machine, so building the same engine again
does not change it.
"""

import json
import logging
import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from specmoe.config.backend import CMAKE_FLAGS, Backend
from specmoe.config.engines import GitEngine, PathEngine, PypiEngine
from specmoe.engine.binaries import ALL_BINARIES, engine_files, install, is_alias
from specmoe.engine.devices import require_device
from specmoe.engine.process import run_build_tool
from specmoe.engine.processor_probe import Outcome, compiler_command, probe_processor
from specmoe.engine.self_test import self_test
from specmoe.engine.source import fetch
from specmoe.engine.tested import forget_tests, mark_tested
from specmoe.engine.toolkit import TOOLKIT, missing_part
from specmoe.errors import EngineError
from specmoe.files import sha256_of
from specmoe.models.converter import CONVERTER

# The converter's script, its models, and the GGUF library of its version.
CONVERTER_PARTS = (CONVERTER, "conversion", "gguf-py")
# How sources are merged and compiled, see there.
RECIPE = Path(__file__).with_name("build.cmake")

_logger = logging.getLogger(__name__)


def make_engine(
    engine: PypiEngine | GitEngine | PathEngine,
    engine_id: str,
    backend: Backend,
    folder: Path,
    log: Path,
    environment: Mapping[str, str] | None = None,
) -> None:
    """Make a tested engine in `folder`: `bin/` with its programs, and `engine.json`.

    An engine built from source also has its converter in `converter/`. `log` receives the output of
    every tool. `environment` is `measurement.environment`, which may choose the device that the
    engine is tested on. Raises EngineError.
    """
    environment = environment or {}
    build: dict[str, object] = {"flags": {}, "compiler": "unknown: built elsewhere"}
    forget_tests(folder)
    with log.open("w") as output:
        if isinstance(engine, PathEngine):
            install(Path(engine.path), folder / "bin")
            require_device(backend, folder / "bin" / "llama-server", environment)
            self_test(folder / "bin", backend, log, environment)
        else:
            files = (folder, output.fileno(), log)
            build = _build_until_it_works(engine, backend, *files, environment)
    facts = {
        "id": engine_id,
        "source": engine.source,
        "commit": engine.commit,
        "backend": backend,
        **build,
        "binaries_sha256": {
            file.name: sha256_of(file)
            for file in engine_files(folder / "bin")
            if not is_alias(file)
        },
    }
    (folder / "engine.json").write_text(json.dumps(facts, indent=1) + "\n")
    mark_tested(folder)


def _build_until_it_works(
    engine: PypiEngine | GitEngine,
    backend: Backend,
    folder: Path,
    output: int,
    log: Path,
    environment: Mapping[str, str],
) -> dict[str, object]:
    """Build with the configured flags, then with each fallback, until the self-test passes.

    Flags that turn on instructions that the processor traps are skipped.
    """
    _require_compiler()
    work = folder / "work"
    work.mkdir(parents=True, exist_ok=True)
    source = fetch(engine, work, output)
    _install_converter(source, folder / "converter")
    failures = []
    for fallback in _not_trapped(engine, backend, work, output):
        flags = engine.cmake | CMAKE_FLAGS[backend] | fallback
        _compile(source, work / "build", flags, output, backend)
        install(work / "build" / "bin", folder / "bin")
        # No other flags would find one.
        require_device(backend, folder / "bin" / "llama-server", environment)
        _logger.info("self-test of the engine on a quantized model")
        try:
            self_test(folder / "bin", backend, log, environment)
        except EngineError as error:
            failures.append(str(error))
            _logger.info("self-test failed with flags %s; see %s", fallback or "as configured", log)
            continue
        return {"flags": flags, "compiler": _compiler(work / "build")}
    raise EngineError(f"no build passes the self-test, {len(failures)} tried; last: {failures[-1]}")


def _not_trapped(
    engine: PypiEngine | GitEngine, backend: Backend, work: Path, output: int
) -> list[dict[str, str]]:
    """Return what to add to the configured flags in turn: nothing, then each fallback.

    Additions whose instructions this processor traps are left out. If that leaves none, the last
    one is returned, and the self-test decides.
    """
    additions = [{}, *engine.fallbacks]
    kept, trapped = [], []
    for addition in additions:
        probed = probe_processor(engine.cmake | CMAKE_FLAGS[backend] | addition, work, output)
        if probed.outcome == Outcome.TRAPPED:
            trapped.append((addition, probed.signal))
        else:
            kept.append(addition)
    if not kept:
        kept.append(trapped.pop()[0])
    for addition, signal in trapped:
        _logger.info(
            "this processor traps what the flags %s turn on (%s); building with %s instead",
            addition or "as configured",
            signal,
            kept[0] or "those as configured",
        )
    return kept


def _require_compiler() -> None:
    if not compiler_command({}):
        raise EngineError(
            "no C++ compiler found; on macOS run `xcode-select --install`,"
            " on Debian or Ubuntu `apt-get install build-essential`"
        )
    if not shutil.which("cmake"):
        raise EngineError(
            "no CMake found; install it with `pip install cmake`, on macOS also `brew install"
            " cmake`, on Debian or Ubuntu `apt-get install cmake`"
        )


def _compile(
    source: Path, build: Path, flags: dict[str, str], output: int, backend: Backend
) -> None:
    # A later build of pass_bench must find the recipe that this build had.
    build.mkdir(parents=True, exist_ok=True)
    recipe = Path(shutil.copy2(RECIPE, build)).absolute()
    _configure(
        source, build, {"CMAKE_PROJECT_llama.cpp_INCLUDE": str(recipe)} | flags, output, backend
    )
    try:
        _make(build, output, backend)
    except EngineError:
        # In another commit two sources may define the same name.
        _logger.info("llama.cpp does not compile with merged sources; compiling one by one")
        _configure(source, build, flags, output, backend)
        _make(build, output, backend)


def _configure(
    source: Path, build: Path, flags: dict[str, str], output: int, backend: Backend
) -> None:
    definitions = [f"-D{key}={value}" for key, value in flags.items()]
    generator = ["-G", "Ninja"] if shutil.which("ninja") else []
    # A cache of another generator or other flags would prevail over the new ones.
    with suppress(FileNotFoundError):
        (build / "CMakeCache.txt").unlink()
    _logger.info("configuring llama.cpp")
    command = ["cmake", "-S", str(source), "-B", str(build), *generator, *definitions]
    try:
        run_build_tool(command, output, f"llama.cpp could not be configured{_needs(backend)}")
    except EngineError:
        _require_parts(backend, build)
        raise
    _require_parts(backend, build)


def _make(build: Path, output: int, backend: Backend) -> None:
    targets = [word for name in ALL_BINARIES for word in ("--target", name)]
    command = ["cmake", "--build", str(build), "--parallel", str(os.cpu_count() or 1), *targets]
    fault = f"llama.cpp could not be compiled{_needs(backend)}"
    run_build_tool(command, output, fault, progress="building llama.cpp")


def _needs(backend: Backend) -> str:
    return f" for backend {backend}, which needs {TOOLKIT[backend]}" if backend in TOOLKIT else ""


def _require_parts(backend: Backend, build: Path) -> None:
    """Name what a build lacks, before minutes of compiling end in the compiler's own words."""
    if missing := missing_part(backend, build):
        raise EngineError(f"llama.cpp cannot be built for backend {backend}: {missing}")


def _install_converter(source: Path, folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    for name in CONVERTER_PARTS:
        part = source / name
        if part.is_dir():
            shutil.copytree(part, folder / name)
        elif part.is_file():  # older sources lack some parts
            shutil.copy2(part, folder)


def _compiler(build: Path) -> str:
    """Return the first line of the version that a build's C++ compiler prints."""
    cache = (build / "CMakeCache.txt").read_text()
    match = re.search(r"^CMAKE_CXX_COMPILER:\w+=(.+)$", cache, re.MULTILINE)
    path = match[1] if match else "c++"
    version = subprocess.run([path, "--version"], capture_output=True, text=True, check=False)
    return (version.stdout.splitlines() or ["unknown"])[0]
