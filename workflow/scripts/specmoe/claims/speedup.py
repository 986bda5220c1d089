"""Claims about speedups and acceptance rates."""

from collections.abc import Iterable, Iterator
from itertools import combinations, pairwise, product
from math import inf
from typing import Literal

from specmoe.analysis.filters import told_twins
from specmoe.analysis.intervals import Estimate
from specmoe.analysis.registry import Analysis, records
from specmoe.claims.predicates import (
    ACCEPTANCE,
    Bounds,
    Cells,
    Comparisons,
    Missing,
    OfNumber,
    OfPrompts,
    Predicate,
)
from specmoe.claims.verdicts import (
    Comparison,
    Share,
    TableRow,
    best_of,
    cell_words,
    estimate,
    number_words,
    prompt_words,
)
from specmoe.config.base import Name, Positive


@Predicate(takes=[OfNumber, Bounds, OfPrompts])
def within(claim: Cells) -> Comparisons:
    """Every cell has its number within the bounds."""
    for row in claim.rows():
        words = f"{cell_words(row)}: {claim.shown(row)}"
        yield Comparison(claim.inside(claim.number(row)), words, (row,))


# Between cells of one target a common baseline cancels, so these do not lean on it.
@Predicate(agree="steps to a larger γ agree", several=" at two γ", leans=False, takes=[OfNumber])
def changes_with_gamma(claim: Cells, rises: bool) -> Comparisons:
    """Along every curve of a target and a draft, each step to a larger γ changes it one way."""
    for curve in claim.groups("series", "draft"):
        for before, after in pairwise(curve):
            yield claim.versus(before, after, f"γ = {after['gamma']}", higher=not rises)


@Predicate(agree="curves agree", besides=" both at γ = {beyond} and beyond", leans=False)
def gains_beyond_gamma(claim: Cells, beyond: Positive) -> Comparisons:
    """On every curve that extends beyond γ = `beyond`, some larger γ gains more."""
    for curve in claim.groups("series", "draft"):
        larger = [row for row in curve if row["gamma"] > beyond]
        for row in curve:
            if row["gamma"] == beyond and larger:
                yield claim.versus(best_of(larger), row)


@Predicate(agree="other cells gain less", several=" and a second one, both at two γ", leans=False)
def smallest_draft_and_largest_gamma_are_best(claim: Cells) -> Comparisons:
    """No cell of a target gains more than its smallest draft at its largest γ.

    Only targets that were measured with several drafts and several γ count.
    """
    for rows in claim.groups("series"):
        if min(len({row[key] for row in rows}) for key in ("draft", "gamma")) > 1:
            corner = min(rows, key=lambda row: (row["draft_parameters"], -row["gamma"]))
            yield from (claim.versus(corner, row) for row in rows if row is not corner)


@Predicate(agree="pairs of drafts agree", several=" and a second one at the same γ", takes=[Bounds])
def smaller_draft_gains_more(claim: Cells, low: float = 0.0) -> Comparisons:
    """Of two drafts of a target at the same γ, the smaller one gains more, by `low` to `high`."""
    for smaller, larger in _pairs(claim, "draft_parameters", "series", "gamma"):
        lead = claim.number(smaller).minus(claim.number(larger))
        more = number_words(lead, 3, ratio=False)
        words = f"{cell_words(smaller)}: {more} more than with {larger['draft_label']}"
        yield Comparison(claim.inside(lead), words, (smaller, larger))


@Predicate(
    ACCEPTANCE,
    agree="pairs of drafts agree",
    several=" and a second one at the same γ",
    share=lambda _: Share.MOST,
)
def larger_draft_is_accepted_more(claim: Cells) -> Comparisons:
    """Of two drafts of a target at the same γ, mostly the larger one is accepted more."""
    for smaller, larger in _pairs(claim, "draft_parameters", "series", "gamma"):
        yield claim.versus(smaller, larger, larger["draft_label"], higher=False)


