"""Verdicts on claims, and the comparisons that decide them.

A claim consists of comparisons (this setting gains more than that one, that rate is below 4 %), and
says that all of them hold, or some. A comparison holds surely if its whole interval is on
the claimed arm, fails surely if its whole interval is on the other side, and is open otherwise, as
without an interval (a single block). The verdicts are:

- supported: enough comparisons hold surely;
- rests on impossible rows: enough hold surely, but too few of them are of settings without a run
  that the audit calls impossible;
- contradicted: so many fail surely that enough cannot hold;
- inconclusive: neither; the numbers agree with the claim and with its contrary;
- not testable: there is nothing to compare, and the verdict names what is missing.

A verdict keeps its level whatever the number of comparisons. If k of n must hold, the intervals
that support a claim are widened to the level of n - k + 1 at once, and those that contradict it to
that of k (Bonferroni, for partial conjunctions). So a false claim is supported, and a true one
contradicted, by luck in at most half of what the confidence leaves, 2.5 % of cases, however its
comparisons depend on each other.

Intervals are over blocks: about this machine and these prompts. Two settings count as different if
their intervals do not overlap, which is stricter than an interval of their difference. The interval
of a setting that is not paired leaves out the spread of its baseline. Counts of tokens have none:
greedy runs repeat them exactly. Impossible rows can contradict what was said of them, so every
verdict comes with the number of its rows that the audit flagged.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from enum import StrEnum
from typing import NamedTuple

import pandas as pd

from specmoe.analysis.intervals import Estimate, student_quantile
from specmoe.analysis.labels import by_model
from specmoe.analysis.registry import TABLES, Analysis, Record, records
from specmoe.config.block import MEASURED_BY, NO_DRAFT, PASSAGE_PREFIX

_SETTING_KEYS = ("suite", "target", "draft", "gamma", "prompt")


class Verdict(StrEnum):
    """The outcome for a claim."""

    SUPPORTED = "supported"
    IMPOSSIBLE_ROWS = "rests on impossible rows"
    CONTRADICTED = "contradicted"
    INCONCLUSIVE = "inconclusive"
    NOT_TESTABLE = "not testable"


class Comparison(NamedTuple):
    """One comparison of a claim: its margin on the claimed arm, its text, and its rows."""

    margin: Estimate
    text: str
    rows: tuple[Record, ...]


Comparisons = Iterator[Comparison]


class Missing(Exception):  # noqa: N818 (it is no error)
    """What a campaign lacks, so that it cannot decide a claim."""


class Claim(NamedTuple):
    """A claim of the study.

    - statement, place: the claim, and where the study makes it.
    - missing: the runs that a campaign without any comparison lacks.
    - compare: yields the comparisons of an analysis, or raises Missing.
    - agree: follows the count of the comparisons that hold.
    - leans: whether the spread of baselines could change the verdict. Between settings of one
      target a common baseline cancels.
    - some: whether one comparison that holds is enough.
    """

    statement: str
    place: str
    missing: str
    compare: Callable[[Analysis], Comparisons]
    agree: str = "settings agree"
    leans: bool = True
    some: bool = False


def conclude(
    comparisons: Sequence[Comparison],
    confidence: float,
    degrees: float,
    possible: Callable[[Comparison], bool] = lambda _: True,
    *,
    some: bool = False,
) -> tuple[Verdict, Comparison]:
    """Return the verdict on a claim that all of its comparisons hold, or some, and what decides.

    That is the comparison nearest to failing, or the one that holds best if some suffice. The
    intervals have `degrees` of freedom; `check_claim` says whether a comparison's runs can be true.
    """

    def widening(intervals: int) -> float:
        """Return how many times as wide so many intervals are if all hold at once."""
        each = 1 - (1 - confidence) / intervals
        return float(student_quantile(degrees, each) / student_quantile(degrees, confidence))

    count = len(comparisons)
    needed = 1 if some else count
    wide, wider = widening(count - needed + 1), widening(needed)
    sure = [one for one in comparisons if one.margin.widened(wide).low > 0]
    refuted = [one for one in comparisons if one.margin.widened(wider).high <= 0]
    if len(sure) >= needed:
        enough = sum(map(possible, sure)) >= needed
        verdict, pool = Verdict.SUPPORTED if enough else Verdict.IMPOSSIBLE_ROWS, sure
    elif count - len(refuted) < needed:
        verdict, pool = Verdict.CONTRADICTED, refuted
    else:
        decided = {id(one) for one in (*sure, *refuted)}
        verdict, pool = Verdict.INCONCLUSIVE, [one for one in comparisons if id(one) not in decided]
    return verdict, (max if some else min)(pool, key=lambda one: one.margin.value)


def judge_claims(claims: Mapping[str, Claim], analysis: Analysis) -> pd.DataFrame:
    """Return what a campaign says of each claim, one row each.

    Suites that were measured in different ways (protocol and engine) are judged apart: there is a
    row for each way. The study's drafts are models, so what drafts otherwise decides no claim.

    Columns: claim, statement, place, protocol, engine, verdict (a `Verdict`), why (the numbers
    that decide it, or what is missing), comparisons, runs (that it rests on), flagged (those that
    break a check of the audit; both count runs with a draft, or runs without one where the
    claim is about baseline rates), unpaired (whether some are compared with a baseline of other
    prompts whose spread could change the verdict).
    """
    return pd.DataFrame(
        {
            "claim": name,
            "statement": claim.statement,
            "place": claim.place,
            **way,
            **_judged(claim, part),
        }
        for way, part in _by_protocol(analysis)
        for name, claim in claims.items()
    )


def _judged(claim: Claim, analysis: Analysis) -> Record:
    """Return what an analysis, all measured in one way, says of a claim."""
    comparisons: list[Comparison] = []
    verdict, why = Verdict.NOT_TESTABLE, f"no runs of {claim.missing}"
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
            lambda one: not _runs_of(one.rows, analysis)["impossible"].any(),
            some=claim.some,
        )
        held = sum(one.margin.value > 0 for one in comparisons)
        why = f"{held} of {len(comparisons)} {claim.agree}. {deciding.text}"
    rows = [row for one in comparisons for row in one.rows]
    used = _runs_of(rows, analysis)
    return {
        "verdict": verdict.value,
        "why": why,
        "comparisons": len(comparisons),
        **{count: int(used[count].sum()) for count in ("runs", "flagged")},
        "unpaired": claim.leans and not all(row.get("paired", True) for row in rows),
    }


def _by_protocol(analysis: Analysis) -> Iterator[tuple[Record, Analysis]]:
    """Yield each way that speculation was measured in, and the analysis of its rows alone.

    Without speculation they are the ways of the rates. Where a table names the method, it keeps
    what draft models drafted.
    """
    frames = (analysis.settings, analysis.baselines, analysis.campaign)
    measured = next(frame for frame in frames if not frame.empty)
    tables = [name for name, table in TABLES.items() if set(MEASURED_BY) <= set(table.columns)]
    for way in records(measured[MEASURED_BY].drop_duplicates()):
        parts = {}
        for name in tables:
            frame = getattr(analysis, name)
            own = (frame[MEASURED_BY] == pd.Series(way)).all(axis="columns")
            parts[name] = frame[own & by_model(frame) if "method" in frame else own]
        yield way, replace(analysis, **parts)


def _runs_of(rows: Sequence[Record], analysis: Analysis) -> pd.DataFrame:
    """Return the rows of `flagged` that rows of other tables are made of."""
    settings = pd.DataFrame(
        [{key: row[key] for key in _SETTING_KEYS if key in row} for row in rows]
    )
    flagged = analysis.flagged
    if settings.empty:
        return flagged.iloc[:0]
    if "draft" not in settings:
        # A rate without a draft is made of these runs, see `summarise_baselines`.
        speculative = flagged.loc[flagged["draft"] != NO_DRAFT, "suite"]
        passages = flagged["prompt"].str.startswith(PASSAGE_PREFIX)
        flagged = flagged[~flagged["suite"].isin(speculative) & passages]
    return flagged.merge(settings.drop_duplicates())
