"""The id of a machine, and the name of its processor."""

import os
import platform
import re
import socket
import sys

import psutil
import pytest

from specmoe.engine import machine_id

IOREG = '+-o J475cAP\n    {\n      "IOPlatformUUID" = "01234567-89AB-CDEF-0123-456789ABCDEF"\n'
I7 = "12th Gen Intel(R) Core(TM) i7-12700K"
X86_CPUINFO = f"processor\t: 0\nmodel\t\t: 151\nmodel name\t: {I7}\nprocessor\t: 1\n"
ARM_CPUINFO = "processor\t: 0\nBogoMIPS\t: 108.00\nCPU part\t: 0xd0b\n"
ARM_LSCPU = "Architecture:  aarch64\n  Model name:  Neoverse-V1\n    Model:  1\n"


@pytest.fixture
def put(monkeypatch):
    """Make the system have these files, and a tool that prints a text."""

    def put(files, printed):
        texts = {f"/{path}": text for path, text in files.items()}
        monkeypatch.setattr(machine_id, "text_of", lambda file: texts.get(str(file), "").strip())
        monkeypatch.setattr(machine_id, "output_of", lambda *command: printed)

    return put


def test_the_id_of_a_machine_survives_another_name_and_not_other_hardware(monkeypatch):
    monkeypatch.setattr(machine_id, "text_of", lambda file: "3d1219c7")
    before = machine_id.host_id()
    assert re.fullmatch("[0-9a-f]{12}", before)
    monkeypatch.setattr(platform, "node", lambda: "laptop.elsewhere")
    monkeypatch.setattr(socket, "gethostname", lambda: "laptop.elsewhere")
    assert machine_id.host_id() == before
    # Machines of one image share the system's id.
    monkeypatch.setattr(psutil, "cpu_count", lambda logical=True: 1000)
    assert machine_id.host_id() != before


@pytest.mark.parametrize(
    ("file", "ioreg", "known"),
    [
        ("3d1219c7c4c5404aaa1f6d2a48adfda4\n", IOREG, "3d1219c7c4c5404aaa1f6d2a48adfda4"),
        ("", IOREG, "01234567-89AB-CDEF-0123-456789ABCDEF"),
        ("", "", platform.node()),
    ],
)
def test_a_system_knows_itself_by_its_file_its_platform_or_its_name(put, file, ioreg, known):
    put({"etc/machine-id": file}, ioreg)
    assert machine_id.machine_id() == known


@pytest.mark.parametrize(
    ("cpuinfo", "board", "lscpu", "name"),
    [
        (X86_CPUINFO, "", "", I7),
        (ARM_CPUINFO, "Raspberry Pi 5 Model B Rev 1.0", "", "Raspberry Pi 5 Model B Rev 1.0"),
        (ARM_CPUINFO, "", ARM_LSCPU, "Neoverse-V1"),
        ("", "", "", platform.processor() or platform.machine()),
    ],
)
def test_linux_names_a_processor_its_board_or_its_cores(
    put, monkeypatch, cpuinfo, board, lscpu, name
):
    monkeypatch.setattr(platform, "system", lambda: "Linux")
    put({"proc/cpuinfo": cpuinfo, "sys/firmware/devicetree/base/model": board}, lscpu)
    assert machine_id.processor_name() == name


def test_a_mac_names_its_chip(put, monkeypatch):
    monkeypatch.setattr(platform, "system", lambda: "Darwin")
    put({}, "Apple M2 Ultra")
    assert machine_id.processor_name() == "Apple M2 Ultra"


@pytest.mark.parametrize(
    ("command", "text"),
    [
        (["no-such-tool-anywhere"], ""),
        ([sys.executable, "-c", "print('half an answer'); raise SystemExit(1)"], ""),
        ([sys.executable, "-c", "import time; time.sleep(60)"], ""),
        ([sys.executable, "-c", r"import os; os.write(1, b'chip \xff')"], "chip �"),
    ],
)
def test_a_tool_that_is_absent_fails_or_hangs_gives_no_text(monkeypatch, command, text):
    monkeypatch.setattr(machine_id, "TOOL_LIMIT_S", 2.0)
    assert machine_id.output_of(*command) == text


def test_a_file_that_is_absent_has_no_text_and_invalid_bytes_are_no_fault(tmp_path):
    (tmp_path / "model").write_bytes(b"chip \xff\0")
    assert machine_id.text_of(tmp_path / "model") == "chip �"
    assert machine_id.text_of(tmp_path / "none") == ""


def test_this_machine_has_cores_and_a_name():
    assert 1 <= machine_id.physical_cores() <= psutil.cpu_count()
    assert machine_id.processor_name()


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="macOS binds no processes")
def test_a_job_that_is_bound_to_some_cores_computes_on_no_more():
    allowed = os.sched_getaffinity(0)
    try:
        os.sched_setaffinity(0, {min(allowed)})
        assert machine_id.physical_cores() == 1
    finally:
        os.sched_setaffinity(0, allowed)
