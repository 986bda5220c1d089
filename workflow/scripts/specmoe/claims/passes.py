"""Claims about what a pass over the target costs and reads, and what the audit says of tokens."""

from math import inf
from typing import Literal

from specmoe.analysis.build import Analysis
from specmoe.analysis.labelled import ordered_baselines, table
from specmoe.audit.checks import ALL
from specmoe.claims.selection import OfModels, OfWholeCells, Predicate, cell_words, rate, speedup
from specmoe.claims.verdicts import Comparison, Judgement, Quantity, Row, Verdict, conclude
from specmoe.config.block import NO_DRAFT

_GIGA = 1e9


class OfRounds(OfWholeCells):
    """A claim about the rounds of cells."""

    @property
    def needed(self) -> str:
        """The column of tokens a round."""
        return "mean_accepted_length"


class OfGainsInRounds(OfRounds):
    """A claim about the rounds of cells and their speedups."""

    @property
    def leans_on_baselines(self) -> bool:
        """It does, as every speedup."""
        return True


class GainsWithoutAcceptedTokens(OfGainsInRounds):
    """Every cell would gain even if no drafted token had been accepted.

    A round yields L tokens, the target's own included. Without the accepted ones it would yield one
    in the same time, so the speedup would be S / L. As a round takes one pass of the target at
    least, no true row can have S > L.
    """

    def judge(self, analysis: Analysis) -> Judgement:
        """Compare each cell's speedup without its accepted tokens with 1."""
        found = []
        for row in self.rows(analysis):
            alone = speedup(row).times(1 / row["mean_accepted_length"])
            words = (
                f"{cell_words(row)}: {row['speedup']:.2f} with {row['mean_accepted_length']:.2f}"
                f" tokens a round, {alone.words()} with 1"
            )
            found.append(Comparison(alone.minus(Quantity.exact(1)), words, (row,)))
        return conclude(found, "cells", self.missing())


class RoundsCostLessThanTheirPositions(OfGainsInRounds):
    """A round takes less time than checking its γ + 1 positions one after another.

    A round of L tokens at speedup S takes the time of L / S single passes, drafting included; so
    what holds of it holds the more of the verification alone, but where it fails, drafting may be
    the cause.
    """

    def judge(self, analysis: Analysis) -> Judgement:
        """Compare each cell's round with γ + 1 single passes."""
        found = []
        for row in self.rows(analysis):
            positions = row["gamma"] + 1
            cost = Quantity(
                *(
                    row["mean_accepted_length"] / row[f"speedup{end}"]
                    for end in ("", "_high", "_low")
                )
            )
            words = f"{cell_words(row)}: {cost.words()} passes' time for {positions} positions"
            found.append(Comparison(Quantity.exact(positions).minus(cost), words, (row,)))
        return conclude(found, "cells", self.missing())


class RoundsAreTokensOverGamma(OfRounds):
    """A run takes about as many rounds as it has tokens for every γ of them.

    `tolerance` is what "about" allows, as a share.
    """

    tolerance: float

    def judge(self, analysis: Analysis) -> Judgement:
        """Compare each cell's rounds with its tokens over γ."""
        tokens = float(analysis.campaign["n_predict"].iloc[0])
        found = []
        for row in self.rows(analysis):
            rounds = tokens / row["mean_accepted_length"]
            round_ms = 1000 * row["mean_accepted_length"] / row["tokens_per_second"]
            claimed = tokens / row["gamma"]
            words = (
                f"{cell_words(row)}: {rounds:.0f} rounds of {round_ms:.1f} ms for {tokens:.0f}"
                f" tokens; claimed: {claimed:.0f}"
            )
            allowed = self.tolerance * claimed
            margin = Quantity.exact(rounds).within(claimed - allowed, claimed + allowed)
            found.append(Comparison(margin, words, (row,)))
        return conclude(found, "cells", self.missing())


class SlowerThanNextActive(OfModels):
    """Without a draft, these targets are slower than the dense model next above in active size."""

    def judge(self, analysis: Analysis) -> Judgement:
        """Compare each with the dense model that has least of the active parameters above its."""
        everyone = ordered_baselines(analysis).to_dict("records")
        found = []
        for row in self.baselines(analysis):
            above = [
                other
                for other in everyone
                if other["family"] == "dense"
                and other["parameters_active"] > row["parameters_active"]
            ]
            if above:
                dense = min(above, key=lambda other: float(other["parameters_active"]))
                words = (
                    f"{row['label']}: {rate(row).words(1)} tok/s, {dense['label']}:"
                    f" {rate(dense).words(1)}"
                )
                found.append(Comparison(rate(dense).minus(rate(row)), words, (row, dense)))
        missing = (
            f"no rates without a draft of {self.of_models()} and of a dense model of more active"
            " parameters"
        )
        return conclude(found, "targets", missing)