@Predicate(agree="comparisons agree")
def gain_lies_between(
    claim: Cells, above: Name, at: Literal["best", "each"], below: Name | None = None
) -> Comparisons:
    """Targets gain more than target `above` and less than target `below`, if that is given.

    `at`: `best` compares the best cells of the targets, `each` all with the same draft and γ.
    """
    keys = ["series"] if at == "best" else ["series", "draft", "gamma"]
    named = [above, below] if below else [above]
    own = [best_of(rows) for rows in claim.groups(*keys)]
    ends = [best_of(rows) for rows in claim.of_targets(*named).groups(*keys)]
    measured = {end["target"] for end in ends}
    if lacking := [name for name in named if name not in measured]:
        raise Missing(f"no runs of {' or of '.join(lacking)} with a draft")
    for row, end in product(own, ends):
        if at == "best" or all(row[key] == end[key] for key in ("draft", "gamma")):
            pair = (row, end) if end["target"] == above else (end, row)
            yield claim.versus(*pair)


@Predicate(
    agree="pairs of an MoE and a dense target agree",
    share=lambda given: Share.EVERY if given.follows else Share.SOME,
)
def gain_follows(
    claim: Cells,
    column: Literal["parameters_total", "parameters_active", "size_bytes"],
    follows: bool = True,
) -> Comparisons:
    """Of an MoE and a dense target, the one with more of something gains more at its best.

    A claim about `size_bytes` is one about memory: targets that a cache may hold are left out. With
    `follows: false` the claim is that some pair does not. A campaign of twins compares these alone:
    an MoE has more of everything than its dense twin but active parameters, so a gain that follows
    those is the same.
    """
    of_memory = column == "size_bytes"
    if not claim.analysis.twins.empty:
        found = list(_of_twins(claim.analysis, uncached=of_memory, follows=follows))
    else:
        best = [best_of(rows) for rows in claim.groups("series")]
        pairs = _ordered([row for row in best if not (of_memory and row["in_cache"])], column)
        found = [
            claim.versus(more, less) if follows else claim.versus(less, more)
            for less, more in pairs
            if less["family"] != more["family"]
        ]
    if not found:
        cached = ", both larger than a cache" if of_memory else ""
        raise Missing(f"no runs of both an MoE and a dense target with a draft{cached}")
    yield from found


def _of_twins(analysis: Analysis, *, uncached: bool, follows: bool) -> Comparisons:
    cached = analysis.models.set_index("model")["in_cache"]
    where = f"(the experts are equal; backend {analysis.campaign['backend'].iloc[0]})"
    for row in records(told_twins(analysis)):
        if uncached and cached[row["dense"]]:
            continue
        ratio = estimate(row, "ratio")
        more = ratio.minus(Estimate.exact(1))
        if not follows:
            nearest = max(more.low, -more.high)
            more = Estimate(abs(more.value), nearest, max(-more.low, more.high))
        times = f"{number_words(ratio)} times the speedup of {row['dense_label']}"
        words = f"{row['target_label']}, {row['setting']}: {times} {where}"
        # Over all γ, so a γ is no key of its rows.
        keys = {key: row[key] for key in ("suite", "target", "draft")}
        yield Comparison(more, words, (keys,))


@Predicate(agree="pairs of files agree", several=" from two files of one network")
def larger_file_gains_more(claim: Cells) -> Comparisons:
    """Of two files of one network, with the same draft and γ, the larger one gains more."""
    network = ("family", "parameters_total", "draft", "gamma")
    for small, large in _pairs(claim, "size_bytes", *network):
        yield claim.versus(large, small)


