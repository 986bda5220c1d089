"""How comparisons decide a claim, and what each verdict means.

A claim consists of comparisons (this cell gains more than that one, that rate is below 4 %), and
says that all of them hold, or some. A comparison holds surely if its whole interval is on
the claimed side, fails surely if its whole interval is on the other side, and is open otherwise, as
without an interval (a single block). The verdicts are:

- supported: enough comparisons hold surely;
- rests on impossible rows: enough hold surely, but too few of them are of cells without a run that
  the audit calls impossible;
- contradicted: so many fail surely that enough cannot hold;
- inconclusive: neither; the numbers agree with the claim and with its contrary;
- not testable: there is nothing to compare, and the verdict names what is missing.

A verdict keeps its level whatever the number of comparisons. If k of n must hold, the intervals
that support a claim are widened to the level of n - k + 1 at once, and those that contradict it to
that of k (Bonferroni, for partial conjunctions). So a false claim is supported, and a true one
contradicted, by luck in at most half of what the confidence leaves, 2.5 % of cases, however its
comparisons depend on each other.

Limits of a verdict:

- Intervals of speedups and rates are Student's t over blocks: about the same blocks measured again
  on this machine with these prompts, and about no other prompts, models or machines.
- Two cells count as different if their intervals do not overlap. That is stricter than an interval
  of their difference, and stricter still where both share their baselines.
- The interval of a cell that is not paired leaves out the spread of its baseline. Between cells of
  one target that baseline cancels; against a bound or another target the interval is too narrow.
- Counts of tokens have no interval: greedy runs repeat them exactly.
- Impossible rows can contradict what was said of them, so every verdict comes with the number of
  its rows that the audit marked.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import partial
from math import isnan
from typing import Any, NamedTuple

import pandas as pd

from specmoe.analysis.drafts import by_model
from specmoe.analysis.intervals import Estimate, student_quantile
from specmoe.analysis.number_text import fixed, interval
from specmoe.analysis.registry import TABLES, Analysis
from specmoe.config.block import MEASURED_BY, NO_DRAFT, PASSAGE_PREFIX

_CELL_KEYS = ("suite", "target", "draft", "gamma", "prompt")

TableRow = Mapping[Any, Any]
"""A row of a table of the analysis."""


class Verdict(StrEnum):
    """The outcome for a claim."""

    SUPPORTED = "supported"
    IMPOSSIBLE_ROWS = "rests on impossible rows"
    CONTRADICTED = "contradicted"
    INCONCLUSIVE = "inconclusive"
    NOT_TESTABLE = "not testable"


class Level(NamedTuple):
    """The confidence of the intervals, and their degrees of freedom."""

    confidence: float
    degrees: float

    def widening(self, intervals: int) -> float:
        """Return how many times as wide so many intervals are if all hold at once."""
        each = 1 - (1 - self.confidence) / intervals
        one = student_quantile(self.degrees, self.confidence)
        return float(student_quantile(self.degrees, each) / one)


def number_words(number: Estimate, digits: int = 2, *, ratio: bool = True) -> str:
    """Return a number and, if it has one, its interval; `ratio` as in `interval`."""
    text = fixed(number.value, digits)
    if isnan(number.low):
        return f"{text} (one block, no interval)"
    if number.low == number.high:
        return text
    return f"{text} {interval(number.low, number.high, digits, ratio=ratio)}"


def level_of(analysis: Analysis) -> Level:
    """Return the confidence of a campaign's intervals, and how many blocks make them.

    Cells that were repeated more often have narrower intervals than this allows for.
    """
    campaign = analysis.campaign.iloc[0]
    blocks = campaign["repeats"]
    return Level(float(campaign["confidence"]), max(1, int(blocks) - 1))


class Comparison(NamedTuple):
    """One comparison of a claim: its margin on the claimed side, its words, and its rows."""

    margin: Estimate
    words: str
    rows: tuple[TableRow, ...]


class Missing(Exception):  # noqa: N818 (it is no error)
    """What a campaign lacks, so that it cannot decide a claim."""


@dataclass(frozen=True)
class ClaimResult:
    """A verdict, a sentence with the numbers that decide it, and the rows it rests on."""

    verdict: Verdict
    why: str
    rows: tuple[TableRow, ...] = ()
    comparisons: int = 0


def conclude(
    comparisons: Sequence[Comparison],
    agree: str,
    missing: str,
    level: Level,
    is_impossible: Callable[[TableRow], bool] = lambda _: False,
    *,
    some: bool = False,
) -> ClaimResult:
    """Return the verdict on a claim that all of its comparisons hold, or some.

    `agree` follows the count of the comparisons that hold by their numbers alone ("cells agree"),
    `missing` says what a campaign without comparisons lacks, `is_impossible` whether a row has runs
    that cannot be true. The sentence ends with the comparison that decides: the nearest to failing,
    or the one that holds best if some suffice.
    """
    count = len(comparisons)
    if not count:
        return ClaimResult(Verdict.NOT_TESTABLE, missing)
    needed = 1 if some else count
    wide, wider = (level.widening(number) for number in (count - needed + 1, needed))
    sure = [each for each in comparisons if each.margin.widened(wide).low > 0]
    refuted = [each for each in comparisons if each.margin.widened(wider).high <= 0]
    if len(sure) >= needed:
        possible = [each for each in sure if not any(map(is_impossible, each.rows))]
        enough = len(possible) >= needed
        verdict, pool = Verdict.SUPPORTED if enough else Verdict.IMPOSSIBLE_ROWS, sure
    elif count - len(refuted) < needed:
        verdict, pool = Verdict.CONTRADICTED, refuted
    else:
        verdict = Verdict.INCONCLUSIVE
        decided = {id(each) for each in (*sure, *refuted)}
        pool = [each for each in comparisons if id(each) not in decided]
    pick = max if some else min
    deciding = pick(pool, key=lambda each: each.margin.value)
    held = sum(each.margin.value > 0 for each in comparisons)
    rows = tuple(row for each in comparisons for row in each.rows)
    return ClaimResult(verdict, f"{held} of {count} {agree}. {deciding.words}", rows, count)


def estimate(row: TableRow, column: str) -> Estimate:
    """Return a number of a row with its interval."""
    return Estimate(*(row[f"{column}{end}"] for end in ("", "_low", "_high")))


def cell_words(row: TableRow) -> str:
    """Return a cell's name."""
    where = f", length {row['n_prompt']}" if "n_prompt" in row else ""
    return f"{row['label']}, {row['draft_label']}, γ = {row['gamma']}{where}"


