"""Claims about what a pass over the target costs and reads, and about the audit of tokens."""

from collections.abc import Iterator, Sequence
from dataclasses import astuple
from itertools import chain, product
from math import inf
from typing import ClassVar, Literal, NamedTuple

from specmoe.analysis.filters import timed_passes
from specmoe.analysis.registry import Analysis
from specmoe.audit.checks import ALL
from specmoe.claims.selection import (
    Between,
    OfModels,
    OfWholeCells,
    Predicate,
    cell_words,
    rate,
    speedup,
)
from specmoe.claims.verdicts import ClaimResult, Comparison, Estimate, TableRow, Verdict
from specmoe.config.base import Name, Positive
from specmoe.config.block import NO_DRAFT
from specmoe.words import counted, verb

_GIGA = 1e9
IN_CACHE = "a cache may hold the weights of these targets"


class Cost(NamedTuple):
    """What a verification costs: its positions, the passes over one, words, and its rows."""

    positions: int
    passes: Estimate
    words: str
    rows: tuple[TableRow, ...]


class OfRounds(OfWholeCells):
    """A claim about the speedups of cells and the tokens a round."""

    needed: ClassVar[str] = "tokens_per_round"
    leans_on_baselines: ClassVar[bool] = True


class GainsWithoutAcceptedTokens(OfRounds):
    """Every cell would gain even if no drafted token had been accepted.

    A round and its replay yield L tokens, the target's own included. Without the accepted ones they
    would yield one a pass in the same time, so with p passes a round the speedup would be S p / L.
    As a pass takes one step at least, no true row can have S p > L. Where the engine was made to
    accept `at_most` of the drafted tokens or less, the measured speedup decides as it is.
    """

    at_most: float = 0.0

    def _compare(self, analysis: Analysis) -> Iterator[Comparison]:
        yield from (self._imposed(row) for row in self._imposed_rows(analysis))
        for row in self.rows(analysis):
            tokens, passes = row["tokens_per_round"], 1 + row["replays_per_round"]
            alone = speedup(row).times(passes / tokens)
            words = (
                f"{cell_words(row)}: {row['speedup']:.2f} with {tokens:.2f} tokens a round; with"
                f" {passes:.3g} it would be {alone.words()}"
            )
            yield Comparison(alone.minus(Estimate.exact(1)), words, (row,))

    def _imposed_rows(self, analysis: Analysis) -> Sequence[TableRow]:
        cells = analysis.predictions
        cells = cells[cells["imposed_acceptance"].notna()]
        cells = cells[cells["acceptance_rate"] <= self.at_most]
        return self._narrow(cells, analysis).to_dict("records")

    def _imposed(self, row: TableRow) -> Comparison:
        words = (
            f"{cell_words(row)}, made to accept {100 * row['acceptance_rate']:.1f} %:"
            f" {speedup(row).words()}"
        )
        return Comparison(speedup(row).minus(Estimate.exact(1)), words, (row,))


class OfCosts(OfRounds):
    """A claim about what a verification costs, in passes over a single token.

    Where passes were timed by themselves, their times decide. Elsewhere a round of L tokens at
    speedup S takes the time of L / S single passes, drafting included. If the claim holds for the
    round, it holds for the verification alone; if it fails, drafting may be the cause.
    """

    def _curves(self, analysis: Analysis) -> list[list[Cost]]:
        """Return the costs by target, and by draft where rounds give them, in order of γ."""
        passes = self._among(timed_passes(analysis))
        passes = passes[passes["width"] > 1]
        if passes.empty:
            curves = self.groups(analysis, "series", "draft")
            return [[_cost_of_round(row) for row in curve] for curve in curves]
        if self.gammas:
            passes = passes[(passes["width"] - 1).isin(self.gammas)]
        rows = passes.sort_values("width").groupby("target", sort=False)
        return [[_cost_of_pass(row) for row in own.to_dict("records")] for _, own in rows]


class RoundsCostLessThanTheirPositions(OfCosts):
    """A verification costs less than single passes over its γ + 1 positions, or than `passes`."""

    passes: Positive | None = None

    def _compare(self, analysis: Analysis) -> Iterator[Comparison]:
        for cost in chain.from_iterable(self._curves(analysis)):
            most = Estimate.exact(self.passes or cost.positions)
            yield Comparison(most.minus(cost.passes), cost.words, cost.rows)


class LongerRoundsCost(OfCosts, Between):
    """At the larger of two γ, a verification costs `low` to `high` times as much."""

    agree: ClassVar[str] = "curves agree"
    several: ClassVar[str] = " at each of them"

    def _compare(self, analysis: Analysis) -> Iterator[Comparison]:
        for curve in self._curves(analysis):
            if len(curve) > 1:
                less, more = curve[0], curve[-1]
                ratio = more.passes.over(less.passes)
                words = f"{less.words}; one of {more.positions} {ratio.words()} times as much"
                yield Comparison(self._inside(ratio), words, (*less.rows, *more.rows))


