"""How fast all cores together read memory: the bandwidth that bounds decoding on the CPU."""

import time
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import numpy as np
import numpy.typing as npt
import psutil

from specmoe.engine.machine_id import physical_cores

MOST_BYTES = 2**30
PASSES = 5
PASS_S = 0.25
START_LIMIT_S = 60  # for all threads to fill their parts; without it, one that fails stops the rest


def probe() -> float:
    """Measure the sustained bandwidth of reading the system's memory, in bytes a second.

    One thread per physical core reads its own part of up to 1 GiB, over and over; the best of
    five passes counts, after one to warm up. Takes about two seconds.

    The figure is what programs get, which is less than the peak that memory is sold by. On a
    two-core virtual machine (EPYC, Zen 5) it lay between 9 percent below and 8 percent above
    compiled loops that only read. It errs low while other programs use the memory, and high where
    caches hold a good part of 1 GiB.
    """
    threads = physical_cores()
    part = min(MOST_BYTES, psutil.virtual_memory().available // 8) // threads
    start = Barrier(threads, timeout=START_LIMIT_S)
    with ThreadPoolExecutor(threads) as pool:
        rates = list(pool.map(lambda _: _read_in_step(part, start), range(threads)))
    totals: list[float] = [sum(together) for together in zip(*rates, strict=True)]
    return max(totals)


def _read_in_step(part: int, start: Barrier) -> list[float]:
    """Return this thread's rate in each pass, begun with the other threads of the barrier."""
    # Filled by the thread that reads it, so that it lies in the memory nearest to its core.
    numbers = np.ones(part // 4, np.int32)
    rates = []
    for seconds in [PASS_S / 2, *[PASS_S] * PASSES]:
        start.wait()
        rates.append(_rate(numbers, seconds))
    return rates[1:]


def _rate(numbers: npt.NDArray[np.int32], seconds: float) -> float:
    began, count = time.perf_counter(), 0
    while (elapsed := time.perf_counter() - began) < seconds:
        # Of numpy's reductions, the one nearest to compiled code that only reads: others take
        # longer for arithmetic, and `dot` starts threads of its own.
        numbers.max()
        count += numbers.nbytes
    return count / elapsed