@Predicate(
    agree="points agree",
    missing="no runs of an MoE and of two dense targets with the same draft and γ",
)
def lies_above_the_dense_line(claim: Cells) -> Comparisons:
    """Each MoE gains more than a line through dense targets has at its active parameters.

    The line joins the dense targets of fewest and of most active parameters, and goes on beyond.
    """
    for rows in claim.groups("draft", "gamma"):
        dense = sorted(_of_family(rows, "dense"), key=lambda row: row["parameters_active"])
        if len({row["parameters_active"] for row in dense}) < 2:
            continue
        ends = dense[0], dense[-1]
        start, end = (row["parameters_active"] for row in ends)
        for row in _of_family(rows, "moe"):
            part = (row["parameters_active"] - start) / (end - start)
            first, last = map(claim.number, ends)
            line = first.times(1 - part).minus(last.times(-part))
            words = (
                f"{cell_words(row)}: {claim.shown(row)}; the line through {ends[0]['label']} and"
                f" {ends[1]['label']} has {number_words(line)} there"
            )
            yield Comparison(claim.number(row).minus(line), words, (row, *ends))


@Predicate(
    ACCEPTANCE,
    agree="pairs of an MoE and a dense target agree",
    several=", an MoE and a dense one,",
)
def is_accepted_less_than_dense(claim: Cells) -> Comparisons:
    """Of the same draft at the same γ, each MoE accepts less than each dense target."""
    for rows in claim.groups("draft", "gamma"):
        for moe, dense in product(_of_family(rows, "moe"), _of_family(rows, "dense")):
            yield claim.versus(moe, dense, dense["label"], higher=False)


@Predicate(several=" at two lengths")
def falls_with_length(claim: Cells, cells: Literal["lengths"] = "lengths") -> Comparisons:
    """At its shortest prompt, each cell has a higher speedup than at its longest."""
    for shortest, longest in _ends(claim):
        yield claim.versus(shortest, longest)


@Predicate(several=" at two lengths")
def falls_with_reading_the_prompt(
    claim: Cells, cells: Literal["lengths"] = "lengths"
) -> Comparisons:
    """With the prompt's length the speedup falls, because reading the prompt takes its share.

    Decode rates leave that out, so they must not fall: the speedup of decoding at the longest
    prompt is not below that at the shortest.
    """
    for shortest, longest in _ends(claim):
        yield claim.versus(longest, shortest)


@Predicate(besides=", two in a cell", takes=[Bounds, OfPrompts])
def varies_at_most(claim: Cells, high: float, from_length: int = 0) -> Comparisons:
    """Over the prompts of a cell, the highest speedup is at most `high` above the lowest.

    With `from_length`, over those of that many tokens or more (words in the study). The difference
    of extremes grows with the spread and the number of prompts, so it overstates how much the
    prompts alone make.
    """
    for cell in claim.groups("series", "draft", "gamma"):
        prompts = [row for row in cell if row.get("n_prompt", inf) >= from_length]
        if len(prompts) > 1:
            top, bottom = best_of(prompts), min(prompts, key=lambda row: float(row["speedup"]))
            spread = claim.number(top).minus(claim.number(bottom))
            # It cannot be below 0.
            spread = Estimate(*(max(end, 0) for end in spread))
            more = number_words(spread, 3, ratio=False)
            words = f"{cell_words(top)}: {more} more than with {prompt_words(bottom)}"
            yield Comparison(claim.inside(spread), words, tuple(prompts))


def _ends(claim: Cells) -> Iterator[tuple[TableRow, TableRow]]:
    """Return the cells of each setting at its shortest and at its longest prompt."""
    for prompts in claim.groups("series", "draft", "gamma"):
        if len(prompts) > 1:
            shortest, *_, longest = sorted(prompts, key=lambda row: int(row["n_prompt"]))
            yield shortest, longest


def _pairs(claim: Cells, key: str, *alike: str) -> Iterator[tuple[TableRow, TableRow]]:
    """Return the pairs of cells that differ in `key`, the smaller first, and are else alike."""
    for rows in claim.groups(*alike):
        yield from _ordered(rows, key)


def _ordered(rows: Iterable[TableRow], key: str) -> Iterator[tuple[TableRow, TableRow]]:
    for pair in combinations(rows, 2):
        less, more = sorted(pair, key=lambda row: row[key])
        if less[key] < more[key]:
            yield less, more


def _of_family(rows: Iterable[TableRow], family: str) -> list[TableRow]:
    return [row for row in rows if row["family"] == family]
