"""The engine: llama.cpp fetched, built, tested on a real model, and described.

A build leaves a work folder that a later build continues from. `engine.json` has no time and no
path of the machine, so building the same engine again does not change it.
"""

import json
import logging
import os
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from specmoe.config.backend import CMAKE_FLAGS, Backend
from specmoe.config.engines import Engine, PathEngine
from specmoe.engine.binaries import ALL_BINARIES, install, measuring_files
from specmoe.engine.devices import require_device
from specmoe.engine.machine_id import output_of
from specmoe.engine.process import cmake_cache, run_build_tool
from specmoe.engine.self_test import forget_tests, mark_tested, self_test
from specmoe.engine.source import fetch
from specmoe.errors import EngineError
from specmoe.files import sha256_of

_COMPILERS = ("c++", "g++", "clang++")
# How sources are merged and compiled, see there.
RECIPE = Path(__file__).with_name("build.cmake")
# What must be installed to build for a backend; packages have Debian's and Ubuntu's names.
_TOOLKIT = {
    Backend.CUDA: "the CUDA toolkit (nvidia-cuda-toolkit)",
    Backend.HIP: "ROCm 6.1 or later (hipcc, libhipblas-dev, librocblas-dev)",
    Backend.VULKAN: "a shader compiler, and a loader and headers of 1.3.272 or later (glslc,"
    " libvulkan-dev, spirv-headers)",
}

_logger = logging.getLogger(__name__)


def make_engine(
    engine: Engine,
    engine_id: str,
    backend: Backend,
    folder: Path,
    log: Path,
    environment: Mapping[str, str] | None = None,
) -> None:
    """Make a tested engine in `folder`: `bin/` with its programs, and `engine.json`.

    `log` receives the output of every tool. `environment` is `measurement.environment`, which may
    choose the device that the engine is tested on. Raises EngineError.
    """
    forget_tests(folder)
    build = _first_that_works(engine, backend, folder, log, environment or {})
    facts = {
        "id": engine_id,
        "source": engine.source,
        "commit": engine.commit,
        "backend": backend,
        **build,
        "binaries_sha256": {file.name: sha256_of(file) for file in measuring_files(folder / "bin")},
    }
    (folder / "engine.json").write_text(json.dumps(facts, indent=1) + "\n")
    mark_tested(folder)


def _first_that_works(
    engine: Engine,
    backend: Backend,
    folder: Path,
    log: Path,
    environment: Mapping[str, str],
) -> dict[str, object]:
    """Return what to note of the first build that passes the self-test."""
    failures = []
    with log.open("w") as output:
        for build in _installed(engine, backend, folder, output.fileno()):
            # No other flags would find one.
            require_device(backend, folder / "bin" / "llama-server", environment)
            _logger.info("self-test of the engine on a quantized model")
            try:
                self_test(folder / "bin", backend, log, environment)
                return build
            except EngineError as error:
                if isinstance(engine, PathEngine):
                    raise
                failures.append(str(error))
    raise EngineError(f"no build passes the self-test, {len(failures)} tried; last: {failures[-1]}")


def _installed(
    engine: Engine, backend: Backend, folder: Path, output: int
) -> Iterator[dict[str, object]]:
    """Yield what to note of each build in turn, which is then installed in `folder`.

    The first has the configured flags, each next one a fallback's.
    """
    if isinstance(engine, PathEngine):
        install(Path(engine.path), folder / "bin")
        yield {"flags": {}, "compiler": "unknown: built elsewhere"}
        return
    _require_compiler()
    work = folder / "work"
    work.mkdir(parents=True, exist_ok=True)
    source = fetch(engine, work, output)
    for fallback in ({}, *engine.fallbacks):
        flags = engine.cmake | CMAKE_FLAGS[backend] | fallback
        Build(source, work / "build", backend, output).compile(flags)
        install(work / "build" / "bin", folder / "bin")
        yield {"flags": flags, "compiler": _compiler(work / "build")}
        _logger.info("self-test failed with flags %s", fallback or "as configured")


def _require_compiler() -> None:
    if not (os.environ.get("CXX") or any(map(shutil.which, _COMPILERS))):
        raise EngineError(
            "no C++ compiler found; on macOS run `xcode-select --install`,"
            " on Debian or Ubuntu `apt-get install build-essential`"
        )
    if not shutil.which("cmake"):
        raise EngineError(
            "no CMake found; install it with `pip install cmake`, on macOS also `brew install"
            " cmake`, on Debian or Ubuntu `apt-get install cmake`"
        )


@dataclass(frozen=True)
class Build:
    """A build of llama.cpp's sources; the file `output` receives what the tools print."""

    source: Path
    folder: Path
    backend: Backend
    output: int

    def compile(self, flags: dict[str, str]) -> None:
        """Compile with merged sources, or one by one where another commit's cannot be merged."""
        self.folder.mkdir(parents=True, exist_ok=True)
        # A later build of our programs must find the recipe that this build had.
        recipe = Path(shutil.copy2(RECIPE, self.folder)).absolute()
        self._configure({"CMAKE_PROJECT_llama.cpp_INCLUDE": str(recipe)} | flags)
        try:
            self._make()
        except EngineError:
            _logger.info("llama.cpp does not compile with merged sources; compiling one by one")
            self._configure(flags)
            self._make()

    def _configure(self, flags: dict[str, str]) -> None:
        generator = ["-G", "Ninja"] if shutil.which("ninja") else []
        # A cache of another generator or other flags would prevail over the new ones.
        (self.folder / "CMakeCache.txt").unlink(missing_ok=True)
        _logger.info("configuring llama.cpp")
        command = ["cmake", "-S", str(self.source), "-B", str(self.folder), *generator]
        command += [f"-D{key}={value}" for key, value in flags.items()]
        run_build_tool(command, self.output, self._fault("configured"))

    def _make(self) -> None:
        jobs = str(os.cpu_count() or 1)
        command = ["cmake", "--build", str(self.folder), "--parallel", jobs]
        command += [word for name in ALL_BINARIES for word in ("--target", name)]
        run_build_tool(command, self.output, self._fault("compiled"), "building llama.cpp")

    def _fault(self, what: str) -> str:
        needs = _TOOLKIT.get(self.backend)
        more = f" for backend {self.backend}, which needs {needs}" if needs else ""
        return f"llama.cpp could not be {what}{more}"


def _compiler(build: Path) -> str:
    """Return the first line of the version that a build's C++ compiler prints."""
    printed = output_of(cmake_cache(build).get("CMAKE_CXX_COMPILER") or "c++", "--version")
    return printed.partition("\n")[0] or "unknown"
