"""The predicates that decide claims: how they are declared, what they are about, what they compare.

A predicate is a function that yields comparisons of the cells (`Cells`) or of the rates without a
draft (`Models`) that a claim is about. Its other arguments are parameters of the claim.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from inspect import Parameter, signature
from math import inf
from typing import Any, Literal, Self

import numpy as np
import pandas as pd
from pydantic import Field, create_model

from specmoe.analysis.filters import length_cells, prompt_cells, text_cells, usual_cells
from specmoe.analysis.intervals import Estimate
from specmoe.analysis.registry import Analysis
from specmoe.analysis.summaries import CELL
from specmoe.claims.verdicts import (
    ClaimResult,
    Comparison,
    Share,
    TableRow,
    Verdict,
    cell_words,
    conclude,
    estimate,
    level_of,
    number_words,
)
from specmoe.config.base import Name, Positive, Strict
from specmoe.config.block import NO_DRAFT
from specmoe.config.option_words import parts_of_setting

Comparisons = Iterator[Comparison]
FamilyName = Literal["moe", "dense"]
_ARTICLES = {"moe": "an MoE", "dense": "a dense"}
ACCEPTANCE = "acceptance_rate_mean"
_OF = {"speedup": "speedup", "acceptance": ACCEPTANCE}
CONSTRUCTED = "acceptance was constructed: the targets have random weights or copied experts"
CELL_KEYS = ("suite", "target", "draft", "gamma", "prompt")


class Missing(Exception):  # noqa: N818 (it is no error)
    """What a campaign lacks, so that it cannot decide a claim."""


class OfModels(Strict):
    """The parameters of a claim about the models of a family, about some targets, or about all."""

    family: FamilyName | None = None
    targets: list[Name] = Field(default=[])


class OfCells(OfModels):
    """The parameters of a claim about cells with a draft; controls are left out.

    - cells: `texts` are cells of suites that send whole texts, or of all suites if none does; `all`
      are cells of every suite.
    - gammas: if any are named, only cells of these draft lengths.
    - draft: `smallest` is each target's draft with the fewest parameters.
    """

    cells: Literal["texts", "all"] = "texts"
    draft: Literal["smallest"] | None = None
    draft_family: FamilyName | None = None
    gammas: list[Positive] = Field(default=[])


class OfPrompts(Strict):
    """Parameters: which cells; `lengths` and `prompts` are cells of a single length or text."""

    cells: Literal["texts", "lengths", "prompts", "all"] = "texts"


class OfNumber(Strict):
    """The number of cells that a claim is about: their speedup, or their acceptance in percent."""

    of: Literal["speedup", "acceptance"]


class Bounds(Strict):
    """The parameters of a claim that a number is between `low` and `high`.

    With `digits`, the bounds were printed with so many decimals and stand for all numbers that
    round to them.
    """

    low: float = -inf
    high: float = inf
    digits: int | None = None


@dataclass
class Predicate:
    """How comparisons decide a kind of claim; a decorator of the function that yields them.

    - column: of cells, the one that decides; cells where it is null are left out.
    - agree: follows the count of the comparisons that hold.
    - several, besides, missing: what a campaign without any comparison lacks: after "a draft", at
      the end, or the whole sentence. The last two take the parameters' values.
    - share: how many of the comparisons must hold, by the parameters.
    - leans: whether the spread of baselines could change the verdict; as a rule where the speedup
      decides.
    - accepted: whether it says what targets accept, which those that were made for it cannot show.
    - takes: parameters besides the function's own, which may narrow their types and defaults.
    """

    column: str = "speedup"
    agree: str = "cells agree"
    several: str = ""
    besides: str = ""
    missing: str = ""
    share: Callable[[Any], Share] = lambda _: Share.EVERY
    leans: bool | None = None
    accepted: bool = False
    takes: Sequence[type[Strict]] = ()

    def __call__(self, compare: Callable[..., Any]) -> Callable[..., Any]:
        """Enter the function by its name; its first argument is of `Cells` or `Models`."""
        first, *rest = signature(compare).parameters.values()
        self.compare, self.about = compare, first.annotation
        self.own: dict[str, Any] = {
            one.name: (one.annotation, ... if one.default is Parameter.empty else one.default)
            for one in rest
        }
        bases: Any = (*self.takes, OfCells if self.about is Cells else OfModels)
        self.parameters: type[Strict] = create_model(compare.__name__, __base__=bases, **self.own)
        PREDICATES[compare.__name__] = self
        return compare

    def judge(self, given: Any, analysis: Analysis) -> ClaimResult:
        """Return what an analysis, all measured in one way, says of a claim with parameters."""
        about = self.about(self, given, analysis)
        marked = analysis.marked
        impossible = marked[marked["impossible"] > 0].to_dict("records")
        try:
            found = self.compare(about, **{name: getattr(given, name) for name in self.own})
            if isinstance(found, ClaimResult):
                return found
            comparisons = list(found)
            return conclude(
                comparisons,
                self.agree,
                "" if comparisons else about.missing,
                level_of(analysis),
                self.share(given),
                partial(_is_among, cells=impossible),
            )
        except Missing as missing:
            return ClaimResult(Verdict.NOT_TESTABLE, str(missing))

    def column_of(self, given: Any) -> str:
        """Return the column that decides a claim: that of its parameter `of`, if it has one."""
        return _OF.get(getattr(given, "of", ""), self.column)

    def leans_on_baselines(self, given: Any) -> bool:
        """Return whether the spread of baselines could change the verdict on a claim."""
        of_speedup = self.about is Cells and self.column_of(given) == "speedup"
        return of_speedup if self.leans is None else self.leans


PREDICATES: dict[str, Predicate] = {}
"""All of them, by the names of their functions."""


@dataclass(frozen=True)
class Models:
    """The rates without a draft that a claim is about."""

    predicate: Predicate
    given: Any  # the claim's parameters
    analysis: Analysis

    def of_targets(self, *targets: Name) -> Self:
        """Return the same of other targets."""
        given = self.given.model_copy(update={"family": None, "targets": list(targets)})
        return replace(self, given=given)

    def rates(self) -> Sequence[TableRow]:
        """Return the rates of these models, with the models' columns."""
        return among(self.analysis.baselines, self.given).to_dict("records")

    def inside(self, found: Estimate) -> Estimate:
        """Return how far a number is inside the bounds of the claim."""
        digits = self.given.digits
        half = 0.0 if digits is None else 0.5 * 10.0**-digits
        return found.within(self.given.low - half, self.given.high + half)

    @property
    def missing(self) -> str:
        """What a campaign without any comparison lacks."""
        template = self.predicate.missing or "no rates without a draft of {models}"
        return template.format(models=self.words, **dict(self.given))

    @property
    def words(self) -> str:
        """The models in words."""
        family = self.given.family
        named = " and ".join(self.given.targets)
        return named or (f"{_ARTICLES[family]} target" if family else "any target")


