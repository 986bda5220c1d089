"""Verdicts on claims, and the comparisons that decide them.

A claim has comparisons (this setting gains more than that one, that rate is below 4 %), of which
all must hold, or some. A comparison holds if its whole interval is on the claimed side, fails if it
is on the other side, and is open otherwise. A single block has no interval. The verdicts are:

- supported: enough comparisons hold;
- rests on impossible rows: enough hold, but too few of them are of settings without an impossible
  run;
- contradicted: so many fail that enough cannot hold;
- inconclusive: neither;
- not testable: there is nothing to compare, and the verdict names what is missing.

A verdict keeps its level whatever the number of comparisons. If k of n must hold, the intervals
that support a claim are simultaneous for n - k + 1, and those that contradict it for k (Bonferroni,
for partial conjunctions). So a false claim is supported, and a true one contradicted, in at most
2.5 % of cases, however its comparisons depend on each other.

Intervals are over blocks: about this machine and these prompts. Two settings are compared in each
repeat, which may tell them apart where their own intervals overlap. An unpaired setting's interval
omits the variance of its baseline. Counts of tokens have no interval: greedy runs repeat them
exactly.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from enum import StrEnum
from typing import NamedTuple

import pandas as pd

from specmoe.analysis.intervals import Estimate, student_quantile
from specmoe.analysis.registry import TABLES, Analysis, Record, records
from specmoe.analysis.summaries import by_model
from specmoe.config.block import MEASURED_BY, NO_DRAFT, PASSAGE_PREFIX


class Outcome(StrEnum):
    """The outcome for a claim."""

    SUPPORTED = "supported"
    IMPOSSIBLE_ROWS = "rests on impossible rows"
    CONTRADICTED = "contradicted"
    INCONCLUSIVE = "inconclusive"
    NOT_TESTABLE = "not testable"


class Comparison(NamedTuple):
    """One comparison of a claim: its margin on the claimed side, its text, and its rows."""

    margin: Estimate
    text: str
    rows: tuple[Record, ...]


Comparisons = Iterator[Comparison]


class Missing(Exception):  # noqa: N818 (it is no error)
    """What a campaign lacks, so that it cannot decide a claim."""


class StudyClaim(NamedTuple):
    """A claim of the study; `resources/reported/statements.yaml` explains its words.

    `compare` yields the comparisons of an analysis, or raises Missing.
    """

    statement: str
    place: str
    missing: str
    compare: Callable[[Analysis], Comparisons]
    agree: str = "Settings that agree"
    some: bool = False


def conclude(
    comparisons: Sequence[Comparison],
    confidence: float,
    degrees: float,
    possible: Callable[[Comparison], bool] = lambda _: True,
    *,
    some: bool = False,
) -> tuple[Outcome, Comparison]:
    """Return the verdict on a claim, and the comparison that decides.

    All comparisons must hold, or some. The decisive one is nearest to failing, or holds best if
    some suffice. The intervals have `degrees` of freedom; `possible` excludes comparisons with
    impossible runs.
    """

    def widening(intervals: int) -> float:
        """Return the factor by which so many simultaneous intervals are wider."""
        each = 1 - (1 - confidence) / intervals
        return float(student_quantile(degrees, each) / student_quantile(degrees, confidence))

    count = len(comparisons)
    needed = 1 if some else count
    wide, wider = widening(count - needed + 1), widening(needed)
    sure, refuted, undecided = (list[Comparison]() for _ in range(3))
    for comparison in comparisons:
        holds = comparison.margin.widened(wide).low > 0
        fails = comparison.margin.widened(wider).high <= 0
        (sure if holds else refuted if fails else undecided).append(comparison)
    if len(sure) >= needed:
        enough = sum(map(possible, sure)) >= needed
        verdict, pool = Outcome.SUPPORTED if enough else Outcome.IMPOSSIBLE_ROWS, sure
    elif count - len(refuted) < needed:
        verdict, pool = Outcome.CONTRADICTED, refuted
    else:
        verdict, pool = Outcome.INCONCLUSIVE, undecided
    return verdict, (max if some else min)(pool, key=lambda comparison: comparison.margin.value)


def judge_claims(claims: Mapping[str, StudyClaim], analysis: Analysis) -> pd.DataFrame:
    """Return the table `claims`: the verdict on each claim, one row per protocol and engine.

    The study's draft models decide; other methods do not.
    """
    return pd.DataFrame(
        {"claim": name, "statement": claim.statement, "place": claim.place}
        | {**key, **_judged(claim, part)}
        for key, part in _by_protocol(analysis)
        for name, claim in claims.items()
    )


def _judged(claim: StudyClaim, analysis: Analysis) -> Record:
    """Return the verdict on a claim by the analysis of one protocol and engine."""
    comparisons: list[Comparison] = []
    verdict, why = Outcome.NOT_TESTABLE, f"no runs of {claim.missing}"
    try:
        comparisons = list(claim.compare(analysis))
    except Missing as missing:
        why = str(missing)
    if comparisons:
        campaign = analysis.campaign.iloc[0]
        verdict, deciding = conclude(
            comparisons,
            float(campaign["confidence"]),
            # Settings that were repeated more often have narrower intervals than this allows for.
            max(1, int(campaign["repeats"]) - 1),
            lambda comparison: not _runs_of(comparison.rows, analysis)["impossible"].any(),
            some=claim.some,
        )
        held = sum(comparison.margin.value > 0 for comparison in comparisons)
        # A verdict may not be what this count seems to say.
        yet = ", too few of them without impossible runs" * (verdict == Outcome.IMPOSSIBLE_ROWS)
        yet += ", and their intervals leave it open" * (verdict == Outcome.INCONCLUSIVE)
        why = f"{claim.agree}: {held} of {len(comparisons)}{yet}. {deciding.text}"
    used = _runs_of([row for comparison in comparisons for row in comparison.rows], analysis)
    return {
        "verdict": verdict.value,
        "why": why,
        "comparisons": len(comparisons),
        **{count: int(used[count].sum()) for count in ("runs", "flagged")},
    }


def _by_protocol(analysis: Analysis) -> Iterator[tuple[Record, Analysis]]:
    """Yield each protocol and engine of speculative runs, or else of baselines, and its analysis.

    Tables that name the method keep the rows of draft models; a table of an engine has no protocol.
    """
    frames = (analysis.settings, analysis.baselines, analysis.campaign)
    measured = next(frame for frame in frames if not frame.empty)
    for key in records(measured[MEASURED_BY].drop_duplicates()):
        parts = {}
        for name, table in TABLES.items():
            if keys := [*filter(MEASURED_BY.__contains__, table.columns)]:
                frame = getattr(analysis, name)
                rows = (frame[keys] == pd.Series(key)[keys]).all(axis="columns")
                parts[name] = frame[rows & by_model(frame) if "method" in frame else rows]
        yield key, replace(analysis, **parts)


def _runs_of(rows: Sequence[Record], analysis: Analysis) -> pd.DataFrame:
    """Return the rows of `flagged` that rows of other tables are made of."""
    settings = pd.DataFrame(rows).filter(["suite", "target", "draft", "gamma", "prompt"])
    flagged = analysis.flagged
    if settings.empty:
        return flagged.iloc[:0]
    if "draft" not in settings:
        # The runs of a baseline's rate, see `summarise_baselines`.
        speculative = flagged.loc[flagged["draft"] != NO_DRAFT, "suite"]
        passages = flagged["prompt"].str.startswith(PASSAGE_PREFIX)
        flagged = flagged[~flagged["suite"].isin(speculative) & passages]
    return flagged.merge(settings.drop_duplicates())
