"""NVIDIA's GPUs, by made answers of their driver's library."""

from types import SimpleNamespace

import pynvml
import pytest

from specmoe.config.backend import Backend
from specmoe.engine import nvidia, taken_away
from specmoe.engine.taken_away import Condition, read_condition

L4 = {"Name": "NVIDIA L4", "MemoryInfo": SimpleNamespace(total=23034 * 2**20)}
SHARING = {"Name": "NVIDIA GB10"}


@pytest.fixture
def plant(monkeypatch):
    """Let a driver answer for GPUs: each has answers by the end of the question's name."""

    def plant(*gpus):
        def answer(gpu, name):
            if name not in gpu:
                raise pynvml.NVMLError_NotSupported
            return gpu[name]

        for ending in ("Name", "MemoryInfo", "ClockInfo", *REASONS):
            question = f"nvmlDeviceGet{ending}"
            asked = lambda gpu, *_, ending=ending: answer(gpu, ending)  # noqa: E731
            monkeypatch.setattr(pynvml, question, asked)
        monkeypatch.setattr(pynvml, "nvmlInit", lambda: None)
        monkeypatch.setattr(pynvml, "nvmlDeviceGetCount", lambda: len(gpus))
        monkeypatch.setattr(pynvml, "nvmlDeviceGetHandleByIndex", gpus.__getitem__)
        monkeypatch.setattr(pynvml, "nvmlDeviceGetHandleByUUID", lambda uuid: {"ClockInfo": 7})

    monkeypatch.setattr(taken_away.platform, "system", lambda: "Linux")
    return plant


REASONS = ("CurrentClocksEventReasons", "CurrentClocksThrottleReasons")


def gpu(clock, reasons, name=REASONS[0]):
    return {"ClockInfo": clock, name: reasons}


def test_gpus_have_a_name_and_memory_unless_they_share_it(plant):
    plant(L4, SHARING)
    assert nvidia.gpus() == [("NVIDIA L4", 23034 * 2**20), ("NVIDIA GB10", None)]


@pytest.mark.parametrize(
    ("gpus", "condition"),
    [
        ([gpu(345, 0x01)], Condition(345, False)),  # idle
        ([gpu(1410, 0x02)], Condition(1410, False)),  # clocks that a user set
        ([gpu(1695, 0x04)], Condition(1695, False)),  # software's power cap
        ([gpu(1980, 0x08)], Condition(1980, False)),  # a change of the power state
        ([gpu(1200, 0x20)], Condition(1200, True)),  # thermal slowdown by software
        ([gpu(600, 0x48)], Condition(600, True)),  # by hardware
        ([gpu(600, 0x84)], Condition(600, True)),  # power brake, beside the power cap
        ([gpu(1980, 0), gpu(600, 0x40)], Condition(600, True)),
        ([gpu(1980, 0x40, REASONS[1])], Condition(1980, True)),  # an older driver
        ([{}], Condition()),
        ([], Condition()),
    ],
)
def test_the_lowest_clock_and_any_throttling_are_read(plant, gpus, condition):
    plant(*gpus)
    assert read_condition(Backend.CUDA, "") == condition


def test_gpus_are_chosen_by_number_or_uuid(plant):
    plant(gpu(1000, 0), gpu(10, 0), gpu(2000, 0))
    assert read_condition(Backend.CUDA, "0, 2") == Condition(1000, False)
    assert read_condition(Backend.CUDA, "0,GPU-5e1f") == Condition(7, False)


def test_without_a_driver_there_is_no_gpu(monkeypatch):
    def absent():
        raise pynvml.NVMLError_LibraryNotFound

    monkeypatch.setattr(pynvml, "nvmlInit", absent)
    assert nvidia.gpus() == []
    assert nvidia.clock_and_throttling("") == (None, None)
