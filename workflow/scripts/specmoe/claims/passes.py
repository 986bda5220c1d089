"""Claims about what a pass over the target costs and reads, and about the audit of tokens."""

from collections.abc import Sequence
from itertools import chain, product
from math import inf
from typing import Literal, NamedTuple

from specmoe.analysis.filters import timed_passes
from specmoe.analysis.intervals import Estimate
from specmoe.analysis.registry import Analysis
from specmoe.audit.checks import ALL
from specmoe.claims.predicates import (
    Bounds,
    Cells,
    Comparisons,
    Missing,
    Models,
    Predicate,
    among,
)
from specmoe.claims.verdicts import (
    ClaimResult,
    Comparison,
    TableRow,
    Verdict,
    cell_words,
    estimate,
    number_words,
)
from specmoe.config.base import Name, Positive
from specmoe.config.block import NO_DRAFT
from specmoe.words import counted, verb

_GIGA = 1e9
IN_CACHE = "a cache may hold the weights of these targets"


class Cost(NamedTuple):
    """What a verification costs: its positions, the passes over one, words, and its rows.

    `drafting` says whether the cost is that of a whole round.
    """

    positions: int
    passes: Estimate
    words: str
    rows: tuple[TableRow, ...]
    drafting: bool


@Predicate("tokens_per_round", leans=True)
def gains_without_accepted_tokens(claim: Cells, at_most: float = 0.0) -> Comparisons:
    """Every cell would gain even if no drafted token had been accepted.

    A round and its replay yield L tokens, the target's own included. Without the accepted ones they
    would yield one a pass in the same time, so with p passes a round the speedup would be S p / L.
    As a pass takes one step at least, no true row can have S p > L. Where the engine was made to
    accept `at_most` of the drafted tokens or less, the measured speedup decides as it is.
    """
    one = Estimate.exact(1)
    imposed = claim.analysis.predictions
    imposed = imposed[imposed["imposed_acceptance"].notna()]
    imposed = imposed[imposed["acceptance_rate"] <= at_most]
    for row in claim.narrow(imposed).to_dict("records"):
        found = estimate(row, "speedup")
        made = f"made to accept {100 * row['acceptance_rate']:.1f} %"
        words = f"{cell_words(row)}, {made}: {number_words(found)}"
        yield Comparison(found.minus(one), words, (row,))
    for cell in claim.rows():
        tokens, passes = cell["tokens_per_round"], 1 + cell["replays_per_round"]
        alone = estimate(cell, "speedup").times(passes / tokens)
        words = (
            f"{cell_words(cell)}: {cell['speedup']:.2f} with {tokens:.2f} tokens a round; with"
            f" {passes:.3g} it would be {number_words(alone)}"
        )
        yield Comparison(alone.minus(one), words, (cell,))


@Predicate("tokens_per_round", leans=True)
def rounds_cost_less_than_their_positions(
    claim: Cells, passes: Positive | None = None
) -> Comparisons:
    """Each verification costs less than a pass for each position of γ + 1, or than `passes`."""
    for cost in chain.from_iterable(_curves(claim)):
        most = Estimate.exact(passes or cost.positions)
        yield Comparison(most.minus(_verifying(cost.passes, cost)), cost.words, cost.rows)


@Predicate(
    "tokens_per_round",
    agree="curves agree",
    several=" at each of them",
    leans=True,
    takes=[Bounds],
)
def longer_rounds_cost(claim: Cells) -> Comparisons:
    """At the larger of two γ, a verification costs `low` to `high` times as much."""
    for curve in _curves(claim):
        if len(curve) > 1:
            less, more = curve[0], curve[-1]
            ratio = more.passes.over(less.passes)
            times = f"one of {more.positions} {number_words(ratio)} times as much"
            rows = (*less.rows, *more.rows)
            margin = claim.inside(_verifying(ratio, more))
            yield Comparison(margin, f"{less.words}; {times}", rows)


def _verifying(found: Estimate, cost: Cost) -> Estimate:
    """Return a cost of verification alone, given one that may be a round's.

    A round is an upper bound. So is the ratio of two, as drafting and reading the batch again grow
    with γ too. Whether it is drafting that makes a round dear is not known.
    """
    return found._replace(low=-inf) if cost.drafting else found


def _curves(claim: Cells) -> list[list[Cost]]:
    """Return what verifications cost, in passes over a single token, in order of γ.

    Where passes were timed by themselves, their times decide, by target. Elsewhere, by target and
    draft, a round of L tokens at speedup S takes the time of L / S single passes, drafting
    included.
    """
    passes = among(timed_passes(claim.analysis), claim.given)
    passes = passes[passes["width"] > 1]
    if passes.empty:
        return [[_cost_of_round(row) for row in curve] for curve in claim.groups("series", "draft")]
    if gammas := claim.given.gammas:
        passes = passes[(passes["width"] - 1).isin(gammas)]
    rows = passes.sort_values("width").groupby("target", sort=False)
    return [[_cost_of_pass(row) for row in own.to_dict("records")] for _, own in rows]


