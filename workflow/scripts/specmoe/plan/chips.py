"""The table of memory bandwidths by chip, `resources/hardware/memory_bandwidth.yaml`."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import yaml

GB = 10**9  # vendors give bandwidth in powers of ten


def known_bandwidth(chips: Path, names: Sequence[str]) -> tuple[float, str] | None:
    """Return the bandwidth of the first name in the table, and its source.

    Names match as a whole: `Apple M2 Ultra` does not match `Apple M2`.
    """
    table = _entries(chips)
    for name in names:
        for entry in table:
            if name in entry["names"]:
                return entry["gb_per_second"] * GB, f"table: {name}, {entry['source']}"
    return None


def bandwidth_by_chip(chips: Path) -> dict[str, float]:
    """Return the bandwidth of every name in the table, in GB/s."""
    return dict(_named(_entries(chips)))


def _named(table: Sequence[Any]) -> Iterator[tuple[str, float]]:
    for entry in table:
        for name in entry["names"]:
            yield name, float(entry["gb_per_second"])


def _entries(chips: Path) -> list[Any]:
    return list(yaml.safe_load(chips.read_text(encoding="utf-8")))
