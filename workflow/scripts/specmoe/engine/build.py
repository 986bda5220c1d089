"""The engine: llama.cpp fetched, built, tried on a real model, and written down.

Fetching and building leave a work folder that a later build continues from; what counts is
`bin/` and `engine.json`, which holds no time and no path of the machine, so that building the
same engine again changes neither.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from specmoe.config.backend import CMAKE_FLAGS, Backend
from specmoe.config.environment import build_environment, engine_environment
from specmoe.config.schema import GitEngine, PathEngine, PypiEngine
from specmoe.config.synthetic_recipe import Recipe
from specmoe.engine.binaries import ALL_BINARIES, engine_files, install, is_alias
from specmoe.engine.processor_probe import Outcome, ask_processor, compiler_command
from specmoe.engine.server import Server, server_command
from specmoe.errors import EngineError, MeasurementError
from specmoe.files import engine_path, sha256_of
from specmoe.models.converter import CONVERTER
from specmoe.models.synthetic import write_model

# What runs the converter: itself, its models, and the GGUF library of its own version.
CONVERTER_PARTS = (CONVERTER, "conversion", "gguf-py")
PYPI_PACKAGE = "llama-cpp-python"
PYPI_PART = "/vendor/llama.cpp/"
# Every matrix must have rows of a multiple of 256 for K-quants.
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

Say = Callable[[str], None]


def make_engine(
    engine: PypiEngine | GitEngine | PathEngine,
    engine_id: str,
    backend: Backend,
    folder: Path,
    log: Path,
    say: Say,
) -> None:
    """Leave a tested engine in `folder`: `bin/` with its binaries, and `engine.json`.

    An engine built from source leaves its converter in `converter/` as well. `log` receives the
    output of every tool run; `say` is told how far it is. Raises EngineError.
    """
    build: dict[str, object] = {"flags": {}, "compiler": "unknown: built elsewhere"}
    with log.open("w") as output:
        if isinstance(engine, PathEngine):
            install(Path(engine.path), folder / "bin")
            self_test(folder / "bin", backend, log)
        else:
            build = _build_until_it_works(engine, backend, folder, output.fileno(), log, say)
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


def self_test(binaries: Path, backend: Backend, log: Path) -> None:
    """Quantize a small synthetic model and generate with it; raise EngineError if that fails.

    Only a quantized model reaches the matrix kernels that some virtual machines cannot run.
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
            with Server(command, server_log, start_limit_s=60, run_limit_s=60) as server:
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


def quantize(
    binaries: Path, source: Path, target: Path, kind: str, log: Path, imatrix: Path | None = None
) -> None:
    """Write `target`, the model `source` at the quantization `kind`, with llama-quantize.

    An importance matrix says which weights matter most. Raises EngineError.
    """
    options = ["--imatrix", str(imatrix)] if imatrix else []
    command = [str(binaries / "llama-quantize"), *options, str(engine_path(source))]
    command += [str(target), kind]
    with log.open("a") as output:
        code = subprocess.run(
            command,
            stdout=output,
            stderr=output,
            env=engine_environment({}, os.environ),
            check=False,
        ).returncode
    if code != 0:
        target.unlink(missing_ok=True)
        raise EngineError(f"llama-quantize ended with code {code} on {source}; see {log}")


def _build_until_it_works(
    engine: PypiEngine | GitEngine, backend: Backend, folder: Path, output: int, log: Path, say: Say
) -> dict[str, object]:
    """Build with the configured flags, then with each fallback, until the self-test passes.

    Flags for instructions that the processor traps are left out.
    """
    _require_compiler()
    work = folder / "work"
    work.mkdir(parents=True, exist_ok=True)
    source = _fetch(engine, work, output, say)
    _install_converter(source, folder / "converter")
    failures = []
    for fallback in _not_trapped(engine, backend, work, output, say):
        flags = engine.cmake | CMAKE_FLAGS[backend] | fallback
        _compile(source, work / "build", flags, output, say)
        install(work / "build" / "bin", folder / "bin")
        say("self-test of the engine on a quantized model")
        try:
            self_test(folder / "bin", backend, log)
        except EngineError as error:
            failures.append(str(error))
            say(f"self-test failed with flags {fallback or 'as configured'}; see {log}")
            continue
        return {"flags": flags, "compiler": _compiler(work / "build")}
    raise EngineError(f"no build passes the self-test, {len(failures)} tried; last: {failures[-1]}")


