"""The machine of a measurement: its id, processor, memory and devices.

Module `description` describes it in full. The parsers for macOS and Arm Linux were tested on
recorded output only, those of NVIDIA's library on made answers.
"""

import logging
import os
import platform
import re
import stat
import subprocess
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import psutil

from specmoe.config.block import Arm, Block
from specmoe.config.engines import COPYING, Backend, engine_environment
from specmoe.errors import EngineError, MeasurementError
from specmoe.files import named_if_damaged, read_record, sha256_of_text

# A driver may first have to wake what it is asked about, or to compile its kernels.
TOOL_LIMIT_S = 60
POLL_S = 1.0  # rarely enough not to disturb what another process measures
FOLDER_OF_TESTS, _LOCK = "SPECMOE_TESTS_LOCK_FOLDER", "specmoe-measuring.lock"

_logger = logging.getLogger(__name__)


def machine_id() -> str:
    """Return 12 hex digits that identify this machine and reveal nothing else about it.

    The system's own id alone is not enough: machines set up from one image share it.
    """
    # In whole GiB, because kernels reserve a few MB more or less.
    memory = round(psutil.virtual_memory().total / 2**30)
    facts = system_id(), processor_name(), platform.machine(), psutil.cpu_count(), memory
    return sha256_of_text("\n".join(map(str, facts)))[:12]


def described_machine(description: Path) -> Any:
    """Return the description of this machine; raises MeasurementError if it is of another one."""
    machine = read_record(description)
    with named_if_damaged(description):
        known, chip = machine["id"], machine["chip"]
    if known != machine_id():
        raise MeasurementError(
            f"this campaign was begun on another machine ({chip}, {known}); this one"
            f" is {machine_id()} ({processor_name()}): give it a campaign.name of its own"
        )
    return machine


def system_id() -> str:
    """Return the id of the system, or the node's name if it has none."""
    if known := text_of(Path("/etc/machine-id")):
        return known
    ioreg = output_of("ioreg", "-rd1", "-c", "IOPlatformExpertDevice")
    uuid = re.search(r'"IOPlatformUUID" = "([^"]+)"', ioreg)
    return uuid[1] if uuid else platform.node()


def processor_name() -> str:
    """Return the processor's name, or its architecture if the system does not name it.

    On Arm, Linux names the board of small computers (`Raspberry Pi 5 Model B Rev 1.0`), and lscpu
    the cores of servers (`Neoverse-V1`). py-cpuinfo takes 1.4 s at every start, and knows no
    boards.
    """
    if platform.system() == "Darwin":
        name = output_of("sysctl", "-n", "machdep.cpu.brand_string")
    else:
        name = (
            _field("model name", text_of(Path("/proc/cpuinfo")))
            or text_of(Path("/sys/firmware/devicetree/base/model"))
            or _field("Model name", output_of("lscpu"))
        )
    return name or platform.processor() or platform.machine()


@contextmanager
def measuring_lock() -> Iterator[None]:
    """Hold the lock of measurements, after waiting for any other measurement on this machine.

    Who holds it already goes on. The kernel frees it when the process ends. Raises MeasurementError
    if no file can be opened there.
    """
    from filelock import FileLock, Timeout  # with asyncio, which rules need not import

    path = lock_path()
    lock = FileLock(path, mode=0o666, poll_interval=POLL_S, is_singleton=True)
    try:
        try:
            held = lock.acquire(blocking=False)
        except Timeout:
            words = "waiting for another measurement on this machine to end (it holds %s)"
            _logger.info(words, path)
            held = lock.acquire()
    except OSError as error:
        raise MeasurementError(
            f"{path} cannot be opened as the lock of measurements ({error.strerror}); its owner or"
            " an administrator must delete it"
        ) from error
    with held:
        yield


