"""Tolerances of the audit: how far a valid run may pass a bound, each with its reason."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    """The tolerances. No key of the configuration changes them, so audits are comparable."""

    # Share by which a run may undercut the time that its passes and draft tokens need. The bound
    # uses a model's fastest single-token time. Other runs on an idle machine come within a few
    # percent of it, and a run with a draft model may be the first that nothing slowed down.
    # Artefacts are far away: the mildest row known to break the bound took 0.68 of that time.
    time_tolerance: float = 0.1

    # The fewest baseline runs of a model that show a steady machine, and the share of the fastest
    # speed that all of them are within. On a shared machine one model's baselines were between 27
    # and 66 tok/s within minutes, so a run may be faster than all of them. In draws from the
    # baselines of campaigns of such machines, of runs whose rounds cost no more than a token 3 to 4
    # in 10 break the bound of one baseline, up to 8 in 100 that of nine, and none of 10 000 that of
    # nine that are so close (tests/unit/audit/test_checks.py).
    steady_runs: int = 9
    steady_within: float = 0.1

    # A model that was timed with so many more tokens before it is as fast as with fewer. Reading
    # them is 3 percent of what a draft model of 135M parameters in four bits reads for a token.
    longer_context: int = 128  # tokens

    # Share by which a run may exceed what was ever read from memory. A probe can be 9 percent below
    # what compiled loops reach (see `plan.machine.probe`), and other work slows it. A stated
    # bandwidth is a peak, which nothing exceeds.
    bandwidth_tolerance: float = 0.1

    # A model of at most so many bytes may be read from a cache, faster than from memory. The
    # largest last-level cache of a common socket (AMD EPYC 9755) has 512 MB; Apple's M2 Ultra has
    # 96 MB, an NVIDIA H200 50 MB.
    cache_bytes: int = 512 * 10**6

    # A divergence is a tie if its gap is at most so many times the widest move that batches alone
    # cause at the target's own divergences. These places are few, and the widest move among few is
    # smaller than the widest of all: for one 4-bit MoE it was 0.18 and 0.26 nats in two campaigns,
    # and 0.31 over 4500 contexts. Errors of the state give gaps of nats: of 306 planted ones, 2 are
    # within the widest move and 5 within twice the widest move (tests/benchmarks/README.md).
    tie_factor: float = 2.0

    # No divergence with a wider gap is a tie, and batches that move gaps by more are a fault of the
    # engine. The widest move of a working engine was 0.31 nats, of a 4-bit MoE over 4500 contexts,
    # and the widest gap of a shipped campaign is 0.18. Twice the former leaves room for other
    # models; beyond it lies a faulty kernel, which must not excuse itself.
    tie_cap_nats: float = 0.6

    # The least share that a target accepts of those of its own draft tokens that it judges; it
    # judges none after one that it rejects. A target disagrees with itself in near ties alone.
    self_acceptance: float = 0.95

    # The highest acceptance rate of an unrelated draft model. It agrees by chance, or where a text
    # repeats itself.
    unrelated_acceptance: float = 0.05

    # The largest share of a text that one token may have in all texts of a target. Greedy text of
    # an untrained model may repeat two tokens in turn, half of it each, as the worst text of a
    # shipped campaign does. NaN gives the same token always, whatever the prompt; a loop of one
    # token after some prompts only is the model's own.
    commonest_token: float = 0.9

    # The largest share of a run's text in loops beyond that of its baseline's text. A run that
    # leaves its baseline at a near tie may fall into a loop of its own: three runs of a shipped
    # campaign do, for 0.22 of their text.
    looping_excess: float = 0.5

    # The largest share of a setting's text in loops; what gains with more is advised for looping
    # text only. A loop is drafted whole: 1 + γ tokens a pass at best. If a tenth of the texts
    # loops, that makes (1 + γ)^0.1 of nothing, 1.25 at γ = 8; a fifth would make 1.55. Text that
    # people want hardly loops: of code, tables, poems and lists no kind has more than a thousandth
    # of it in loops on average (tests/benchmarks/README.md).
    looping_share: float = 0.1

    def widest_tie(self, moved_nats: float) -> float:
        """Return the widest gap of a tie, of a target whose gaps batches move by so much."""
        return min(self.tie_factor * moved_nats, self.tie_cap_nats)


LIMITS = Limits()
