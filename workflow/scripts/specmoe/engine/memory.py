"""Whether the memory of a machine holds all sides of a block at once."""

from specmoe.config.backend import COPYING, Backend

# Beside the weights of each process: context, recurrent states, compute buffers.
WORKING_BYTES = 10**9
# A dense model of 32 layers caches so much for each token; each request at once has a context.
CACHE_BYTES_PER_TOKEN = 2**17
# macOS lets a GPU wire about three quarters of the memory; drivers and the desktop need the rest.
USABLE = {
    **{Backend.METAL: 0.75, Backend.CPU: 0.9},
    **{Backend.CUDA: 0.95, Backend.HIP: 0.95, Backend.VULKAN: 0.9},
}


def usable_memory(memory_bytes: int, gpu_memory_bytes: int | None, backend: Backend) -> int:
    """Return the bytes of memory that models can use."""
    own = gpu_memory_bytes if backend in COPYING else None
    return round((own or memory_bytes) * USABLE[backend])


def working_bytes(slots: int, context: int) -> int:
    """Return the bytes that a process with so many slots needs beside its weights."""
    return WORKING_BYTES + (slots - 1) * context * CACHE_BYTES_PER_TOKEN


def bytes_together(
    target_bytes: int,
    draft_bytes: int,
    sides: int,
    speculating: int,
    backend: Backend,
    working: int = WORKING_BYTES,
) -> int:
    """Return the bytes that a block's processes need while all are live.

    `sides` counts all processes, `speculating` those with a draft; each needs `working` beside its
    weights. `COPYING` backends copy the weights of each process. Elsewhere files are mapped and
    shared; what the CPU backend repacks is not, and is found by measuring (`measure.paired`).
    """
    if backend in COPYING:
        weights = sides * target_bytes + speculating * draft_bytes
    else:
        weights = target_bytes + (draft_bytes if speculating else 0)
    return weights + sides * working
