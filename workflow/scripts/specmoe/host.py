"""What machine a campaign runs on."""

import hashlib
import os
import platform
from pathlib import Path

import psutil


def host_id() -> str:
    """Return 12 hex digits that tell this machine from others and say nothing else about it."""
    facts = [platform.node(), platform.machine(), processor_name(), str(psutil.cpu_count())]
    return hashlib.sha256("\n".join(facts).encode()).hexdigest()[:12]


def processor_name() -> str:
    """Return the processor's name as the system gives it, or the architecture's."""
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        for line in cpuinfo.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def physical_cores() -> int:
    """Return the number of physical cores, or of logical ones where the system does not tell."""
    return psutil.cpu_count(logical=False) or os.cpu_count() or 1


def load_average() -> float:
    """Return the one-minute load average."""
    return os.getloadavg()[0]


def describe() -> dict[str, str | int]:
    """Return what a paper says of the machine; sizes are in bytes."""
    return {
        "id": host_id(),
        "processor": processor_name(),
        "physical_cores": physical_cores(),
        "logical_cores": os.cpu_count() or 1,
        "memory_bytes": psutil.virtual_memory().total,
        "system": f"{platform.system()} {platform.release()}",
    }
