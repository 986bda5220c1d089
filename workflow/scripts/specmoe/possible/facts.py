"""A claim with what follows from it: the speeds, the rounds it may mean, what drafting costs."""

from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property

from specmoe.config.audit import AuditSettings
from specmoe.models.sizes import Size, split_by_active
from specmoe.possible.claim import Claim

GB = 1e9


@dataclass(frozen=True)
class Facts:
    """A claim with what follows from it."""

    claim: Claim
    settings: AuditSettings

    @cached_property
    def speedup(self) -> float | None:
        """Over the target alone, as claimed or from both speeds."""
        one = self.claim
        if one.speedup is not None:
            return one.speedup
        if one.claimed_tokens_per_second is None or one.baseline_tokens_per_second is None:
            return None
        return one.claimed_tokens_per_second / one.baseline_tokens_per_second

    @cached_property
    def baseline(self) -> float | None:
        """Tokens a second without a draft, as claimed or as they follow."""
        one = self.claim
        if one.baseline_tokens_per_second is not None or one.speedup is None:
            return one.baseline_tokens_per_second
        rate = one.claimed_tokens_per_second
        return None if rate is None else rate / one.speedup

    @cached_property
    def rate(self) -> float | None:
        """Tokens a second as claimed, or as they follow."""
        one = self.claim
        if one.claimed_tokens_per_second is not None or self.speedup is None:
            return one.claimed_tokens_per_second
        return None if self.baseline is None else self.baseline * self.speedup

    @cached_property
    def accepted(self) -> float | None:
        """The largest share of drafted tokens that is printed as the claimed one."""
        share = self.claim.acceptance_rate
        return None if share is None else min(1.0, share + rounding(share))

    @cached_property
    def drafted(self) -> float | None:
        """The tokens drafted in a round: as claimed, as they follow, or gamma."""
        one = self.claim
        if one.drafted_per_round is not None:
            return one.drafted_per_round
        if one.tokens_per_round is not None and one.acceptance_rate:
            return (one.tokens_per_round - 1) / one.acceptance_rate
        return one.gamma

    @cached_property
    def drafts_are_known(self) -> bool:
        """Whether `drafted` is a mean, and not the most that a round may draft."""
        one = self.claim
        follow = one.tokens_per_round is not None and bool(one.acceptance_rate)
        return one.drafted_per_round is not None or follow

    @cached_property
    def draft_steps(self) -> float | None:
        """The time of a drafted token over that of a token of the target alone; None: unknown."""
        one, baseline = self.claim, self.baseline
        if one.draft_ms == 0:
            return 0.0
        if baseline is None:
            return None
        if one.draft_ms is not None:
            return one.draft_ms * baseline / 1000
        rate = one.draft_tokens_per_second
        return None if rate is None else baseline / rate

    @cached_property
    def least_draft_steps(self) -> float:
        """The same, at least: the draft's weights are read for each of its tokens."""
        if self.draft_steps is not None:
            return self.draft_steps
        one = self.claim
        if one.draft_gb is None or one.bandwidth_gb_s is None or self.baseline is None:
            return 0.0
        return self.draft_bytes / GB / one.bandwidth_gb_s * self.baseline

    @cached_property
    def draft_bytes(self) -> float:
        """What drafting a token reads from memory; nothing if it fits in a cache."""
        count = (self.claim.draft_gb or 0) * GB
        return count if count > self.settings.cache_bytes else 0.0

    def tokens(self, drafted: float, accepted: float) -> float:
        """Return the tokens of a round, at most."""
        stated = self.claim.tokens_per_round
        return 1 + accepted * drafted if stated is None else stated + rounding(stated)

    @cached_property
    def rounds(self) -> list[tuple[float, float]]:
        """The rounds that the claim may mean: their tokens and their drafted tokens.

        Between the ends of that range every bound rises or falls all along.
        """
        drafted, stated = self.claim.drafted_per_round, self.claim.tokens_per_round
        accepted = 1.0 if self.accepted is None else self.accepted
        # As few are drafted as give the tokens of a round, or none.
        least = 0.0
        if stated is not None:
            least = max(0.0, stated - rounding(stated) - 1) / (accepted or 1.0)
        ends = [drafted]
        if drafted is None:
            ends = [least] if self.drafts_are_known else [least, self.claim.gamma]
            if stated is None and self.claim.gamma is None:
                return []
        return [(self.tokens(one, accepted), one) for one in ends if one is not None]

    @cached_property
    def size(self) -> Size | None:
        """The target's size, unless a cache may hold it; else what a mixture shares is unknown."""
        one = self.claim
        if one.weights_gb is None or one.weights_gb * GB <= self.settings.cache_bytes:
            return None
        whole = one.weights_gb * GB
        experts, used = int(one.experts or 0), int(one.experts_used or 0)
        always, routed = (0.0, whole) if experts else (whole, 0.0)
        if one.active_gb is not None:
            always, routed = split_by_active(whole, one.active_gb * GB, experts, used)
        return Size(round(whole), max(always, 0.0), routed, experts, used, 0, "the claim")


def rounding(value: float) -> float:
    """Return half a unit of the last digit that a number is printed with; none for 0 and 1."""
    if value in (0, 1):
        return 0.0
    exponent = Decimal(repr(float(value))).as_tuple().exponent
    assert isinstance(exponent, int)  # the value is finite
    return 0.5 * 10.0**exponent


def brief(value: float) -> str:
    """Return a number with the three digits that count, and large ones whole."""
    return f"{value:.0f}" if abs(value) >= 1000 else f"{value:.3g}"
