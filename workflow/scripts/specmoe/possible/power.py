"""How often each bound marks a claim: true comparisons, and the same made too fast on purpose.

`tests/benchmarks/possible_power.py` counts both in the shipped campaigns.
"""

import csv
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from specmoe.words import counted

FACTORS = (1.5, 2.0, 3.0, 5.0, 10.0)  # those of `audit.power`
COLUMNS = ("bound", "comparisons", "marked", *(f"marked_at_{factor:g}" for factor in FACTORS))


class Power(NamedTuple):
    """How many comparisons a bound was asked about, and how many it marked."""

    comparisons: int
    marked: int  # as they are, so wrongly
    too_fast: tuple[int, ...]  # with the speed multiplied by each of FACTORS

    @property
    def words(self) -> str:
        """One sentence for a reader."""
        known = f"{counted(self.comparisons, 'true comparison')} of the shipped campaigns"
        if not self.comparisons:
            return "no shipped campaign has a comparison that it applies to"
        shares = ", ".join(
            f"{count / self.comparisons:.0%} at {factor:g} times"
            for factor, count in zip(FACTORS, self.too_fast, strict=True)
        )
        return f"of {known} it marks {self.marked}; of the same made too fast, {shares} the speed"


def read_power(file: Path) -> Mapping[str, Power]:
    """Return the power of each bound by its name, that of all together under `all`."""
    with file.open(encoding="utf-8", newline="") as text:
        _, *lines = csv.reader(text)
    return {
        bound: Power(int(comparisons), int(marked), tuple(map(int, too_fast)))
        for bound, comparisons, marked, *too_fast in lines
    }
