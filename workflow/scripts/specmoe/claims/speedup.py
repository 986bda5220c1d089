"""Claims about speedups and acceptance rates: what a campaign says of them."""

from itertools import combinations, pairwise, product
from math import inf
from typing import Literal

from specmoe.analysis.build import Analysis
from specmoe.claims.selection import (
    Digits,
    OfCells,
    OfWholeCells,
    WithinTargets,
    acceptance,
    best_of,
    cell_words,
    rounded,
    speedup,
)
from specmoe.claims.verdicts import Comparison, Judgement, Quantity, Row, Share, conclude
from specmoe.config.base import Name, Positive

# By what a claim may be of: the number, the column that it is from.
_NUMBERS = {
    "speedup": (speedup, "speedup"),
    "acceptance": (acceptance, "acceptance_rate_mean"),
}


class OfNumber(OfCells):
    """A claim about one number of cells: `speedup`, or `acceptance` in percent."""

    of: Literal["speedup", "acceptance"]

    @property
    def needed(self) -> str:
        """The number's column."""
        return _NUMBERS[self.of][1]

    def number(self, row: Row) -> Quantity:
        """Return it for a cell."""
        return _NUMBERS[self.of][0](row)

    def shown(self, row: Row) -> str:
        """Return it for a cell, in words."""
        return self.number(row).words() + (" %" if self.of == "acceptance" else "")


class Within(OfNumber):
    """The number of every cell lies between `low` and `high`.

    With `digits`, the bounds were printed with so many and stand for all that rounds to them.
    """

    low: float = -inf
    high: float = inf
    digits: Digits = None

    def judge(self, analysis: Analysis) -> Judgement:
        """Compare each cell with the bounds."""
        return conclude([self._inside(row) for row in self.rows(analysis)], "cells", self.missing())

    def _inside(self, row: Row) -> Comparison:
        found = self.number(row)
        margin = found.within(
            rounded(self.low, self.digits, -1), rounded(self.high, self.digits, 1)
        )
        return Comparison(margin, f"{cell_words(row)}: {self.shown(row)}", (row,))


class ChangesWithGamma(OfNumber, WithinTargets):
    """Along every curve of a target and a draft, each step to a larger γ goes one way."""

    rises: bool

    def judge(self, analysis: Analysis) -> Judgement:
        """Compare the neighbours of each curve."""
        steps = [
            self._step(*pair)
            for curve in self.groups(analysis, "series", "draft")
            for pair in pairwise(curve)
        ]
        return conclude(steps, "steps to a larger γ", f"{self.missing()} at two γ")

    def _step(self, before: Row, after: Row) -> Comparison:
        first, then = self.number(before), self.number(after)
        margin = then.minus(first) if self.rises else first.minus(then)
        words = (
            f"{cell_words(before)}: {self.shown(before)}, γ = {after['gamma']}: {self.shown(after)}"
        )
        return Comparison(margin, words, (before, after))


class GainsBeyondGamma(WithinTargets):
    """On every curve that goes on beyond `beyond`, some larger γ gains more than it."""

    beyond: Positive

    def judge(self, analysis: Analysis) -> Judgement:
        """Compare the best of the larger γ with the one that is named."""
        found = []
        for curve in self.groups(analysis, "series", "draft"):
            start = [row for row in curve if row["gamma"] == self.beyond]
            larger = [row for row in curve if row["gamma"] > self.beyond]
            found += [_more(best_of(larger), row) for row in start if larger]
        missing = f"{self.missing()} both at γ = {self.beyond} and beyond"
        return conclude(found, "curves", missing)


class SmallestDraftAndLargestGammaAreBest(WithinTargets):
    """No cell of a target gains more than its smallest draft at its largest γ.

    Asked of targets that were measured with several drafts and several γ.
    """

    def judge(self, analysis: Analysis) -> Judgement:
        """Compare that cell with all others of its target."""
        found = []
        for cells in self.groups(analysis, "series"):
            if min(len({row[key] for row in cells}) for key in ("draft", "gamma")) < 2:
                continue
            corner = min(cells, key=lambda row: (row["draft_parameters"], -row["gamma"]))
            found += [_more(corner, row) for row in cells if row is not corner]
        missing = f"{self.missing()} with two drafts at two γ"
        return conclude(found, "other cells gain less", missing)


class SmallerDraftGainsMore(OfWholeCells):
    """Of two drafts of a target at the same γ, the smaller one gains more, by `low` to `high`."""

    low: float = 0.0
    high: float = inf
    digits: Digits = None

    def judge(self, analysis: Analysis) -> Judgement:
        """Compare the drafts in pairs."""
        found = []
        for smaller, larger in _draft_pairs(self, analysis):
            lead = speedup(smaller).minus(speedup(larger))
            low, high = rounded(self.low, self.digits, -1), rounded(self.high, self.digits, 1)
            words = f"{cell_words(smaller)} less {larger['draft_label']}: {lead.words(3)}"
            found.append(Comparison(lead.within(low, high), words, (smaller, larger)))
        return conclude(found, "pairs of drafts", f"{self.missing()}: two drafts at the same γ")


