"""Memory decides whether all sides of a block can be live at once."""

import pytest

from specmoe.config.backend import Backend
from specmoe.engine.memory import WORKING_BYTES, bytes_together, usable_memory

GB = 10**9


@pytest.mark.parametrize(
    ("backend", "gpu_memory", "usable"),
    [
        (Backend.CPU, None, 90 * GB),
        (Backend.METAL, None, 75 * GB),
        (Backend.CUDA, 40 * GB, 38 * GB),
        (Backend.CUDA, None, 95 * GB),  # the memory of the GPU is unknown
        (Backend.HIP, 40 * GB, 38 * GB),
        (Backend.VULKAN, 40 * GB, 36 * GB),
        (Backend.VULKAN, None, 90 * GB),  # a software driver
        (Backend.CPU, 40 * GB, 90 * GB),  # the GPU is not used
    ],
)
def test_models_can_use_a_share_of_the_memory_of_their_backend(backend, gpu_memory, usable):
    assert usable_memory(100 * GB, gpu_memory, backend) == usable


@pytest.mark.parametrize("backend", [one for one in Backend if one != Backend.AUTO])
def test_processes_share_mapped_weights_and_have_their_own_on_a_device(backend):
    mapped = backend in (Backend.CPU, Backend.METAL)
    # A target alone and three sides with a draft.
    weights = 22 * GB if mapped else 4 * 20 * GB + 3 * 2 * GB
    assert bytes_together(20 * GB, 2 * GB, 4, 3, backend) == weights + 4 * WORKING_BYTES
    assert bytes_together(20 * GB, 2 * GB, 1, 0, backend) == 20 * GB + WORKING_BYTES
