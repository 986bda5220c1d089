"""The headline claims of the published study: a function each, whose first sentence is the claim.

They are those that the study's abstract, contributions, conclusions and tables rest on. A function
gets what a campaign measured in one way (protocol and engine) and yields comparisons; module
`judge` says how these decide. A bound that is not the study's own is in the words.
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import combinations, pairwise
from math import inf

import pandas as pd

from specmoe.analysis.filters import (
    length_cells,
    text_cells,
    timed_passes,
    told_twins,
    usual_cells,
)
from specmoe.analysis.intervals import Estimate
from specmoe.analysis.registry import Analysis, records
from specmoe.claims.judge import (
    CLAIMS,
    Claim,
    Comparison,
    Comparisons,
    Missing,
    TableRow,
    best_of,
    cell_words,
    estimate,
    number_words,
)

__all__ = ["CLAIMS", "CONSTRUCTED"]  # `Claim` enters each function below
CONSTRUCTED = "acceptance was constructed: the targets have random weights or copied experts"
IN_CACHE = "a cache may hold the weights of these targets"
_ACCEPTANCE = "acceptance_rate_mean"
_ONE = Estimate.exact(1)
_GIGA = 1e9
_DENSE = ("dense_4b", "dense_9b")


@Claim("Abstract; Introduction; Contribution 2; Conclusion 1", "an MoE target with a draft")
def moe_gain(analysis: Analysis) -> Comparisons:
    """With a draft, MoE targets run 1.18 to 1.30 times as fast."""
    yield from _rounds_to(_moe(_texts(analysis)), 1.18, 1.30)


@Claim(
    "Abstract; Introduction; Contribution 2; Conclusion 1; Page",
    "an MoE target with a draft at γ = 8 or 16",
)
def moe_gain_small_draft(analysis: Analysis) -> Comparisons:
    """With the smallest draft at γ = 8 and 16, MoE targets run 1.18 to 1.30 times as fast."""
    cells = _smallest_draft(_moe(_texts(analysis)))
    yield from _rounds_to(cells[cells["gamma"].isin([8, 16])], 1.18, 1.30)


@Claim(
    "Abstract; Contribution 1; Section 4.2; Conclusion 1",
    "any target with a draft whose acceptance rate is known",
    leans=False,
)
def acceptance_low(analysis: Analysis) -> Comparisons:
    """On whole texts, fewer than 4 % of the drafted tokens are accepted, on MoE and dense targets.

    Prompts of a stated length are no whole texts.
    """
    yield from _accept_below_4_percent(_texts(analysis, _ACCEPTANCE))


@Claim(
    "Abstract; Introduction; Sections 4.7, 5.4; Page",
    "any target with a draft whose acceptance rate is known",
    leans=False,
)
def acceptance_low_everywhere(analysis: Analysis) -> Comparisons:
    """Fewer than 4 % of the drafted tokens are accepted, in every suite."""
    yield from _accept_below_4_percent(_cells(analysis, usual_cells(analysis)))


@Claim(
    "Abstract; Introduction; Contribution 2; Section 2.2; Conclusion 1; Page",
    "an MoE target with a draft whose rounds are known",
)
def gain_without_acceptance_moe(analysis: Analysis) -> Comparisons:
    """With the smallest draft, MoE targets gain although fewer than 4 % of the tokens are accepted.

    A round and its replay yield L tokens, the target's own included. Without the accepted ones they
    would yield one a pass in the same time, so with p passes a round the speedup would be S p / L.
    As a pass takes one step at least, no true row can have S p > L. Where the engine was made to
    accept no more, the measured speedup decides as it is.
    """
    made = analysis.predictions
    made = made[made["imposed_acceptance"].notna() & (made["acceptance_rate"] <= 0.04)]
    for row in _rows(_smallest_draft(_moe(_cells(analysis, made)))):
        found = estimate(row, "speedup")
        accepting = f"made to accept {100 * row['acceptance_rate']:.1f} %"
        words = f"{cell_words(row)}, {accepting}: {number_words(found)}"
        yield Comparison(found.minus(_ONE), words, (row,))
    for row in _rows(_smallest_draft(_moe(_texts(analysis, "tokens_per_round")))):
        tokens, passes = row["tokens_per_round"], 1 + row["replays_per_round"]
        alone = estimate(row, "speedup").times(passes / tokens)
        words = (
            f"{cell_words(row)}: {row['speedup']:.2f} with {tokens:.2f} tokens a round; with"
            f" {passes:.3g} it would be {number_words(alone)}"
        )
        yield Comparison(alone.minus(_ONE), words, (row,))


@Claim("Abstract; Sections 2.2, 4.4, 5.2; Page", "any target with a draft whose rounds are known")
def checking_is_sublinear(analysis: Analysis) -> Comparisons:
    """Checking the positions of a round costs less than as many single passes.

    Where passes were timed by themselves, their times decide. Elsewhere a round of L tokens at
    speedup S takes the time of L / S single passes. As that includes drafting, it is an upper
    bound: whether it is drafting that makes a round dear is not known.
    """
    passes = timed_passes(analysis)
    passes = passes[passes["width"] > 1].sort_values("width")
    for target in passes["target"].unique():
        for row in _rows(passes[passes["target"] == target]):
            found = estimate(row, "steps")
            words = f"{row['target_label']}: a pass over {row['width']} tokens takes the time of"
            words += f" {number_words(found)} of one token"
            yield Comparison(Estimate.exact(row["width"]).minus(found), words, ())
    if not passes.empty:
        return
    for curve in _groups(_texts(analysis, "tokens_per_round"), "series", "draft"):
        for row in curve:
            positions = row["gamma"] + 1
            found = estimate(row, "speedup").inverse().times(row["tokens_per_round"])
            words = (
                f"{cell_words(row)}: a round of {positions} positions, with its drafting, takes the"
                f" time of {number_words(found)} passes"
            )
            most = Estimate.exact(positions).minus(found._replace(low=-inf))
            yield Comparison(most, words, (row,))


@Claim(
    "Abstract; Section 4.4, Figure 2; Section 5.4; Page",
    "any target with a draft at two γ",
    "steps to a larger γ agree",
    leans=False,
)
def rises_with_gamma(analysis: Analysis) -> Comparisons:
    """The speedup rises with every step to a larger γ, on all targets with all drafts."""
    for curve in _groups(_texts(analysis), "series", "draft"):
        for before, after in pairwise(curve):
            margin = _speedup(after).minus(_speedup(before))
            yield _versus(margin, before, after, f"γ = {after['gamma']}")


@Claim(
    "Section 5.4; Conclusion 3; Page",
    "any target with a draft and a second one, both at two γ",
    "other cells gain less",
    leans=False,
)
def best_configuration(analysis: Analysis) -> Comparisons:
    """The best configuration is the smallest draft with the largest γ."""
    for rows in _groups(_texts(analysis), "series"):
        if min(len({row[key] for row in rows}) for key in ("draft", "gamma")) > 1:
            corner = min(rows, key=lambda row: (row["draft_parameters"], -row["gamma"]))
            yield from (_gains_more(corner, row) for row in rows if row is not corner)


@Claim(
    "Abstract; Sections 4.5, 5.4; Page",
    "an MoE target with a draft and a second one at the same γ",
    "pairs of drafts agree",
)
def smaller_draft_gains_more(analysis: Analysis) -> Comparisons:
    """Of two drafts, the smaller one gains more on MoE targets."""
    for rows in _groups(_moe(_texts(analysis)), "series", "gamma"):
        for smaller, larger in _ordered(rows, "draft_parameters"):
            lead = _speedup(smaller).minus(_speedup(larger))
            more = number_words(lead, 3, ratio=False)
            words = f"{cell_words(smaller)}: {more} more than with {larger['draft_label']}"
            yield Comparison(lead, words, (smaller, larger))


@Claim(
    "Contribution 3; Section 4.3; Conclusion 2", "an MoE target with a draft", "comparisons agree"
)
def between_at_best(analysis: Analysis) -> Comparisons:
    """At their best, MoE targets gain more than the dense 4B and less than the dense 9B."""
    best = [best_of(rows) for rows in _groups(_texts(analysis), "series")]
    ends = {name: [row for row in best if row["target"] == name] for name in _DENSE}
    if lacking := [name for name in _DENSE if not ends[name]]:
        raise Missing(f"no runs of {' or of '.join(lacking)} with a draft")
    for row in (row for row in best if row["family"] == "moe"):
        yield from (_gains_more(row, low) for low in ends["dense_4b"])
        yield from (_gains_more(high, row) for high in ends["dense_9b"])


@Claim(
    "Abstract; Contribution 3; Section 4.3; Conclusion 2; Page",
    "both an MoE and a dense target with a draft",
    "pairs of an MoE and a dense target agree",
    twins=True,
)
def gain_follows_total(analysis: Analysis) -> Comparisons:
    """The gain follows the target's total parameters.

    Targets are compared at their best. A campaign of twins compares these alone: an MoE has more of
    everything than its dense twin but active parameters.
    """
    if not analysis.twins.empty:
        yield from _of_twins(analysis, lambda more: more)
    else:
        for less, more in _moe_and_dense(analysis, "parameters_total"):
            yield _gains_more(more, less)


@Claim(
    "Abstract; Contribution 3; Section 4.3; Conclusion 2",
    "both an MoE and a dense target with a draft",
    "pairs of an MoE and a dense target agree",
    some=True,
    twins=True,
)
def gain_ignores_active(analysis: Analysis) -> Comparisons:
    """The gain does not follow the target's active parameters.

    One pair whose gain does not is enough. Twins have as many active parameters, so a gain that
    follows these is the same.
    """

    def apart(more: Estimate) -> Estimate:
        return Estimate(abs(more.value), max(more.low, -more.high), max(-more.low, more.high))

    if not analysis.twins.empty:
        yield from _of_twins(analysis, apart)
    else:
        for less, more in _moe_and_dense(analysis, "parameters_active"):
            yield _gains_more(less, more)


@Claim(
    "Contribution 4; Section 4.8; Conclusion 4; Page",
    "an MoE target with a draft on prompts of exact length",
)
def lengths_gain(analysis: Analysis) -> Comparisons:
    """Over prompt lengths, MoE targets run 1.19 to 1.26 times as fast."""
    yield from _rounds_to(_moe(_cells(analysis, length_cells(analysis))), 1.19, 1.26)


@Claim(
    "Abstract; Introduction; Sections 2.3, 4.1, 5.1, 5.2; Page",
    "an MoE target without a draft on prompts of exact length",
    "targets could read so much",
    leans=False,
    twins=True,
)
def moe_reads_its_file(analysis: Analysis) -> Comparisons:
    """Without a draft, every pass of an MoE reads its whole file from memory.

    Rates can refute this but never prove it: if file size times rate exceeds the bandwidth, it is
    false, else it may be true or false. A probed bandwidth may be too low by a tenth, as
    `audit.bandwidth_tolerance` says.
    """
    bandwidth = analysis.campaign.iloc[0].get("host_memory_bandwidth_bytes_per_second")
    if bandwidth is None or not bandwidth > 0:
        raise Missing("the machine's memory bandwidth is not known")
    rates = _rows(_moe(analysis.baselines))
    if rates and all(row["in_cache"] for row in rates):
        raise Missing(IN_CACHE)
    for row in (row for row in rates if not row["in_cache"]):
        size = row["size_bytes"] / _GIGA
        needed = estimate(row, "tokens_per_second").times(size)
        words = (
            f"{row['label']}: {size:.2f} GB a token at {row['tokens_per_second']:.1f} tok/s need"
            f" {number_words(needed, 0)} GB/s; memory delivers {bandwidth / _GIGA:.0f}"
        )
        most = Estimate.exact(bandwidth / _GIGA * 1.1)
        yield Comparison(most.minus(needed)._replace(low=-inf), words, (row,))


def _cells(analysis: Analysis, cells: pd.DataFrame) -> pd.DataFrame:
    """Return cells with `draft_parameters`."""
    models = analysis.models[["model", "parameters_total"]]
    models.columns = pd.Index(["draft_model", "draft_parameters"])
    drafts = analysis.drafts[["draft", "draft_model"]].merge(models, on="draft_model")
    drafts = drafts.drop(columns="draft_model")
    return cells.merge(drafts, how="left", on="draft", validate="m:1")


def _texts(analysis: Analysis, known: str = "speedup") -> pd.DataFrame:
    """Return the cells of suites that send whole texts, or of all suites if none does."""
    cells = text_cells(analysis)
    cells = _cells(analysis, usual_cells(analysis) if cells.empty else cells)
    return cells[cells[known].notna()]


def _moe(frame: pd.DataFrame) -> pd.DataFrame:
    return frame[frame["family"] == "moe"]


def _smallest_draft(cells: pd.DataFrame) -> pd.DataFrame:
    """Return each target's cells with its draft of fewest parameters."""
    least = cells.groupby("series")["draft_parameters"].transform("min")
    return cells[cells["draft_parameters"] == least]


