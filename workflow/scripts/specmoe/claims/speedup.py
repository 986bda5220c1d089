"""Claims about speedups and acceptance rates."""

from collections.abc import Iterable, Iterator
from itertools import combinations, pairwise, product
from math import inf
from typing import ClassVar, Literal

from specmoe.analysis.filters import told_twins
from specmoe.analysis.registry import Analysis, records
from specmoe.claims.selection import (
    Bounded,
    OfCells,
    OfWholeCells,
    WithinTargets,
    acceptance,
    best_of,
    cell_words,
    prompt_words,
    speedup,
)
from specmoe.claims.verdicts import Comparison, Estimate, Share, TableRow
from specmoe.config.base import Name, Positive


class OfNumber(OfCells):
    """A claim about one number of cells: `speedup`, or `acceptance` in percent."""

    of: Literal["speedup", "acceptance"]

    @property
    def needed(self) -> str:
        """The number's column."""
        return "speedup" if self.of == "speedup" else "acceptance_rate_mean"

    def _number(self, row: TableRow) -> Estimate:
        return speedup(row) if self.of == "speedup" else acceptance(row)

    def _shown(self, row: TableRow) -> str:
        if self.of == "speedup":
            return self._number(row).words()
        return f"{self._number(row).words(ratio=False)} %"


class Within(OfNumber, Bounded):
    """The number of every cell is within the bounds."""

    def _compare(self, analysis: Analysis) -> Iterator[Comparison]:
        for row in self.rows(analysis):
            words = f"{cell_words(row)}: {self._shown(row)}"
            yield Comparison(self._inside(self._number(row)), words, (row,))


class ChangesWithGamma(OfNumber, WithinTargets):
    """Along every curve of a target and a draft, each step to a larger γ changes it one way."""

    rises: bool
    agree: ClassVar[str] = "steps to a larger γ agree"
    several: ClassVar[str] = " at two γ"

    def _compare(self, analysis: Analysis) -> Iterator[Comparison]:
        for curve in self.groups(analysis, "series", "draft"):
            for before, after in pairwise(curve):
                first, then = self._number(before), self._number(after)
                margin = then.minus(first) if self.rises else first.minus(then)
                words = f"{cell_words(before)}: {self._shown(before)}, γ = {after['gamma']}:"
                yield Comparison(margin, f"{words} {self._shown(after)}", (before, after))


class GainsBeyondGamma(WithinTargets):
    """On every curve that extends beyond γ = `beyond`, some larger γ gains more."""

    beyond: Positive
    agree: ClassVar[str] = "curves agree"

    def _compare(self, analysis: Analysis) -> Iterator[Comparison]:
        for curve in self.groups(analysis, "series", "draft"):
            larger = [row for row in curve if row["gamma"] > self.beyond]
            for row in curve:
                if row["gamma"] == self.beyond and larger:
                    yield _more(best_of(larger), row)

    def _missing(self, analysis: Analysis) -> str:
        return f"{super()._missing(analysis)} both at γ = {self.beyond} and beyond"


class SmallestDraftAndLargestGammaAreBest(WithinTargets):
    """No cell of a target gains more than its smallest draft at its largest γ.

    Only targets that were measured with several drafts and several γ count.
    """

    agree: ClassVar[str] = "other cells gain less"
    several: ClassVar[str] = " and a second one, both at two γ"

    def _compare(self, analysis: Analysis) -> Iterator[Comparison]:
        for cells in self.groups(analysis, "series"):
            if min(len({row[key] for row in cells}) for key in ("draft", "gamma")) > 1:
                corner = min(cells, key=lambda row: (row["draft_parameters"], -row["gamma"]))
                yield from (_more(corner, row) for row in cells if row is not corner)


class OfDraftPairs(OfWholeCells):
    """A claim that compares two drafts of a target at the same γ."""

    agree: ClassVar[str] = "pairs of drafts agree"
    several: ClassVar[str] = " and a second one at the same γ"

    def _pairs(self, analysis: Analysis) -> Iterator[tuple[TableRow, TableRow]]:
        for cells in self.groups(analysis, "series", "gamma"):
            yield from _ordered_pairs(cells, "draft_parameters")


class SmallerDraftGainsMore(OfDraftPairs, Bounded):
    """Of two drafts of a target at the same γ, the smaller one gains more, by `low` to `high`."""

    low: float = 0.0

    def _compare(self, analysis: Analysis) -> Iterator[Comparison]:
        for smaller, larger in self._pairs(analysis):
            lead = speedup(smaller).minus(speedup(larger))
            more = lead.words(3, ratio=False)
            words = f"{cell_words(smaller)}: {more} more than with {larger['draft_label']}"
            yield Comparison(self._inside(lead), words, (smaller, larger))


