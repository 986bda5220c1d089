"""Load of one core, to see what measures beside it: arithmetic, or a stream through memory.

It works in some share of every tenth of a second until it is ended.
"""

import argparse
import time
from collections.abc import Callable
from itertools import cycle

import numpy as np

PERIOD_S = 0.1
STREAM_BYTES = 256 << 20  # more than caches hold
PARTS = 64  # of the stream, of a millisecond or so


def work_of(kind: str) -> Callable[[], object]:
    """Return what does a millisecond of work or so."""
    if kind == "arithmetic":
        return lambda: sum(number * number for number in range(20_000))
    parts = cycle(np.array_split(np.ones(STREAM_BYTES // 8), PARTS))
    return lambda: np.negative(part := next(parts), out=part)


def main() -> None:
    """Work until it is ended."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kind", choices=["arithmetic", "memory"], default="arithmetic")
    parser.add_argument("--share", type=float, default=0.33, help="of the core's time")
    given = parser.parse_args()
    work = work_of(given.kind)
    while True:
        began, worked_s = time.monotonic(), time.process_time()
        while time.process_time() < worked_s + given.share * PERIOD_S:
            work()
        time.sleep(max(0.0, began + PERIOD_S - time.monotonic()))


if __name__ == "__main__":
    main()
