"""Load of one core, to see what measures beside it: arithmetic, or a stream through memory.

It uses a share of the core's time in every tenth of a second, until it is ended.
"""

import argparse
import time
from itertools import cycle

import numpy as np

PERIOD_S = 0.1
STREAM_BYTES = 256 << 20  # more than caches hold

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--kind", choices=["arithmetic", "memory"], default="arithmetic")
parser.add_argument("--share", type=float, default=0.33)
given = parser.parse_args()
parts = cycle(np.array_split(np.ones(STREAM_BYTES // 8), 64))
while True:
    began, used_s = time.monotonic(), time.process_time()
    while time.process_time() < used_s + given.share * PERIOD_S:
        if given.kind == "memory":
            np.negative(part := next(parts), out=part)
        else:
            sum(number * number for number in range(20_000))
    time.sleep(max(0.0, began + PERIOD_S - time.monotonic()))