def _not_trapped(
    engine: PypiEngine | GitEngine, backend: Backend, work: Path, output: int, say: Say
) -> list[dict[str, str]]:
    """Return what to add to the configured flags in turn: nothing, and each fallback.

    What turns on instructions that this processor traps is left out, except for the last of all if
    nothing else remains: then the self-test decides.
    """
    additions = [{}, *engine.fallbacks]
    answers = [
        ask_processor(engine.cmake | CMAKE_FLAGS[backend] | addition, work, output)
        for addition in additions
    ]
    kept = [
        addition
        for addition, answer in zip(additions, answers, strict=True)
        if answer.outcome != Outcome.TRAPPED
    ] or additions[-1:]
    for addition, answer in zip(additions, answers, strict=True):
        if addition not in kept:
            say(
                f"this processor traps what the flags {addition or 'as configured'} turn on"
                f" ({answer.signal}); building with {kept[0] or 'those as configured'} instead"
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


def _fetch(engine: PypiEngine | GitEngine, work: Path, output: int, say: Say) -> Path:
    """Return the folder of llama.cpp's sources, fetched if this commit is not there yet."""
    source = work / f"source-{engine.commit}"
    if not source.exists():
        say(f"fetching llama.cpp {engine.commit}")
        with tempfile.TemporaryDirectory(dir=work) as scratch:
            if isinstance(engine, PypiEngine):
                fetched = _fetch_pypi(engine, Path(scratch), output)
            else:
                fetched = _fetch_git(engine, Path(scratch), output)
            fetched.rename(source)
    return source


def _fetch_pypi(engine: PypiEngine, folder: Path, output: int) -> Path:
    """Download the source distribution, check its digest, unpack the llama.cpp inside it."""
    requirement = folder / "requirement.txt"
    requirement.write_text(f"{PYPI_PACKAGE}=={engine.version} --hash=sha256:{engine.sha256}\n")
    # Not `--no-binary :all:`, which would build the build's own tools from source, CMake included.
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--no-binary", PYPI_PACKAGE]
    command += ["--require-hashes", "--requirement", str(requirement), "--dest", str(folder)]
    _run(command, output, f"{PYPI_PACKAGE} {engine.version} could not be downloaded")
    [archive] = folder.glob("*.tar.gz")
    if sha256_of(archive) != engine.sha256:
        raise EngineError(f"{archive.name} has not the SHA-256 of the config: {engine.sha256}")
    unpack(archive, folder, PYPI_PART)
    [unpacked] = folder.glob("*/vendor/llama.cpp")
    return unpacked


def unpack(archive: Path, folder: Path, part: str) -> None:
    """Unpack the members of a tar archive whose names hold `part`.

    Python's own check of members (`filter="data"`) came with 3.11.4, and Debian 12 has 3.11.2. So
    members that are neither files nor folders are left out, and a name that leads out of `folder`
    raises EngineError.
    """
    inside = folder.resolve()
    with tarfile.open(archive) as tar:
        for member in tar:
            if part not in member.name or not (member.isfile() or member.isdir()):
                continue
            if not (inside / member.name).resolve().is_relative_to(inside):
                raise EngineError(f"{archive.name} holds {member.name!r}, which leads out of it")
            member.mode = 0o755 if member.isdir() or member.mode & 0o100 else 0o644
            tar.extract(member, inside, set_attrs=True)


def _fetch_git(engine: GitEngine, folder: Path, output: int) -> Path:
    """Clone one tag and check that it is the commit it should be."""
    clone = folder / "clone"
    command = ["git", "clone", "--depth", "1", "--branch", engine.tag, "--", engine.url, str(clone)]
    _run(command, output, f"{engine.url} could not be cloned")
    head = subprocess.run(
        ["git", "-C", str(clone), "rev-parse", "HEAD"], capture_output=True, text=True, check=True
    ).stdout.strip()
    if not head.startswith(engine.commit):
        raise EngineError(
            f"tag {engine.tag} of {engine.url} is commit {head}, the config says {engine.commit}"
        )
    return clone


def _compile(source: Path, build: Path, flags: dict[str, str], output: int, say: Say) -> None:
    definitions = [f"-D{key}={value}" for key, value in flags.items()]
    generator = ["-G", "Ninja"] if shutil.which("ninja") else []
    # A changed generator or flag must not meet an old cache.
    with suppress(FileNotFoundError):
        (build / "CMakeCache.txt").unlink()
    say("configuring llama.cpp")
    _run(
        ["cmake", "-S", str(source), "-B", str(build), *generator, *definitions],
        output,
        "llama.cpp could not be configured",
    )
    targets = [word for name in ALL_BINARIES for word in ("--target", name)]
    command = ["cmake", "--build", str(build), "--parallel", str(os.cpu_count() or 1), *targets]
    _run(command, output, "llama.cpp could not be compiled", say)


def _run(command: list[str], output: int, fault: str, say: Say | None = None) -> None:
    """Run a tool with its output in a file, telling `say` of every tenth of a build."""
    told = -1
    with subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env=build_environment(os.environ),
        text=True,
        errors="replace",
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            os.write(output, line.encode())
            share = share_done(line)
            if say and share is not None and int(share * 10) > told:
                told = int(share * 10)
                say(f"building llama.cpp: {told * 10} %")
    if process.returncode != 0:
        raise EngineError(
            f"{fault}: {command[0]} ended with code {process.returncode}; see its log"
        )


def share_done(line: str) -> float | None:
    """Return the share done from a line of Ninja (`[3/216] ...`) or Make (`[ 12%] ...`)."""
    if match := re.match(r"\[(\d+)/(\d+)\]", line):
        return int(match[1]) / int(match[2])
    if match := re.match(r"\[ *(\d+)%\]", line):
        return int(match[1]) / 100
    return None


def _install_converter(source: Path, folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    for name in CONVERTER_PARTS:
        part = source / name
        if part.is_dir():
            shutil.copytree(part, folder / name)
        elif part.is_file():  # absent from sources that are older than the part
            shutil.copy2(part, folder)


def _compiler(build: Path) -> str:
    """Return the first line the C++ compiler of a build says of its version."""
    cache = (build / "CMakeCache.txt").read_text()
    match = re.search(r"^CMAKE_CXX_COMPILER:\w+=(.+)$", cache, re.MULTILINE)
    path = match[1] if match else "c++"
    version = subprocess.run([path, "--version"], capture_output=True, text=True, check=False)
    return (version.stdout.splitlines() or ["unknown"])[0]
