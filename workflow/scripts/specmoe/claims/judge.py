"""The claims of the published study: read them, and judge them by a campaign.

`config/claims.yaml` states each claim in words with its place, and names the predicate that decides
it. Module `verdicts` explains the verdicts.
"""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

import pandas as pd
from pydantic import Field, ValidationError, model_validator

from specmoe.analysis.drafts import by_model
from specmoe.analysis.registry import TABLES, Analysis
from specmoe.claims import passes, speedup  # noqa: F401 (their predicates enter themselves)
from specmoe.claims.entries import fault_of, read_entries
from specmoe.claims.predicates import CELL_KEYS, PREDICATES
from specmoe.claims.verdicts import ClaimResult, Verdict
from specmoe.config.base import Strict
from specmoe.config.block import MEASURED_BY, NO_DRAFT, PASSAGE_PREFIX
from specmoe.errors import ConfigError, nearest


class Claim(Strict):
    """One claim: what it says, where the study says it, and the predicate that decides it."""

    words: str
    place: str
    predicate: str
    parameters: dict[str, Any] = Field(default={})
    twins: bool = False  # whether a campaign of twins decides it, though not the study's models
    machine: str = ""  # the chip that it is about, where its numbers are times or rates

    @model_validator(mode="after")
    def _check_predicate(self) -> Self:
        if self.predicate not in PREDICATES:
            raise ValueError(
                f"unknown predicate {self.predicate!r}; {nearest(self.predicate, PREDICATES)}"
            )
        return self

    @property
    def given(self) -> Strict:
        """The parameters with their types; raises ValidationError for wrong ones."""
        return PREDICATES[self.predicate].parameters.model_validate(self.parameters)


def read_claims(path: Path) -> dict[str, Claim]:
    """Return the claims of a file by id, in its order.

    Raises ConfigError with the place of the first fault.
    """
    claims = read_entries(path, Claim)
    for name, claim in claims.items():
        try:
            claim.given  # noqa: B018 (it is the check)
        except ValidationError as error:
            fault = fault_of(error, name, "parameters")
            raise ConfigError(f"{path}: {fault}") from error
    return claims


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
    chip = analysis.campaign.iloc[0].get("host_chip")
    for protocol, engine in _ways(analysis):
        part = _of_way(analysis, protocol, engine)
        for name, claim in claims.items():
            predicate, given = PREDICATES[claim.predicate], claim.given
            if claim.machine in ("", chip):
                result = predicate.judge(given, part)
            else:
                elsewhere = f"its numbers are those of an {claim.machine}"
                result = ClaimResult(Verdict.NOT_TESTABLE, elsewhere)
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
                    "unpaired": predicate.leans_on_baselines(given)
                    and not all(row.get("paired", True) for row in result.rows),
                }
            )
    return pd.DataFrame(rows)


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
        keys = tuple(key for key in CELL_KEYS if pd.notna(row.get(key)))
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