class Cells(Models):
    """The cells that a claim is about, as module `filters` has them.

    Added to their columns: draft_parameters, draft_family.
    """

    @property
    def column(self) -> str:
        """The column that decides."""
        return self.predicate.column_of(self.given)

    def rows(self) -> Sequence[TableRow]:
        """Return the cells as rows."""
        return self._select().to_dict("records")

    def groups(self, *keys: str) -> list[Sequence[TableRow]]:
        """Return the cells in groups of equal values of `keys`, each in order of γ."""
        cells = self._select().sort_values("gamma", kind="stable")
        return [members.to_dict("records") for _, members in cells.groupby(list(keys), sort=False)]

    def number(self, row: TableRow) -> Estimate:
        """Return a cell's speedup, or its acceptance rate in percent.

        The rate is the study's, the mean over the cell's runs.
        """
        if self.column == ACCEPTANCE:
            return Estimate.exact(100 * row[ACCEPTANCE])
        return estimate(row, "speedup")

    def shown(self, row: TableRow) -> str:
        """Return that number in words."""
        percent = self.column == ACCEPTANCE
        return number_words(self.number(row), ratio=not percent) + (" %" if percent else "")

    def versus(
        self, one: TableRow, other: TableRow, name: str = "", *, higher: bool = True
    ) -> Comparison:
        """Compare the numbers of two cells: the first should be higher, or lower."""
        first, second = self.number(one), self.number(other)
        margin = first.minus(second) if higher else second.minus(first)
        words = f"{cell_words(one)}: {self.shown(one)}, {name or cell_words(other)}:"
        return Comparison(margin, f"{words} {self.shown(other)}", (one, other))

    def narrow(self, cells: pd.DataFrame) -> pd.DataFrame:
        """Return those of some cells that the claim is about."""
        models = self.analysis.models[["model", "parameters_total", "family"]]
        models.columns = pd.Index(["draft_model", "draft_parameters", "draft_family"])
        drafts = self.analysis.drafts[["draft", "draft_model"]]
        drafts = drafts.merge(models, on="draft_model").drop(columns="draft_model")
        given = self.given
        cells = among(cells.merge(drafts, how="left", on="draft", validate="m:1"), given)
        if given.draft_family:
            cells = cells[cells["draft_family"] == given.draft_family]
        if given.draft:
            least = cells.groupby("series")["draft_parameters"].transform("min")
            cells = cells[cells["draft_parameters"] == least]
        return cells[cells["gamma"].isin(given.gammas)] if given.gammas else cells

    def _known(self) -> pd.DataFrame:
        cells = _TABLES[self.given.cells](self.analysis)
        return cells[cells[self.column].notna()]

    def _select(self) -> pd.DataFrame:
        cells = self._known()
        made = cells["constructed"].astype(bool)
        return self.narrow(cells[~made] if self._accepted else cells)

    @property
    def _accepted(self) -> bool:
        return self.predicate.accepted or self.column == ACCEPTANCE

    @property
    def missing(self) -> str:
        """What a campaign without any comparison lacks."""
        given = self.given
        if self.predicate.missing:
            return super().missing
        if self._accepted and self.narrow(self._known())["constructed"].any():
            return CONSTRUCTED
        draft = f"{_ARTICLES[given.draft_family]} draft" if given.draft_family else "a draft"
        gamma = f" at γ = {' or '.join(map(str, given.gammas))}" if given.gammas else ""
        what = f"{self.words} with {draft}{gamma}{self.predicate.several}"
        where = f"{_PROMPTS.get(given.cells, '')}{_KNOWN[self.column]}"
        return f"no runs of {what}{where}{self.predicate.besides.format(**dict(given))}"