def _rows(frame: pd.DataFrame) -> Sequence[TableRow]:
    return frame.to_dict("records")


def _groups(cells: pd.DataFrame, *keys: str) -> list[Sequence[TableRow]]:
    """Return the cells in groups of equal values of `keys`, each in order of γ."""
    cells = cells.sort_values("gamma", kind="stable")
    return [_rows(members) for _, members in cells.groupby(list(keys), sort=False)]


def _ordered(rows: Sequence[TableRow], key: str) -> Iterator[tuple[TableRow, TableRow]]:
    """Return the pairs of rows that differ in `key`, the lower first."""
    for pair in combinations(rows, 2):
        less, more = sorted(pair, key=lambda row: row[key])
        if less[key] < more[key]:
            yield less, more


def _speedup(row: TableRow) -> Estimate:
    return estimate(row, "speedup")


def _versus(margin: Estimate, one: TableRow, other: TableRow, name: str = "") -> Comparison:
    words = f"{cell_words(one)}: {number_words(_speedup(one))}, {name or cell_words(other)}:"
    return Comparison(margin, f"{words} {number_words(_speedup(other))}", (one, other))


def _gains_more(one: TableRow, other: TableRow) -> Comparison:
    return _versus(_speedup(one).minus(_speedup(other)), one, other)


