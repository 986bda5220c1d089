"""The published study's claims, judged by a campaign; module `verdicts` explains the verdicts."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import pandas as pd

from specmoe.analysis.drafts import by_model
from specmoe.analysis.registry import TABLES, Analysis
from specmoe.claims.headline import Claim
from specmoe.claims.verdicts import (
    ClaimResult,
    Missing,
    TableRow,
    Verdict,
    conclude,
    level_of,
)
from specmoe.config.block import MEASURED_BY, NO_DRAFT, PASSAGE_PREFIX

_CELL_KEYS = ("suite", "target", "draft", "gamma", "prompt")


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