def lock_path() -> Path:
    """Return the lock file, which is the same for all users and campaigns of the machine."""
    # Tests measure side by side, each process with a folder of its own.
    if "PYTEST_VERSION" in os.environ and FOLDER_OF_TESTS in os.environ:
        return Path(os.environ[FOLDER_OF_TESTS], _LOCK)
    # Jobs may have a TMPDIR of their own, so it is in a folder that all users write to.
    shared = Path("/run/lock")
    everybody = shared.is_dir() and shared.stat().st_mode & stat.S_IWOTH
    return (shared if everybody else Path("/tmp")) / _LOCK  # noqa: S108


def physical_cores() -> int:
    """Return the number of physical cores, or of logical ones if that is unknown.

    Batch systems and containers may bind the process to fewer.
    """
    cores = psutil.cpu_count(logical=False) or os.cpu_count() or 1
    # macOS has no such call.
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else cores
    return min(cores, usable)


def text_of(file: Path) -> str:
    """Return the text of a system file; empty if it cannot be read."""
    with suppress(OSError):
        # Strings of a device tree end in a null character.
        return file.read_text(encoding="utf-8", errors="replace").strip("\0 \n")
    return ""


def output_of(*command: str, environment: Mapping[str, str] | None = None) -> str:
    """Return what a tool prints in English; empty if it is absent, fails or hangs."""
    with suppress(OSError, subprocess.SubprocessError):
        return subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=True,
            env=environment or os.environ | {"LC_ALL": "C"},
            errors="replace",
            text=True,
            timeout=TOOL_LIMIT_S,
        ).stdout.strip()
    return ""


def help_of(program: Path) -> str:
    """Return what a program of an engine tells of its words; empty if it does not run."""
    # llama-quantize ends as if it failed.
    return output_of("sh", "-c", '"$0" --help; exit 0', str(program))


def build_of(server: Path) -> tuple[str, int]:
    """Return the commit and the number of an engine's build; outside a clone, `unknown` and 0."""
    # As `version: 8323 (9c8d7e6f1)`, later `version: 0.5.0 (build 10210, commit 000547513)`.
    said = output_of("sh", "-c", '"$0" --version 2>&1', str(server))
    match = re.search(r"version: (?:\S+ \(build )?(\d+)(?:, commit |\s*\()(\w+)\)", said)
    return (match[2], int(match[1])) if match else ("unknown", 0)


def _field(name: str, text: str) -> str:
    """Return the first value of a field in lines like `name : value`, indented or not."""
    match = re.search(rf"^\s*{name}\s*:[ \t]*(.+)$", text, re.MULTILINE)
    return match[1].strip() if match else ""


# Beside the weights of each process: context, recurrent states, compute buffers.
WORKING_BYTES = 10**9
# A dense model of 32 layers caches so much for each token; each request at once has a context.
CACHE_BYTES_PER_TOKEN = 2**17
# macOS lets a GPU wire about three quarters of the memory; drivers and the desktop need the rest.
USABLE = {Backend.METAL: 0.75, Backend.CUDA: 0.95, Backend.HIP: 0.95}  # of others 0.9


def usable_memory(memory_bytes: int, gpu_memory_bytes: int | None, backend: Backend) -> int:
    """Return the bytes of memory that models can use."""
    of_gpu = gpu_memory_bytes if backend in COPYING else None
    return round((of_gpu or memory_bytes) * USABLE.get(backend, 0.9))


def memory_needed(
    block: Block, arms: Iterable[Arm], sizes: Mapping[str, int], backend: Backend
) -> int:
    """Return the bytes of memory that arms of a block need at once; `sizes` are models' files."""
    files = [block.files_of(arm) for arm in arms]
    # Each process has a copy of the weights: on a GPU, or as the CPU backend repacks them. Metal
    # alone computes on the mapped files, which processes share.
    models = [*chain.from_iterable(files)]
    weights = sum(sizes[model] for model in ({*models} if backend == Backend.METAL else models))
    cache = (block.slots - 1) * block.context * CACHE_BYTES_PER_TOKEN
    return weights + len(files) * (WORKING_BYTES + cache)