def best_of(rows: Iterable[TableRow]) -> TableRow:
    """Return the cell of highest speedup.

    The best of several is partly the luckiest, and its interval does not allow for the choice.
    """
    return max(rows, key=lambda row: float(row["speedup"]))


Comparisons = Iterator[Comparison]
CLAIMS: dict[str, "Claim"] = {}
"""All of them, by the names of their functions."""


@dataclass
class Claim:
    """A claim of the study, as the decorator of the function that compares.

    - place: where the study makes it.
    - missing: the runs that a campaign without any comparison lacks.
    - agree: follows the count of the comparisons that hold.
    - leans: whether the spread of baselines could change the verdict. Between cells of one target
      a common baseline cancels.
    - some: whether one comparison that holds is enough.
    - twins: whether a campaign of upcycled models decides it too, whose other models are not the
      study's.
    """

    place: str
    missing: str
    agree: str = "cells agree"
    leans: bool = True
    some: bool = False
    twins: bool = False

    def __call__(self, compare: Callable[[Analysis], Comparisons]) -> "Claim":
        """Enter the function, whose first sentence is the claim in our words."""
        self.compare, self.words = compare, (compare.__doc__ or "").partition("\n")[0]
        CLAIMS[compare.__name__] = self
        return self


def judge_claims(claims: Mapping[str, Claim], analysis: Analysis) -> pd.DataFrame:
    """Return what a campaign says of each claim, one row each.

    Suites that were measured in different ways (protocol and engine) are judged apart: there is a
    row for each way. The study's drafts are models, so what drafts otherwise decides no claim.

    Columns: claim (its id), words, place, protocol, engine, verdict (a `Verdict`), why (the numbers
    that decide it, or what is missing), comparisons, runs (that it rests on), marked (those of them
    that break a check of the audit; both count runs with a draft, or runs without one where the
    claim is about baseline rates), unpaired (whether some are compared with a baseline of other
    prompts whose spread could change the verdict).
    """
    rows = []
    for protocol, engine in _ways(analysis):
        part = _of_way(analysis, protocol, engine)
        for name, claim in claims.items():
            result = judge(claim, part)
            unpaired = not all(row.get("paired", True) for row in result.rows)
            rows.append(
                {
                    "claim": name,
                    "words": claim.words,
                    "place": claim.place,
                    "protocol": protocol,
                    "engine": engine,
                    "verdict": result.verdict.value,
                    "why": result.why,
                    "comparisons": result.comparisons,
                    **_support(result, part),
                    "unpaired": claim.leans and unpaired,
                }
            )
    return pd.DataFrame(rows)