def _cost_of_round(row: TableRow) -> Cost:
    passes = estimate(row, "speedup").inverse().times(row["tokens_per_round"])
    positions = row["gamma"] + 1
    words = (
        f"{cell_words(row)}: a round of {positions} positions, with its drafting, takes the time of"
        f" {number_words(passes)} passes"
    )
    return Cost(positions, passes, words, (row,), drafting=True)


def _cost_of_pass(row: TableRow) -> Cost:
    passes = estimate(row, "steps")
    words = f"{row['target_label']}: a pass over {row['width']} tokens takes the time of"
    words = f"{words} {number_words(passes)} of one token"
    return Cost(row["width"], passes, words, (), drafting=False)


@Predicate("tokens_per_round", leans=False, accepted=True)
def rounds_are_tokens_over_gamma(claim: Cells, tolerance: float) -> Comparisons:
    """Each run takes about as many rounds as it has tokens for every γ of them.

    `tolerance` is what "about" allows, as a share.
    """
    tokens = float(claim.analysis.campaign["n_predict"].iloc[0])
    for row in claim.rows():
        rounds = row["rounds_per_run"]
        claimed = tokens / row["gamma"]
        words = (
            f"{cell_words(row)}: {tokens:.0f} tokens take {rounds:.0f} rounds of"
            f" {row['round_ms']:.1f} ms; the claim says {claimed:.0f}"
        )
        allowed = tolerance * claimed
        margin = Estimate.exact(rounds).within(claimed - allowed, claimed + allowed)
        yield Comparison(margin, words, (row,))


@Predicate(agree="models agree", takes=[Bounds])
def tokens_take(claim: Models, tokens: Positive) -> Comparisons:
    """Without a draft, so many tokens take `low` to `high` milliseconds."""
    take = f"{counted(tokens, 'token')} {verb(tokens, 'takes', 'take')}"
    for row in claim.rates():
        ms = Estimate.exact(1000 * tokens).over(_rate(row))
        words = f"{row['label']}: {take} {number_words(ms, 1)} ms"
        yield Comparison(claim.inside(ms), words, (row,))


@Predicate(
    agree="models agree",
    missing="no rates without a draft of both {models} and {than}",
    takes=[Bounds],
)
def runs_times_as_fast(claim: Models, than: Name) -> Comparisons:
    """Without a draft, these models run `low` to `high` times as fast as another one."""
    for row, other in product(claim.rates(), claim.of_targets(than).rates()):
        ratio = _rate(row).over(_rate(other))
        rates = f"{_rate_words(row, ' tok/s')}, {_rate_words(other)}"
        words = f"{rates}; {number_words(ratio)} times as fast"
        yield Comparison(claim.inside(ratio), words, (row, other))


@Predicate(
    agree="targets agree",
    missing="no rates without a draft of {models} and of a dense model with more active parameters",
)
def slower_than_next_active(claim: Models) -> Comparisons:
    """Without a draft, these targets are slower than the dense model next above in active size."""
    dense = _dense_by_active(claim.analysis)
    for row in _from_memory(claim):
        larger = (one for one in dense if one["parameters_active"] > row["parameters_active"])
        if above := next(larger, None):
            words = f"{_rate_words(row, ' tok/s')}, {_rate_words(above)}"
            yield Comparison(_rate(above).minus(_rate(row)), words, (row, above))


@Predicate(
    agree="targets agree",
    missing="no rates without a draft of {models} and of dense models with fewer and with more"
    " active parameters",
)
def falls_short_of_its_active_parameters(
    claim: Models, low: float, high: float = inf, of: Literal["ratio", "rate"] = "ratio"
) -> Comparisons:
    """Without a draft, dense models of as many active parameters would be `low` to `high` as fast.

    With `of: rate` the bounds are those of the dense models' rate itself, in tokens a second. Their
    time a token is interpolated between those of the dense models next below and above.
    """
    dense = [row for row in _dense_by_active(claim.analysis) if not row["in_cache"]]
    for row in _from_memory(claim):
        active = row["parameters_active"]
        below = [one for one in dense if one["parameters_active"] <= active][-1:]
        above = [one for one in dense if one["parameters_active"] > active][:1]
        for less, more in zip(below, above, strict=False):
            reach = more["parameters_active"] - less["parameters_active"]
            part = (active - less["parameters_active"]) / reach
            ends = zip(_rate(less), _rate(more), strict=True)
            expected = Estimate(*(1 / ((1 - part) / one + part / two) for one, two in ends))
            ratio = expected.over(_rate(row))
            found = expected if of == "rate" else ratio
            words = (
                f"{_rate_words(row, ' tok/s')}; between {less['label']} and {more['label']} its"
                f" active parameters stand for {number_words(expected, 1)},"
                f" {number_words(ratio)} times"
            )
            yield Comparison(found.within(low, high), words, (row, less, more))