# The names that llama.cpp gives to the devices of a backend, less their number.
_PREFIX = {Backend.CUDA: "CUDA", Backend.HIP: "ROCm", Backend.VULKAN: "Vulkan"}
# common/arg.cpp: `  Vulkan0: a name (24564 MiB, 23000 MiB free)`
_LINE = re.compile(r"^  (\w+?\d+): (.+) \((\d+) MiB, \d+ MiB free\)$", re.MULTILINE)


class Device(NamedTuple):
    """A device as the engine names it."""

    name: str
    description: str
    memory_bytes: int


def list_devices(server: Path, environment: Mapping[str, str]) -> list[Device] | None:
    """Return the devices that a llama-server finds; None if it cannot list them."""
    whole = engine_environment(environment, os.environ)
    printed = output_of(str(server), "--list-devices", environment=whole)
    if not printed:
        return None
    return [Device(name, what, int(size) * 2**20) for name, what, size in _LINE.findall(printed)]


def devices_of(
    engine: Path | None, backend: Backend, environment: Mapping[str, str]
) -> list[Device]:
    """Return the devices that an engine lists, by its engine.json; none without a GPU or engine."""
    if engine is None or backend == Backend.CPU:
        return []
    return list_devices(engine.with_name("bin") / "llama-server", environment) or []


def require_device(backend: Backend, server: Path, environment: Mapping[str, str]) -> None:
    """Raise EngineError if a llama-server finds no device of its backend.

    It would compute on the CPU and not say so. Engines that cannot list devices are trusted.
    """
    if backend not in _PREFIX:
        return
    devices = list_devices(server, environment)
    if devices is not None and not any(name.startswith(_PREFIX[backend]) for name, *_ in devices):
        raise EngineError(
            f"no device for backend {backend}: install a driver of the GPU, which `nvidia-smi`,"
            " `rocminfo` or `vulkaninfo` must then list (config/README.md, Your engine)"
        )


# The reasons for a lower clock that count (nvml.h): thermal slowdown by software (0x20) or hardware
# (0x40), and the power brake of the power supply (0x80). Not these: an idle GPU, clocks that a user
# set, the software's power cap (the normal state of full load), and the general bit of the
# hardware, which a change of the power state sets too.
_THROTTLED = 0x20 | 0x40 | 0x80


def nvidia_gpus() -> list[tuple[str, int | None]]:
    """Return the name of each GPU and the bytes of its memory, None if it shares the system's."""
    asked = _ask_gpus("", "Name", "MemoryInfo")
    return [(str(name), memory.total if memory else None) for name, memory in asked]


def is_throttled(chosen: str) -> bool | None:
    """Return whether one of the GPUs lowers its clock; None is unknown.

    `chosen` has their numbers or UUIDs, as CUDA_VISIBLE_DEVICES; empty means all.
    """
    asked = _ask_gpus(chosen, "CurrentClocksEventReasons")
    known = [bool(reasons & _THROTTLED) for [reasons] in asked if reasons is not None]
    return any(known) if known else None


def _ask_gpus(chosen: str, *questions: str) -> list[list[Any]]:
    """Return what each NVIDIA GPU answers to questions, with None where it cannot.

    None of them without a driver, or if a chosen GPU is absent.
    """
    import pynvml  # it takes a twentieth of a second

    def answer(gpu: Any, question: str) -> Any:
        with suppress(pynvml.NVMLError):
            return getattr(pynvml, f"nvmlDeviceGet{question}")(gpu)
        return None

    with suppress(pynvml.NVMLError):
        pynvml.nvmlInit()  # repeated calls only count
        names = chosen.replace(" ", "").split(",") if chosen else []
        gpus = [
            pynvml.nvmlDeviceGetHandleByIndex(int(name))
            if name.isdecimal()
            else pynvml.nvmlDeviceGetHandleByUUID(name)
            for name in names or map(str, range(pynvml.nvmlDeviceGetCount()))
        ]
        return [[answer(gpu, question) for question in questions] for gpu in gpus]
    return []
