"""The tolerances of the audit, each with its reason."""

from typing import Annotated

from pydantic import Field

from specmoe.config.base import AboveZero, Name, Positive, Share, Strict


class AuditSettings(Strict):
    """Tolerances of the audit, and what it cannot know about drafts."""

    # The bound uses a model's fastest single-token time. Other runs on an idle machine come within
    # a few percent of it, and a run with a draft may be the first that nothing slowed down.
    # Artefacts are far away: the mildest row known to break the bound took 0.68 of the time it
    # needs.
    time_tolerance: Share = 0.1
    """share by which a run may undercut the time its draft needs"""

    # A probed bandwidth can be 9 percent below what compiled loops reach (see
    # `plan.machine.probe`). A stated bandwidth is a peak, which nothing exceeds.
    bandwidth_tolerance: Share = 0.1
    """share by which a run may exceed the memory bandwidth"""

    # The largest last-level cache of a common socket (AMD EPYC 9755) has 512 MB; Apple's M2 Ultra
    # has 96 MB, an NVIDIA H200 50 MB.
    cache_bytes: Positive = 512 * 10**6
    """a model of at most so many bytes may be read from the cache, faster than from memory"""

    # The diverging places of a target are few, and the widest move among few is smaller than the
    # widest of all: for one 4-bit MoE it was 0.18 and 0.26 nats in two campaigns, and 0.31 over
    # 4500 contexts. Errors of the state give gaps of nats: of 306 planted ones, 2 are within the
    # widest move and 5 within twice the widest move (tests/benchmarks/README.md).
    tie_factor: Annotated[float, Field(ge=1)] = 2.0
    """a divergence is a tie if its gap is at most this many times the widest move that batches
    alone cause at the places where the target's runs diverge; beside other requests, `tie_cap_nats`
    alone holds"""

    # The widest move that batches of a working engine were seen to make is 0.31 nats, of a 4-bit
    # MoE over 4500 contexts, and the widest gap of a shipped campaign is 0.18. Twice the former
    # leaves room for other models; beyond it lies a faulty kernel, which must not excuse itself.
    tie_cap_nats: AboveZero = 0.6
    """no divergence with a wider gap is a tie, and batches that move gaps by more are a fault of
    the engine"""

    draft_stand_ins: dict[Name, Name] = Field(
        default={"draft_0.8b": "dense_0.8b", "draft_2b": "dense_2b"}
    )
    """for a draft that is not measured alone, the model that times it: the same network in a file
    of another type, or the same file under another id"""

    # A target disagrees with itself in near ties alone.
    self_acceptance: Share = 0.95
    """the least share that a target accepts of those of its own drafted tokens that it judges; it
    judges none after one that it rejects"""

    # Greedy text of an untrained model may repeat two tokens in turn, half of it each, as the
    # worst text of a shipped campaign does. NaN gives the same token always, whatever the prompt;
    # a loop of one token after some prompts only is the model's own.
    commonest_token: Share = 0.9
    """the largest share of a text that one token may have in all texts of a target"""

    # A run that leaves its baseline at a near tie may fall into a loop of its own: three runs of a
    # shipped campaign do, for 0.22 of their text.
    looping_excess: Share = 0.5
    """the largest share of a run's text that may be in loops beyond the share of its baseline's
    text that is; a loop is the same tokens, at most 128, three times or more"""

    # A loop is drafted whole: 1 + γ tokens a pass at best. If a tenth of the texts loops, that
    # makes (1 + γ)^0.1 of nothing, 1.25 at γ = 8; a fifth would make 1.55. Text that people want
    # hardly loops: of code, tables, poems and lists no kind has more than a thousandth of it in
    # loops on average (tests/benchmarks/README.md).
    looping_share: Share = 0.1
    """the largest share of a setting's text that may be in loops; what gains with more of it is
    advised for looping text only"""

    # Unrelated drafts agree by chance, or where a text repeats itself.
    unrelated_drafts: list[Name] = Field(default=[])
    """drafts that have nothing in common with any target"""
    unrelated_acceptance: Share = 0.05
    """the highest acceptance rate of an unrelated draft"""

    def widest_tie(self, moved_nats: float) -> float:
        """Return the widest gap of a tie, of a target whose gaps batches move by so much."""
        return min(self.tie_factor * moved_nats, self.tie_cap_nats)
