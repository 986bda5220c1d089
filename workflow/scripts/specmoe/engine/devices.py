"""The devices that an engine computes on, as it lists them itself."""

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from specmoe.config.backend import Backend
from specmoe.config.environment import engine_environment
from specmoe.engine.machine_id import output_of
from specmoe.errors import EngineError

LIMIT_S = 60.0  # a driver may compile its kernels first

# The names that llama.cpp gives to the devices of a backend, less their number.
_PREFIX = {Backend.CUDA: "CUDA", Backend.HIP: "ROCm", Backend.VULKAN: "Vulkan"}
_WAY_OUT = {
    Backend.CUDA: "`nvidia-smi` must list a GPU; install NVIDIA's driver",
    Backend.HIP: "`rocminfo` must list a GPU; install ROCm's driver (Debian: rocminfo)",
    Backend.VULKAN: "install a driver of the GPU (Debian: mesa-vulkan-drivers for AMD and Intel,"
    " nvidia-vulkan-icd for NVIDIA); Mesa's software driver is used only with"
    ' measurement.environment: {GGML_VK_VISIBLE_DEVICES: "0"}',
}
# common/arg.cpp: `  Vulkan0: a name (24564 MiB, 23000 MiB free)`
_LINE = re.compile(r"^  (\w+?\d+): (.+) \((\d+) MiB, \d+ MiB free\)$", re.MULTILINE)
# Drivers that compute on the processor.
_SOFTWARE = ("llvmpipe", "SwiftShader")


class Device(NamedTuple):
    """A device as the engine names it."""

    name: str
    description: str
    memory_bytes: int

    @property
    def is_software(self) -> bool:
        """Whether its driver computes on the processor, in the system's memory."""
        return self.description.startswith(_SOFTWARE)


def list_devices(server: Path, environment: Mapping[str, str]) -> list[Device] | None:
    """Return the devices that a llama-server finds; None if it cannot list them.

    `environment` is `measurement.environment`, which may choose among them.
    """
    own = engine_environment(environment, os.environ)
    printed = output_of(str(server), "--list-devices", environment=own, limit_s=LIMIT_S)
    if not printed:
        return None
    return [Device(name, what, int(size) * 2**20) for name, what, size in _LINE.findall(printed)]


def require_device(backend: Backend, server: Path, environment: Mapping[str, str]) -> None:
    """Raise EngineError if a llama-server finds no device of its backend.

    It would compute on the CPU then, in silence. Engines that cannot list devices are believed.
    """
    if backend not in _PREFIX:
        return
    devices = list_devices(server, environment)
    if devices is not None and not any(one.name.startswith(_PREFIX[backend]) for one in devices):
        raise EngineError(f"no device for backend {backend}: {_WAY_OUT[backend]}")
