"""The memory bandwidth of all cores together, which bounds decoding on the CPU."""

import time
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier, BrokenBarrierError

import numpy as np
import numpy.typing as npt
import psutil

from specmoe.engine.machine_id import physical_cores
from specmoe.files import gigabytes

MOST_BYTES = 2**30
PASSES = 5
PASS_S = 0.25


def probe() -> float:
    """Measure the sustained read bandwidth of the system's memory, in bytes a second.

    One thread per physical core reads its own part of up to 1 GiB repeatedly. The best of five
    passes counts, after a shorter one to warm up. The probe takes about two seconds.

    It measures what programs get, which is less than the advertised peak. On a two-core virtual
    machine (EPYC, Zen 5) it was between 9 percent below and 8 percent above compiled loops that
    only read. It is low while other programs use the memory, and high where caches hold a large
    part of 1 GiB.
    """
    threads = physical_cores()
    part = min(MOST_BYTES, psutil.virtual_memory().available // 8) // threads
    start = Barrier(threads)
    with ThreadPoolExecutor(threads) as pool:
        try:
            rates = list(pool.map(lambda _: _read_in_step(part, start), range(threads)))
        except BrokenBarrierError as error:
            raise MemoryError(f"no {threads} times {gigabytes(part)}") from error
    totals: list[float] = [sum(together) for together in zip(*rates, strict=True)]
    return max(totals)


def _read_in_step(part: int, start: Barrier) -> list[float]:
    """Return this thread's rate in each pass; all threads of the barrier start a pass together."""
    # The reading thread fills its part, so that the kernel places it nearest to the thread's core.
    try:
        numbers = np.ones(part // 4, np.int32)
    except MemoryError:
        start.abort()  # the others wait for this thread
        raise
    rates = []
    for seconds in [PASS_S / 2, *[PASS_S] * PASSES]:
        start.wait()
        rates.append(_rate(numbers, seconds))
    return rates[1:]


def _rate(numbers: npt.NDArray[np.int32], seconds: float) -> float:
    began, count = time.perf_counter(), 0
    while (elapsed := time.perf_counter() - began) < seconds:
        # Of numpy's reductions, `max` is nearest to compiled code that only reads: others spend
        # time on arithmetic, and `dot` starts threads of its own.
        numbers.max()
        count += numbers.nbytes
    return count / elapsed
