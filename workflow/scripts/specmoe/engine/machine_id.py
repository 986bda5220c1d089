"""What every measurement records of its machine; `specmoe.plan.machine` describes it in full.

The parsers for macOS and Arm Linux were tested on recorded output only.
"""

import hashlib
import os
import platform
import re
import subprocess
from collections.abc import Mapping
from pathlib import Path

import psutil

from specmoe.errors import MeasurementError
from specmoe.files import named_if_damaged, read_record

# A driver may first have to wake what it is asked about.
TOOL_LIMIT_S = 20


def host_id() -> str:
    """Return 12 hex digits that identify this machine and reveal nothing else about it.

    They survive a new host name, network or kernel. The system's machine id alone is not enough:
    machines set up from one image share it.
    """
    facts = [
        machine_id(),
        processor_name(),
        platform.machine(),
        str(psutil.cpu_count()),
        # In whole GiB, because kernels reserve a few MB more or less.
        str(round(psutil.virtual_memory().total / 2**30)),
    ]
    return hashlib.sha256("\n".join(facts).encode()).hexdigest()[:12]


def refuse_other_host(description: Path) -> None:
    """Raise MeasurementError if the campaign's host.json exists and describes another machine."""
    if not description.exists():
        return
    host = read_record(description)
    with named_if_damaged(description):
        known, chip = host["id"], host["chip"]
    if known != host_id():
        raise MeasurementError(
            f"this campaign was begun on another machine ({chip}, {known}); this one"
            f" is {host_id()} ({processor_name()}): give it a campaign.name of its own"
        )


def machine_id() -> str:
    """Return the id of the system, or the node's name if it has none."""
    if known := text_of(Path("/etc/machine-id")):
        return known
    ioreg = output_of("ioreg", "-rd1", "-c", "IOPlatformExpertDevice")
    uuid = re.search(r'"IOPlatformUUID" = "([^"]+)"', ioreg)
    return uuid[1] if uuid else platform.node()


def processor_name() -> str:
    """Return the processor's name, or its architecture if the system does not name it.

    Linux names x86 processors. On Arm it names the board of small computers (`Raspberry Pi 5 Model
    B Rev 1.0`); for servers, lscpu names the cores (`Neoverse-V1`). The id of a machine needs the
    name at every start, and py-cpuinfo takes 1.4 s for it, and knows no boards.
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


def physical_cores() -> int:
    """Return the number of physical cores, or of logical ones if that is unknown.

    No more than this process may use: batch systems and containers bind their jobs to some.
    """
    cores = psutil.cpu_count(logical=False) or os.cpu_count() or 1
    # macOS has no such call.
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else cores
    return min(cores, usable)


def text_of(file: Path) -> str:
    """Return the text of a system file; empty if it cannot be read."""
    try:
        # Strings of a device tree end in a null character.
        return file.read_text(encoding="utf-8", errors="replace").strip("\0 \n")
    except OSError:
        return ""


def output_of(
    *command: str, environment: Mapping[str, str] | None = None, limit_s: float | None = None
) -> str:
    """Return what a tool prints; empty if it is absent, fails or hangs.

    Without `environment` it has this process's, and speaks English.
    """
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=True,
            env=environment or os.environ | {"LC_ALL": "C"},
            errors="replace",
            text=True,
            timeout=limit_s or TOOL_LIMIT_S,
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout.strip()


def _field(name: str, text: str) -> str:
    """Return the first value of a field in lines like `name : value`, indented or not."""
    found = re.search(rf"^\s*{name}\s*:[ \t]*(.+)$", text, re.MULTILINE)
    return found[1].strip() if found else ""
