"""What the audit allows for: the tolerances of its bounds, each with its reason."""

from typing import Annotated

from pydantic import Field

from specmoe.config.base import Name, Positive, Strict

Share = Annotated[float, Field(ge=0, lt=1)]


class AuditSettings(Strict):
    """Tolerances of the audit, and what it must be told about drafts."""

    # A single-token time is that of a model's fastest run; other runs of an idle machine come
    # within a few percent of it, and one with a draft may be the first that nothing slowed.
    # Artefacts are far away: the mildest row known to break this bound took 0.68 of the time it
    # needs.
    time_tolerance: Share = 0.1

    # A bandwidth that was probed may lie 9 percent below what compiled loops reach (see
    # `bandwidth_probe.probe`). One that is stated is a peak, which nothing exceeds.
    bandwidth_tolerance: Share = 0.1

    # The largest last-level cache of one common socket (AMD EPYC 9755: 512 MB). A model within it
    # may be read faster than memory allows; Apple's M2 Ultra has 96 MB, an NVIDIA H200 50 MB.
    cache_bytes: Positive = 512 * 10**6

    # A divergence is a tie if its gap is within so many times the widest move that batches alone
    # make at the places where a target's runs diverged. Those places are few, and the widest of few
    # falls short of the widest there is: of one 4-bit MoE it was 0.18 and 0.26 nats at the places
    # of two campaigns, 0.31 over 4500 contexts. Errors of the state give gaps of nats: of 306
    # planted ones 2 lie within once the widest move, 5 within twice (tests/benchmarks/tie_gaps.py).
    tie_factor: Annotated[float, Field(ge=1)] = 2.0

    # By which model a draft is timed that was not measured alone: the same network in a file of
    # another type, or the same file under another id.
    draft_stand_ins: dict[Name, Name] = Field(
        default={"draft_0.8b": "dense_0.8b", "draft_2b": "dense_2b"}
    )

    # A target that drafts for itself disagrees with itself in near ties alone.
    self_acceptance: Share = 0.95

    # Drafts that know nothing of the target. They agree by chance, or where any text repeats.
    unrelated_drafts: list[Name] = Field(default=[])
    unrelated_acceptance: Share = 0.05