def _rounds_to(cells: pd.DataFrame, low: float, high: float) -> Comparisons:
    """Compare speedups with bounds that were printed with two decimals."""
    for row in _rows(cells[cells["speedup"].notna()]):
        words = f"{cell_words(row)}: {number_words(_speedup(row))}"
        yield Comparison(_speedup(row).within(low - 0.005, high + 0.005), words, (row,))


def _accept_below_4_percent(cells: pd.DataFrame) -> Comparisons:
    """Compare acceptance rates, the study's means over runs; made ones cannot show any."""
    known = cells[cells[_ACCEPTANCE].notna()]
    made = known["constructed"].astype(bool)
    if made.all() and made.any():
        raise Missing(CONSTRUCTED)
    for row in _rows(known[~made]):
        percent = Estimate.exact(100 * row[_ACCEPTANCE])
        words = f"{cell_words(row)}: {number_words(percent, ratio=False)} %"
        yield Comparison(percent.within(-inf, 4), words, (row,))


def _moe_and_dense(analysis: Analysis, column: str) -> Iterator[tuple[TableRow, TableRow]]:
    """Return the pairs of an MoE and a dense target at their best, that with less first."""
    best = [best_of(rows) for rows in _groups(_texts(analysis), "series")]
    for less, more in _ordered(best, column):
        if less["family"] != more["family"]:
            yield less, more


def _of_twins(analysis: Analysis, margin: Callable[[Estimate], Estimate]) -> Comparisons:
    where = f"(the experts are equal; backend {analysis.campaign['backend'].iloc[0]})"
    for row in records(told_twins(analysis)):
        ratio = estimate(row, "ratio")
        times = f"{number_words(ratio)} times the speedup of {row['dense_label']}"
        words = f"{row['target_label']}, {row['setting']}: {times} {where}"
        # Over all γ, so a γ is no key of its rows.
        keys = {key: row[key] for key in ("suite", "target", "draft")}
        yield Comparison(margin(ratio.minus(_ONE)), words, (keys,))