class RoundsAreTokensOverGamma(OfRounds):
    """A run takes about as many rounds as it has tokens for every γ of them.

    `tolerance` is what "about" allows, as a share.
    """

    tolerance: float
    leans_on_baselines: ClassVar[bool] = False
    about_acceptance: ClassVar[bool] = True

    def _compare(self, analysis: Analysis) -> Iterator[Comparison]:
        tokens = float(analysis.campaign["n_predict"].iloc[0])
        for row in self.rows(analysis):
            rounds = row["rounds_per_run"]
            claimed = tokens / row["gamma"]
            words = (
                f"{cell_words(row)}: {tokens:.0f} tokens take {rounds:.0f} rounds of"
                f" {row['round_ms']:.1f} ms; the claim says {claimed:.0f}"
            )
            allowed = self.tolerance * claimed
            margin = Estimate.exact(rounds).within(claimed - allowed, claimed + allowed)
            yield Comparison(margin, words, (row,))


def _cost_of_round(row: TableRow) -> Cost:
    ends = ("speedup", "speedup_high", "speedup_low")
    passes = Estimate(*(row["tokens_per_round"] / row[end] for end in ends))
    positions = row["gamma"] + 1
    words = f"{cell_words(row)}: a round of {positions} positions takes the time of"
    return Cost(positions, passes, f"{words} {passes.words()} passes", (row,))


def _cost_of_pass(row: TableRow) -> Cost:
    passes = Estimate(row["steps"], row["steps_low"], row["steps_high"])
    words = f"{row['target_label']}: a pass over {row['width']} tokens takes the time of"
    return Cost(row["width"], passes, f"{words} {passes.words()} of one token", ())


class TokensTake(Between):
    """Without a draft, so many tokens take `low` to `high` milliseconds."""

    tokens: Positive
    agree: ClassVar[str] = "models agree"

    def _compare(self, analysis: Analysis) -> Iterator[Comparison]:
        for row in self.baselines(analysis):
            ms = Estimate.exact(1000 * self.tokens).over(rate(row))
            take = f"{counted(self.tokens, 'token')} {verb(self.tokens, 'takes', 'take')}"
            words = f"{row['label']}: {take} {ms.words(1)} ms"
            yield Comparison(self._inside(ms), words, (row,))

    def _missing(self, analysis: Analysis) -> str:
        return f"no rates without a draft of {self._of_models()}"


class RunsTimesAsFast(Between):
    """Without a draft, these models run `low` to `high` times as fast as another one."""

    than: Name
    agree: ClassVar[str] = "models agree"

    def _compare(self, analysis: Analysis) -> Iterator[Comparison]:
        others = self.model_copy(update={"family": None, "targets": [self.than]})
        for row, other in product(self.baselines(analysis), others.baselines(analysis)):
            ratio = rate(row).over(rate(other))
            words = (
                f"{row['label']}: {rate(row).words(1)} tok/s, {other['label']}:"
                f" {rate(other).words(1)}; {ratio.words()} times as fast"
            )
            yield Comparison(self._inside(ratio), words, (row, other))

    def _missing(self, analysis: Analysis) -> str:
        return f"no rates without a draft of both {self._of_models()} and {self.than}"


class OfMemory(OfModels):
    """A claim about weights that come from memory: targets that a cache may hold are left out."""

    def baselines(self, analysis: Analysis) -> Sequence[TableRow]:
        """Return the rates without a draft of those of these models that no cache holds."""
        return [row for row in super().baselines(analysis) if not row["in_cache"]]

    def _missing(self, analysis: Analysis) -> str:
        if super().baselines(analysis) and not self.baselines(analysis):
            return IN_CACHE
        return self._missing_rates()

    def _missing_rates(self) -> str:
        raise NotImplementedError


class SlowerThanNextActive(OfMemory):
    """Without a draft, these targets are slower than the dense model next above in active size."""

    def _compare(self, analysis: Analysis) -> Iterator[Comparison]:
        models = analysis.baselines
        dense = models[models["family"] == "dense"].sort_values("parameters_active", kind="stable")
        for row in self.baselines(analysis):
            larger = dense[dense["parameters_active"] > row["parameters_active"]]
            for above in larger.head(1).to_dict("records"):
                words = (
                    f"{row['label']}: {rate(row).words(1)} tok/s, {above['label']}:"
                    f" {rate(above).words(1)}"
                )
                yield Comparison(rate(above).minus(rate(row)), words, (row, above))

    def _missing_rates(self) -> str:
        return (
            f"no rates without a draft of {self._of_models()} and of a dense model with more active"
            " parameters"
        )


