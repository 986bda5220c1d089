"""Our own programs of the engine, compiled against its libraries: `pass_bench`, `read_agreement`.

Their sources, which lie beside this module, say what each does, and why no program of llama.cpp
does it.
"""

import os
import shutil
from pathlib import Path

from specmoe.engine.process import cmake_cache, run_build_tool
from specmoe.errors import EngineError

PASS_BENCH, READ_AGREEMENT = "pass_bench", "read_agreement"
PROGRAMS = (PASS_BENCH, READ_AGREEMENT)
_BUILD_STEP = Path(__file__).with_name("programs.cmake")


def build_programs(engine: Path, output: int) -> None:
    """Compile the programs into the folder of an engine that was built from source.

    The file `output` receives what the tools print. Raises EngineError.
    """
    build = engine / "work" / "build"
    source = cmake_cache(build).get("CMAKE_HOME_DIRECTORY")
    # CMake's files name their folder, so a build that was moved or copied is of no use.
    if not source or not Path(source).resolve().is_relative_to(engine.resolve()):
        gone = "of the engine was made in another folder than" if source else "is gone from"
        raise EngineError(
            f"the build {gone} {build}, and timing passes needs it; delete {engine} to build it"
            " again, or set measurement.pass_samples to 0"
        )
    sources = ";".join(str(Path(__file__).with_name(f"{name}.cpp")) for name in PROGRAMS)
    definitions = [f"-DCMAKE_PROJECT_INCLUDE={_BUILD_STEP}", f"-DSPECMOE_PROGRAMS={sources}"]
    fault = (
        f"{' and '.join(PROGRAMS)} could not be compiled against this llama.cpp"
        " (measurement.pass_samples: 0 measures without them)"
    )
    run_build_tool(["cmake", "-S", source, "-B", str(build), *definitions], output, fault)
    jobs = str(os.cpu_count() or 1)
    command = ["cmake", "--build", str(build), "--parallel", jobs, "--target", *PROGRAMS]
    run_build_tool(command, output, fault)
    for name in PROGRAMS:
        shutil.copy2(build / "bin" / name, engine / name)