def among(frame: pd.DataFrame, given: Any) -> pd.DataFrame:
    """Return the rows of the models that a claim's parameters name.

    No claim is about targets to which a suite gives options of the engine.
    """
    plain = [not of_options for _, of_options in map(parts_of_setting, frame["target"])]
    frame = frame[np.array(plain, dtype=bool)]
    if given.family:
        frame = frame[frame["family"] == given.family]
    return frame[frame["target"].isin(given.targets)] if given.targets else frame


def _text_cells(analysis: Analysis) -> pd.DataFrame:
    cells = text_cells(analysis)
    return usual_cells(analysis) if cells.empty else cells


def _cells_by_text(analysis: Analysis) -> pd.DataFrame:
    """Return `prompt_cells` with a `text`; a workload with categories has a cell for each."""
    cells = prompt_cells(analysis).assign(text=lambda cells: cells["prompt"])
    workloads = cells[[*CELL, "prompt", "constructed"]].rename(columns={"prompt": "workload"})
    texts = analysis.categories.merge(workloads, on=[*CELL, "workload"])
    whole = cells["prompt"].isin(texts["workload"])
    texts = texts.rename(columns={"category": "text"})
    return pd.concat([cells[~whole], texts], ignore_index=True)


_TABLES: dict[str, Callable[[Analysis], pd.DataFrame]] = {
    "texts": _text_cells,
    "all": usual_cells,
    "lengths": length_cells,
    "prompts": _cells_by_text,
}
_PROMPTS = {"lengths": " on prompts of exact length", "prompts": " on texts"}
_KNOWN = {
    "speedup": "",
    ACCEPTANCE: " whose acceptance rate is known",
    "tokens_per_round": " whose rounds are known",
}


def _is_among(row: TableRow, cells: Iterable[TableRow]) -> bool:
    """Return whether one of the cells is of a row; a row without a draft names none."""
    own = {"draft": NO_DRAFT, **row}
    return any(all(own[key] == cell[key] for key in CELL_KEYS if key in own) for cell in cells)