class OfBandwidth(OfModels):
    """A claim about rates without a draft and the machine's memory bandwidth."""

    def bandwidth(self, analysis: Analysis) -> float | None:
        """Return the machine's, in bytes a second, if it is known."""
        campaign = analysis.campaign.iloc[0]
        known = campaign.get("host_memory_bandwidth_bytes_per_second")
        return float(known) if known is not None and known > 0 else None

    def missing(self, analysis: Analysis) -> str:
        """Return what a campaign lacks that cannot decide the claim."""
        if self.bandwidth(analysis) is None:
            return "the machine's memory bandwidth is not known"
        return f"no rates without a draft of {self.of_models()} on prompts of exact length"


class ReadsItsFileForEachToken(OfBandwidth):
    """Without a draft, every token takes a pass that reads the whole file from memory.

    Rates can refute this and never show it: where file times rate is more than memory gives, it
    cannot be; where it is less, both are possible. `tolerance` is the share by which a bandwidth
    that was probed may be too low.
    """

    tolerance: float

    def judge(self, analysis: Analysis) -> Judgement:
        """Compare what that would read with the bandwidth."""
        bandwidth = self.bandwidth(analysis)
        rows = self.baselines(analysis) if bandwidth is not None else []
        found = [self._read(row, bandwidth) for row in rows if bandwidth is not None]
        of = "targets could read so much"
        return conclude(found, of, self.missing(analysis))

    def _read(self, row: Row, bandwidth: float) -> Comparison:
        needed = rate(row).times(row["size_bytes"] / _GIGA)
        words = (
            f"{row['label']}: {row['size_bytes'] / _GIGA:.2f} GB a token at"
            f" {row['tokens_per_second']:.1f} tok/s are {needed.words(0)} GB/s; memory gives"
            f" {bandwidth / _GIGA:.0f}"
        )
        most = Quantity.exact(bandwidth / _GIGA * (1 + self.tolerance))
        room = most.minus(needed)
        return Comparison(Quantity(room.value, -inf, room.high), words, (row,))


class BandwidthIsUsed(OfBandwidth):
    """Without a draft, tokens read between `low` and `high` of the memory bandwidth, as shares.

    A token reads the weights it is multiplied with: the active share of the file, taken as if all
    weights had as many bits.
    """

    low: float = 0.0
    high: float = inf

    def judge(self, analysis: Analysis) -> Judgement:
        """Compare each model's share of the bandwidth with the bounds."""
        bandwidth = self.bandwidth(analysis)
        rows = self.baselines(analysis) if bandwidth is not None else []
        found = [self._used(row, bandwidth) for row in rows if bandwidth is not None]
        return conclude(found, "models", self.missing(analysis))

    def _used(self, row: Row, bandwidth: float) -> Comparison:
        read = row["size_bytes"] * row["parameters_active"] / row["parameters_total"]
        share = rate(row).times(read / bandwidth)
        words = (
            f"{row['label']}: {read / _GIGA:.2f} GB a token use {share.words()} of"
            f" {bandwidth / _GIGA:.0f} GB/s"
        )
        return Comparison(share.within(self.low, self.high), words, (row,))


class AuditPasses(Predicate):
    """No run fails a check of the audit.

    Runs that it applies to and could not be asked about leave the claim open; runs without a draft
    count where the check applies to some of them.
    """

    check: Literal["losslessness", "determinism", "failed_decodes"]

    def judge(self, analysis: Analysis) -> Judgement:
        """Count the runs that pass and fail."""
        audit = table(analysis, "audit")
        rows = [
            row
            for row in audit[audit["target"] != ALL].to_dict("records")
            if row["draft"] != NO_DRAFT or self._count(row, "passed", "failed")
        ]
        passed, failed, unknown = (
            sum(self._count(row, outcome) for row in rows)
            for outcome in ("passed", "failed", "not_applicable")
        )
        if not passed + failed:
            return Judgement(Verdict.NOT_TESTABLE, "no runs whose tokens are known")
        why = f"{passed} runs pass, {failed} fail, {unknown} could not be checked"
        if failed:
            return Judgement(Verdict.CONTRADICTED, why, tuple(rows))
        return Judgement(Verdict.INCONCLUSIVE if unknown else Verdict.SUPPORTED, why, tuple(rows))

    def _count(self, row: Row, *outcomes: str) -> int:
        return sum(int(row[f"{self.check}_{outcome}"]) for outcome in outcomes)