def judge(claim: Claim, analysis: Analysis) -> ClaimResult:
    """Return what an analysis, all measured in one way, says of a claim."""
    marked = analysis.marked
    impossible = marked[marked["impossible"] > 0].to_dict("records")
    try:
        return conclude(
            list(claim.compare(analysis)),
            claim.agree,
            f"no runs of {claim.missing}",
            level_of(analysis),
            partial(_is_among, cells=impossible),
            some=claim.some,
        )
    except Missing as missing:
        return ClaimResult(Verdict.NOT_TESTABLE, str(missing))


def _is_among(row: TableRow, cells: Iterable[TableRow]) -> bool:
    """Return whether one of the cells is of a row; a row without a draft names none."""
    own = {"draft": NO_DRAFT, **row}
    return any(all(own[key] == cell[key] for key in _CELL_KEYS if key in own) for cell in cells)


def _ways(analysis: Analysis) -> list[tuple[str, str]]:
    """Return the ways that speculation was measured in; without any, those of the rates."""
    frames = (analysis.cells, analysis.baselines)
    frame = next((frame for frame in frames if not frame.empty), analysis.campaign)
    return list(frame[MEASURED_BY].drop_duplicates().itertuples(index=False, name=None))


def _of_way(analysis: Analysis, protocol: str, engine: str) -> Analysis:
    """Return an analysis with the rows of one way alone, in all tables that name the way.

    Where a table names the method, it keeps what draft models drafted.
    """
    parts = {}
    for name in TABLES:
        frame = getattr(analysis, name)
        if name == "campaign" or not set(MEASURED_BY) <= set(frame.columns):
            continue
        own = (frame["protocol"] == protocol) & (frame["engine"] == engine)
        if "method" in frame.columns:
            own &= by_model(frame)
        parts[name] = frame[own]
    return replace(analysis, **parts)


def _support(result: ClaimResult, analysis: Analysis) -> dict[str, int]:
    """Return how many runs a result rests on, and how many of them are marked."""
    cells: dict[tuple[str, ...], set[tuple[Any, ...]]] = defaultdict(set)
    for row in result.rows:
        keys = tuple(key for key in _CELL_KEYS if pd.notna(row.get(key)))
        cells[keys].add(tuple(row[key] for key in keys))
    marked = analysis.marked
    # A rate without a draft is made of these runs, see `summarise_baselines`.
    speculative = marked.loc[marked["draft"] != NO_DRAFT, "suite"]
    alone = ~marked["suite"].isin(speculative) & marked["prompt"].str.startswith(PASSAGE_PREFIX)
    used = pd.Series(False, index=marked.index)
    for keys, wanted in cells.items():
        named = marked[list(keys)].itertuples(index=False, name=None)
        own = pd.Series([cell in wanted for cell in named], index=marked.index, dtype=bool)
        used |= own if "draft" in keys else own & alone
    return {count: int(marked.loc[used, count].sum()) for count in ("runs", "marked")}