class FallsShortOfItsActiveParameters(OfMemory):
    """Without a draft, dense models of as many active parameters would be `low` to `high` as fast.

    With `of: rate` the bounds are those of the dense models' rate itself, in tokens a second. Their
    time a token is interpolated between those of the dense models next below and above.
    """

    low: float
    high: float = inf
    of: Literal["ratio", "rate"] = "ratio"

    def _compare(self, analysis: Analysis) -> Iterator[Comparison]:
        models = analysis.baselines
        dense = models[(models["family"] == "dense") & ~models["in_cache"].astype(bool)]
        dense = dense.sort_values("parameters_active", kind="stable")
        for row in self.baselines(analysis):
            active = row["parameters_active"]
            below = dense[dense["parameters_active"] <= active].tail(1).to_dict("records")
            above = dense[dense["parameters_active"] > active].head(1).to_dict("records")
            for less, more in zip(below, above, strict=False):
                reach = more["parameters_active"] - less["parameters_active"]
                part = (active - less["parameters_active"]) / reach
                ends = zip(astuple(rate(less)), astuple(rate(more)), strict=True)
                expected = Estimate(*(1 / ((1 - part) / one + part / two) for one, two in ends))
                ratio = expected.over(rate(row))
                found = expected if self.of == "rate" else ratio
                words = (
                    f"{row['label']}: {rate(row).words(1)} tok/s; between {less['label']} and"
                    f" {more['label']} its active parameters stand for {expected.words(1)},"
                    f" {ratio.words()} times"
                )
                yield Comparison(found.within(self.low, self.high), words, (row, less, more))

    def _missing_rates(self) -> str:
        return (
            f"no rates without a draft of {self._of_models()} and of dense models with fewer and"
            " with more active parameters"
        )


class OfBandwidth(OfMemory):
    """A claim about rates without a draft and the machine's memory bandwidth."""

    def _compare(self, analysis: Analysis) -> Iterator[Comparison]:
        bandwidth = self._bandwidth(analysis)
        if bandwidth is not None:
            yield from (self._use(row, bandwidth) for row in self.baselines(analysis))

    def _use(self, row: TableRow, bandwidth: float) -> Comparison:
        raise NotImplementedError

    def _bandwidth(self, analysis: Analysis) -> float | None:
        """Return the machine's, in bytes a second, if it is known."""
        known = analysis.campaign.iloc[0].get("host_memory_bandwidth_bytes_per_second")
        return float(known) if known is not None and known > 0 else None

    def _missing(self, analysis: Analysis) -> str:
        if self._bandwidth(analysis) is None:
            return "the machine's memory bandwidth is not known"
        return super()._missing(analysis)

    def _missing_rates(self) -> str:
        return f"no rates without a draft of {self._of_models()} on prompts of exact length"


class ReadsItsFileForEachToken(OfBandwidth):
    """Without a draft, every token takes a pass that reads the whole file from memory.

    Rates can refute this but never prove it. If file size times rate exceeds the bandwidth, the
    claim is false; otherwise it may be true or false. `tolerance` is the share by which a probed
    bandwidth may be too low.
    """

    tolerance: float
    agree: ClassVar[str] = "targets could read so much"

    def _use(self, row: TableRow, bandwidth: float) -> Comparison:
        needed = rate(row).times(row["size_bytes"] / _GIGA)
        words = (
            f"{row['label']}: {row['size_bytes'] / _GIGA:.2f} GB a token at"
            f" {row['tokens_per_second']:.1f} tok/s need {needed.words(0)} GB/s; memory delivers"
            f" {bandwidth / _GIGA:.0f}"
        )
        most = Estimate.exact(bandwidth / _GIGA * (1 + self.tolerance))
        room = most.minus(needed)
        return Comparison(Estimate(room.value, -inf, room.high), words, (row,))


class BandwidthIsUsed(OfBandwidth):
    """Without a draft, tokens read between `low` and `high` of the memory bandwidth, as shares.

    A token reads the weights it is multiplied with: the active share of the file, as if all weights
    had the same number of bits.
    """

    low: float = 0.0
    high: float = inf

    def _use(self, row: TableRow, bandwidth: float) -> Comparison:
        read = row["size_bytes"] * row["parameters_active"] / row["parameters_total"]
        share = rate(row).times(read / bandwidth)
        words = (
            f"{row['label']}: {read / _GIGA:.2f} GB a token use {share.words(ratio=False)} of"
            f" {bandwidth / _GIGA:.0f} GB/s"
        )
        return Comparison(share.within(self.low, self.high), words, (row,))


class AuditPasses(Predicate):
    """No run fails a check of the audit.

    Runs that the check does not apply to count neither way, such as those whose acceptance was
    imposed. Runs without a draft count where it applies to some of them.
    """

    check: Literal["losslessness", "determinism"]

    def judge(self, analysis: Analysis) -> ClaimResult:
        """Count the runs that pass and fail."""
        counts = [f"{self.check}_{word}" for word in ("passed", "failed", "not_applicable")]
        audit = analysis.audit.reindex(columns=["target", "draft", "gamma", *counts])
        audit = audit[audit["target"] != ALL]
        audit = audit[(audit["draft"] != NO_DRAFT) | (audit[counts[:2]].sum(axis=1) > 0)]
        passed, failed, unknown = (int(audit[count].sum()) for count in counts)
        rows = tuple(audit.to_dict("records"))
        if not passed + failed:
            return ClaimResult(Verdict.NOT_TESTABLE, "no runs whose tokens are known")
        why = f"{passed} runs pass, {failed} fail, it does not apply to {unknown}"
        if failed:
            return ClaimResult(Verdict.CONTRADICTED, why, rows)
        return ClaimResult(Verdict.SUPPORTED, why, rows)
