"""Whether a divergence is a tie, by how far the batch size alone moves the target's gap.

A fixed number of nats would be right for one file on one machine only. On two cores of an AMD EPYC,
batches move a gap of the synthetic campaign's targets by up to 0.31 nats at four bits and 0.13 at
eight (tests/benchmarks/README.md). So each target is asked at its own divergences.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple


class Gap(NamedTuple):
    """The target's gap, in nats, at the first token that differs from the baseline's."""

    position: int
    gap_nats: float  # how far the run's token is behind the baseline's
    # How far batches move such gaps of this target, with the same options, here or elsewhere.
    moved_nats: float
    closed_by: int | None  # the narrowest batches in which the target itself takes it


def gaps_of(judged: Mapping[str, Any]) -> dict[str, Gap]:
    """Return the gap of each run of a target that left its baseline.

    `judged` is the answer of `divergence.judge_all`. What was answered before batches were asked
    about decides nothing and is left out.
    """
    asked = [one for one in judged["divergences"] if "gap_nats_by_width" in one]
    moved: dict[str, float] = {}
    for one in asked:
        gaps = one["gap_nats_by_width"].values()
        widest = max((abs(gap - one["gap_nats"]) for gap in gaps), default=0.0)
        moved[_setting(one)] = max(widest, moved.get(_setting(one), 0.0))
    found = {}
    for one in asked:
        closing = [int(width) for width, gap in one["gap_nats_by_width"].items() if gap <= 0]
        closed_by = min(closing, default=None)
        gap = Gap(one["position"], one["gap_nats"], moved[_setting(one)], closed_by)
        found[one["run"]] = gap
    return found


def _setting(one: Mapping[str, Any]) -> str:
    """Return the target with its options, as the id of the baseline's block has it."""
    return str(one["baseline_block"].split("/")[1])
