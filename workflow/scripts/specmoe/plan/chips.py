"""The table of memory bandwidths by chip, `resources/hardware/memory_bandwidth.yaml`."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

GB = 10**9  # vendors give bandwidth in powers of ten


def known_bandwidth(chips: Path, names: Sequence[str]) -> tuple[float, str] | None:
    """Return the bandwidth of the first name in the table, and its source.

    Names match as a whole: `Apple M2 Ultra` does not match `Apple M2`.
    """
    entries = _entries(chips)
    for name in filter(entries.__contains__, names):
        entry = entries[name]
        return entry["gb_per_second"] * GB, f"table: {name}, {entry['source']}"
    return None


def bandwidth_by_chip(chips: Path) -> dict[str, float]:
    """Return the bandwidth of every name in the table, in GB/s."""
    return {name: float(entry["gb_per_second"]) for name, entry in _entries(chips).items()}


def _entries(chips: Path) -> dict[str, dict[str, Any]]:
    table = yaml.load(chips.read_text(encoding="utf-8"), yaml.CSafeLoader)
    return {name: entry for entry in table for name in entry["names"]}
