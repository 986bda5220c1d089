"""What a block asks of a cluster for its job: minutes and memory, by the plan's estimates."""

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

# An estimate assumes a machine, and the nodes may be others. A limit that is too high costs a place
# in the queue, one that is too low costs the block.
TIMES_LONGER = 4
LEAST_MINUTES = 15
TIMES_LARGER = 1.5
# Of the first attempt's memory that each further one adds. A job may have failed for another
# reason, and then no node need have twice the memory.
MORE_EACH = 0.5
UNKNOWN_MINUTES = 240
WHOLE_NODE_MB = 0  # what SLURM takes for all memory of a node


def planned_blocks(plan: Path) -> Mapping[str, Mapping[str, Any]]:
    """Return the plan's `estimated_s` and `memory_bytes`, each by block; empty without a plan."""
    try:
        facts = json.loads(plan.read_bytes())
        return {name: dict(facts[name]) for name in ("estimated_s", "memory_bytes")}
    except (OSError, ValueError, KeyError, TypeError):
        return {"estimated_s": {}, "memory_bytes": {}}


def asked_minutes(estimated_s: float | None, attempt: int) -> int:
    """Return the time limit of a block's job, longer in each further attempt."""
    if estimated_s is None:
        return UNKNOWN_MINUTES * attempt
    return attempt * max(LEAST_MINUTES, math.ceil(TIMES_LONGER * estimated_s / 60))


def asked_mb(memory_bytes: int | None, attempt: int) -> int:
    """Return the memory of a block's job in MB, more in each further attempt."""
    if memory_bytes is None:
        return WHOLE_NODE_MB
    larger = TIMES_LARGER * (1 + MORE_EACH * (attempt - 1))
    return math.ceil(larger * memory_bytes / 2**20)