class LargerDraftIsAcceptedMore(OfDraftPairs):
    """Of two drafts of a target at the same γ, mostly the larger one is accepted more."""

    needed: ClassVar[str] = "acceptance_rate_mean"
    share: ClassVar[Share] = Share.MOST

    def _compare(self, analysis: Analysis) -> Iterator[Comparison]:
        for smaller, larger in self._pairs(analysis):
            less, more = acceptance(smaller), acceptance(larger)
            shares = less.words(ratio=False), more.words(ratio=False)
            words = f"{cell_words(smaller)}: {shares[0]} %, {larger['draft_label']}: {shares[1]} %"
            yield Comparison(more.minus(less), words, (smaller, larger))


class GainLiesBetween(OfWholeCells):
    """Targets gain more than target `above` and less than target `below`, if that is given.

    `at`: `best` compares the best cells of the targets, `each` all with the same draft and γ.
    """

    above: Name
    below: Name | None = None
    at: Literal["best", "each"]
    agree: ClassVar[str] = "comparisons agree"

    def _compare(self, analysis: Analysis) -> Iterator[Comparison]:
        keys = ["series"] if self.at == "best" else ["series", "draft", "gamma"]
        own = [best_of(cells) for cells in self.groups(analysis, *keys)]
        ends = [best_of(cells) for cells in self._ends().groups(analysis, *keys)]
        if {end["target"] for end in ends} != set(self._named()):
            return
        for row, end in product(own, ends):
            if self.at == "best" or all(row[key] == end[key] for key in ("draft", "gamma")):
                yield _more(row, end) if end["target"] == self.above else _more(end, row)

    def _missing(self, analysis: Analysis) -> str:
        measured = {row["target"] for row in self._ends().rows(analysis)}
        lacking = [name for name in self._named() if name not in measured]
        if lacking:
            return f"no runs of {' or of '.join(lacking)} with a draft"
        return super()._missing(analysis)

    def _ends(self) -> OfWholeCells:
        return self.model_copy(update={"family": None, "targets": self._named()})

    def _named(self) -> list[Name]:
        return [self.above, self.below] if self.below else [self.above]


class GainFollows(OfWholeCells):
    """Of an MoE and a dense target, the one with more of something gains more at its best.

    `column`: `parameters_total`, `parameters_active` or `size_bytes`, which is a claim about
    memory: targets that a cache may hold are left out. With `follows: false` the claim is that some
    pair does not. A campaign of twins compares these alone: an MoE has more of everything than its
    dense twin but active parameters, so a gain that follows those is the same.
    """

    column: Literal["parameters_total", "parameters_active", "size_bytes"]
    follows: bool = True
    agree: ClassVar[str] = "pairs of an MoE and a dense target agree"

    @property
    def share(self) -> Share:
        """One pair out of order is enough."""
        return Share.EVERY if self.follows else Share.SOME

    def _compare(self, analysis: Analysis) -> Iterator[Comparison]:
        if not analysis.twins.empty:
            yield from self._of_twins(analysis)
            return
        best = [best_of(cells) for cells in self.groups(analysis, "series")]
        if self.column == "size_bytes":
            best = [row for row in best if not row["in_cache"]]
        for less, more in _ordered_pairs(best, self.column):
            if less["family"] != more["family"]:
                yield _more(more, less) if self.follows else _more(less, more)

    def _of_twins(self, analysis: Analysis) -> Iterator[Comparison]:
        cached = analysis.models.set_index("model")["in_cache"]
        where = f"(the experts are equal; backend {analysis.campaign['backend'].iloc[0]})"
        for row in records(told_twins(analysis)):
            ratio = Estimate(*(row[f"ratio{end}"] for end in ("", "_low", "_high")))
            more = ratio.minus(Estimate.exact(1))
            if not self.follows:
                nearest = max(more.low, -more.high)
                more = Estimate(abs(more.value), nearest, max(-more.low, more.high))
            if self.column != "size_bytes" or not cached[row["dense"]]:
                words = (
                    f"{row['target_label']}, {row['setting']}: {ratio.words()} times the speedup of"
                )
                # Over all γ, so a γ is no key of its rows.
                keys = {key: row[key] for key in ("suite", "target", "draft")}
                yield Comparison(more, f"{words} {row['dense_label']} {where}", (keys,))

    def _missing(self, analysis: Analysis) -> str:
        cached = ", both larger than a cache" if self.column == "size_bytes" else ""
        return f"no runs of both an MoE and a dense target with a draft{cached}"


class LargerFileGainsMore(OfWholeCells):
    """Of two files of one network, with the same draft and γ, the larger one gains more."""

    agree: ClassVar[str] = "pairs of files agree"
    several: ClassVar[str] = " from two files of one network"

    def _compare(self, analysis: Analysis) -> Iterator[Comparison]:
        for cells in self.groups(analysis, "family", "parameters_total", "draft", "gamma"):
            yield from (_more(large, small) for small, large in _ordered_pairs(cells, "size_bytes"))