_EXACT = "no rates without a draft of {models} on prompts of exact length"


@Predicate(agree="targets could read so much", missing=_EXACT)
def reads_its_file_for_each_token(claim: Models, tolerance: float) -> Comparisons:
    """Without a draft, every token takes a pass that reads the whole file from memory.

    Rates can refute this but never prove it. If file size times rate exceeds the bandwidth, the
    claim is false; otherwise it may be true or false. `tolerance` is the share by which a probed
    bandwidth may be too low.
    """
    bandwidth = _bandwidth(claim.analysis)
    for row in _from_memory(claim):
        needed = _rate(row).times(row["size_bytes"] / _GIGA)
        words = (
            f"{row['label']}: {row['size_bytes'] / _GIGA:.2f} GB a token at"
            f" {row['tokens_per_second']:.1f} tok/s need {number_words(needed, 0)} GB/s; memory"
            f" delivers {bandwidth / _GIGA:.0f}"
        )
        most = Estimate.exact(bandwidth / _GIGA * (1 + tolerance))
        yield Comparison(most.minus(needed)._replace(low=-inf), words, (row,))


@Predicate(agree="targets agree", missing=_EXACT)
def bandwidth_is_used(claim: Models, low: float = 0.0, high: float = inf) -> Comparisons:
    """Without a draft, tokens read between `low` and `high` of the memory bandwidth, as shares.

    A token reads the weights it is multiplied with: the active share of the file, as if all weights
    had the same number of bits.
    """
    bandwidth = _bandwidth(claim.analysis)
    for row in _from_memory(claim):
        read = row["size_bytes"] * row["parameters_active"] / row["parameters_total"]
        share = _rate(row).times(read / bandwidth)
        words = (
            f"{row['label']}: {read / _GIGA:.2f} GB a token use {number_words(share, ratio=False)}"
            f" of {bandwidth / _GIGA:.0f} GB/s"
        )
        yield Comparison(share.within(low, high), words, (row,))


@Predicate()
def audit_passes(claim: Models, check: Literal["losslessness", "determinism"]) -> ClaimResult:
    """No run fails a check of the audit.

    Runs that the check does not apply to count neither way, such as those whose acceptance was
    imposed; those that were not judged leave it open. Runs without a draft count where it applies
    to some of them.
    """
    words = ("passed", "failed", "not_applicable", "not_judged")
    counts = [f"{check}_{word}" for word in words]
    audit = claim.analysis.audit.reindex(columns=["target", "draft", "gamma", *counts])
    audit = audit[audit["target"] != ALL]
    audit = audit[(audit["draft"] != NO_DRAFT) | (audit[counts[:2]].sum(axis=1) > 0)]
    passed, failed, unknown, unjudged = (int(audit[count].sum()) for count in counts)
    if not passed + failed + unjudged:
        raise Missing("no runs whose tokens are known")
    clear = Verdict.INCONCLUSIVE if unjudged else Verdict.SUPPORTED
    verdict = Verdict.CONTRADICTED if failed else clear
    why = f"{passed} runs pass, {failed} fail, it does not apply to {unknown}"
    why += f", {unjudged} diverge and were not judged" if unjudged else ""
    return ClaimResult(verdict, why, tuple(audit.to_dict("records")))


def _rate(row: TableRow) -> Estimate:
    """Return a baseline's rate, in tokens a second."""
    return estimate(row, "tokens_per_second")


def _rate_words(row: TableRow, unit: str = "") -> str:
    return f"{row['label']}: {number_words(_rate(row), 1)}{unit}"


def _from_memory(claim: Models) -> Sequence[TableRow]:
    """Return the rates of those of the models that no cache holds; raises Missing without any."""
    rates = claim.rates()
    found = [row for row in rates if not row["in_cache"]]
    if rates and not found:
        raise Missing(IN_CACHE)
    return found


def _dense_by_active(analysis: Analysis) -> Sequence[TableRow]:
    models = analysis.baselines
    dense = models[models["family"] == "dense"]
    return dense.sort_values("parameters_active", kind="stable").to_dict("records")


def _bandwidth(analysis: Analysis) -> float:
    """Return the machine's, in bytes a second; raises Missing if it is not known."""
    known = analysis.campaign.iloc[0].get("host_memory_bandwidth_bytes_per_second")
    if known is None or not known > 0:
        raise Missing("the machine's memory bandwidth is not known")
    return float(known)