class LargerDraftIsAcceptedMore(OfWholeCells):
    """Of two drafts of a target at the same γ, mostly the larger one is accepted more."""

    @property
    def needed(self) -> str:
        """The column of acceptance rates."""
        return "acceptance_rate_mean"

    def judge(self, analysis: Analysis) -> Judgement:
        """Compare the drafts in pairs."""
        found = []
        for smaller, larger in _draft_pairs(self, analysis):
            less, more = acceptance(smaller), acceptance(larger)
            words = (
                f"{cell_words(smaller)}: {less.words()} %, {larger['draft_label']}:"
                f" {more.words()} %"
            )
            found.append(Comparison(more.minus(less), words, (smaller, larger)))
        missing = f"{self.missing()}: two drafts at the same γ"
        return conclude(found, "pairs of drafts", missing, Share.MOST)


class GainLiesBetween(OfWholeCells):
    """A family's targets gain more than target `above` and less than target `below`.

    `at`: `best` compares the best cells of the targets, `each` all with the same draft and γ.
    """

    above: Name
    below: Name
    at: Literal["best", "each"]

    def judge(self, analysis: Analysis) -> Judgement:
        """Compare each target's cell with those of the two."""
        keys = ["series"] if self.at == "best" else ["series", "draft", "gamma"]
        own = [best_of(cells) for cells in self.groups(analysis, *keys)]
        anyone = self.model_copy(update={"family": None})
        ends = [best_of(cells) for cells in anyone.groups(analysis, *keys)]
        measured = {row["target"] for row in ends}
        if lacking := [name for name in (self.above, self.below) if name not in measured]:
            missing = f"no runs of {' or of '.join(lacking)} with a draft"
            return conclude([], "comparisons", missing)
        found = [
            _more(row, end) if end["target"] == self.above else _more(end, row)
            for row, end in product(own, ends)
            if end["target"] in (self.above, self.below) and self._comparable(row, end)
        ]
        return conclude(found, "comparisons", self.missing())

    def _comparable(self, one: Row, other: Row) -> bool:
        return self.at == "best" or all(one[key] == other[key] for key in ("draft", "gamma"))


class GainFollows(OfWholeCells):
    """Of an MoE and a dense target, the one with more of something gains more at its best.

    `column`: `parameters_total`, `parameters_active` or `size_bytes`. With `follows: false` the
    claim is that some pair does not.
    """

    column: Literal["parameters_total", "parameters_active", "size_bytes"]
    follows: bool = True

    def judge(self, analysis: Analysis) -> Judgement:
        """Compare the targets in pairs of one of each family, in the order of the column."""
        best = [best_of(cells) for cells in self.groups(analysis, "series")]
        pairs = [
            sorted(pair, key=lambda row: row[self.column])
            for pair in combinations(best, 2)
            if pair[0]["family"] != pair[1]["family"]
            and pair[0][self.column] != pair[1][self.column]
        ]
        found = [_more(more, less) if self.follows else _more(less, more) for less, more in pairs]
        what = "pairs of an MoE and a dense target are" + (" not" if not self.follows else "")
        missing = "no runs of both an MoE and a dense target with a draft"
        share = Share.EVERY if self.follows else Share.SOME
        return conclude(found, f"{what} in this order", missing, share)


class LargerFileGainsMore(OfWholeCells):
    """Of two files of one network, with the same draft and γ, the larger one gains more."""

    def judge(self, analysis: Analysis) -> Judgement:
        """Compare targets of equal parameters and unequal size in pairs."""
        found = []
        for cells in self.groups(analysis, "family", "parameters_total", "draft", "gamma"):
            for pair in combinations(cells, 2):
                small, large = sorted(pair, key=lambda row: row["size_bytes"])
                if small["size_bytes"] < large["size_bytes"]:
                    found.append(_more(large, small))
        missing = f"{self.missing()}: two files of one network"
        return conclude(found, "pairs of files", missing)


class VariesAtMost(OfCells):
    """Over the prompts of a cell, the highest speedup is at most `most` above the lowest.

    The difference of extremes grows with the spread and the number of prompts, so it overstates
    how much the prompts alone make.
    """

    most: float
    digits: Digits = None

    def judge(self, analysis: Analysis) -> Judgement:
        """Take the extremes of each cell."""
        found = []
        for prompts in self.groups(analysis, "series", "draft", "gamma"):
            if len(prompts) < 2:
                continue
            top, bottom = best_of(prompts), min(prompts, key=lambda row: float(row["speedup"]))
            spread = speedup(top).minus(speedup(bottom)).at_least(0)
            words = f"{cell_words(top)}, less {_prompt(bottom)}: {spread.words(3)}"
            bound = Quantity.exact(rounded(self.most, self.digits, 1))
            found.append(Comparison(bound.minus(spread), words, tuple(prompts)))
        return conclude(found, "cells", f"{self.missing()}: two prompts")


def _draft_pairs(wanted: OfWholeCells, analysis: Analysis) -> list[tuple[Row, Row]]:
    """Return a target's cells at the same γ in pairs of a smaller and a larger draft."""
    pairs = []
    for cells in wanted.groups(analysis, "series", "gamma"):
        for pair in combinations(cells, 2):
            smaller, larger = sorted(pair, key=lambda row: row["draft_parameters"])
            if smaller["draft_parameters"] < larger["draft_parameters"]:
                pairs.append((smaller, larger))
    return pairs


def _more(gains: Row, than: Row) -> Comparison:
    """Compare two cells' speedups: the first should be higher."""
    one, other = speedup(gains), speedup(than)
    words = f"{cell_words(gains)}: {one.words()}, {cell_words(than)}: {other.words()}"
    return Comparison(one.minus(other), words, (gains, than))


def _prompt(row: Row) -> str:
    return f"length {row['n_prompt']}" if "n_prompt" in row else str(row["prompt"])