class LiesAboveTheDenseLine(OfWholeCells):
    """Each MoE gains more than a line through dense targets has at its active parameters.

    The line joins the dense targets of fewest and of most active parameters, and goes on beyond.
    """

    agree: ClassVar[str] = "points agree"

    def _compare(self, analysis: Analysis) -> Iterator[Comparison]:
        for cells in self.groups(analysis, "draft", "gamma"):
            dense = sorted(_of_family(cells, "dense"), key=lambda row: row["parameters_active"])
            if len({row["parameters_active"] for row in dense}) < 2:
                continue
            ends = dense[0], dense[-1]
            start, end = (row["parameters_active"] for row in ends)
            for row in _of_family(cells, "moe"):
                part = (row["parameters_active"] - start) / (end - start)
                line = speedup(ends[0]).times(1 - part).minus(speedup(ends[1]).times(-part))
                words = (
                    f"{cell_words(row)}: {speedup(row).words()}; the line through"
                    f" {ends[0]['label']} and {ends[1]['label']} has {line.words()} there"
                )
                yield Comparison(speedup(row).minus(line), words, (row, *ends))

    def _missing(self, analysis: Analysis) -> str:
        return "no runs of an MoE and of two dense targets with the same draft and γ"


class IsAcceptedLessThanDense(OfWholeCells):
    """Of the same draft at the same γ, each MoE accepts less than each dense target."""

    needed: ClassVar[str] = "acceptance_rate_mean"
    agree: ClassVar[str] = "pairs of an MoE and a dense target agree"
    several: ClassVar[str] = ", an MoE and a dense one,"

    def _compare(self, analysis: Analysis) -> Iterator[Comparison]:
        for cells in self.groups(analysis, "draft", "gamma"):
            for moe, dense in product(_of_family(cells, "moe"), _of_family(cells, "dense")):
                less, more = acceptance(moe), acceptance(dense)
                shares = less.words(ratio=False), more.words(ratio=False)
                words = f"{cell_words(moe)}: {shares[0]} %, {dense['label']}: {shares[1]} %"
                yield Comparison(more.minus(less), words, (moe, dense))


class OfPromptLengths(OfCells):
    """A claim that compares the shortest with the longest prompt of each cell."""

    cells: Literal["lengths"] = "lengths"
    several: ClassVar[str] = " at two lengths"

    def _ends(self, analysis: Analysis) -> Iterator[tuple[TableRow, TableRow]]:
        for prompts in self.groups(analysis, "series", "draft", "gamma"):
            if len(prompts) > 1:
                by_length = sorted(prompts, key=lambda row: int(row["n_prompt"]))
                yield by_length[0], by_length[-1]


class FallsWithLength(OfPromptLengths):
    """The speedup at the shortest prompt is above that at the longest."""

    def _compare(self, analysis: Analysis) -> Iterator[Comparison]:
        yield from (_more(shortest, longest) for shortest, longest in self._ends(analysis))


class FallsWithReadingThePrompt(OfPromptLengths):
    """The speedup falls with the prompt's length because reading the prompt takes its share.

    Decode rates leave that out, so they must not fall: the speedup of decoding at the longest
    prompt is not below that at the shortest.
    """

    def _compare(self, analysis: Analysis) -> Iterator[Comparison]:
        yield from (_more(longest, shortest) for shortest, longest in self._ends(analysis))


class VariesAtMost(Bounded):
    """Over the prompts of a cell, the highest speedup is at most `high` above the lowest.

    With `from_length`, over those of that many tokens or more (words in the study). The difference
    of extremes grows with the spread and the number of prompts, so it overstates how much the
    prompts alone make.
    """

    high: float
    from_length: int = 0

    def _compare(self, analysis: Analysis) -> Iterator[Comparison]:
        for cell in self.groups(analysis, "series", "draft", "gamma"):
            prompts = [row for row in cell if row.get("n_prompt", inf) >= self.from_length]
            if len(prompts) > 1:
                top, bottom = best_of(prompts), min(prompts, key=lambda row: float(row["speedup"]))
                spread = speedup(top).minus(speedup(bottom)).at_least(0)
                words = f"{cell_words(top)}: {spread.words(3, ratio=False)} more than with"
                words = f"{words} {prompt_words(bottom)}"
                yield Comparison(self._inside(spread), words, tuple(prompts))

    def _missing(self, analysis: Analysis) -> str:
        return f"{super()._missing(analysis)}, two in a cell"


def _of_family(rows: Iterable[TableRow], family: str) -> list[TableRow]:
    return [row for row in rows if row["family"] == family]


def _ordered_pairs(rows: Iterable[TableRow], key: str) -> Iterator[tuple[TableRow, TableRow]]:
    """Return the pairs of rows that differ in `key`, the smaller first."""
    for pair in combinations(rows, 2):
        less, more = sorted(pair, key=lambda row: row[key])
        if less[key] < more[key]:
            yield less, more


def _more(gains: TableRow, than: TableRow) -> Comparison:
    """Compare two cells' speedups: the first should be higher."""
    one, other = speedup(gains), speedup(than)
    words = f"{cell_words(gains)}: {one.words()}, {cell_words(than)}: {other.words()}"
    return Comparison(one.minus(other), words, (gains, than))
