"""The models and cells that a claim is about, and their numbers with intervals."""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from math import inf
from typing import ClassVar, Literal

import numpy as np
import pandas as pd
from pydantic import Field

from specmoe.analysis.filters import length_cells, prompt_cells, text_cells, usual_cells
from specmoe.analysis.registry import Analysis
from specmoe.claims.verdicts import (
    ClaimResult,
    Comparison,
    Estimate,
    Level,
    Share,
    TableRow,
    conclude,
)
from specmoe.config.base import Name, Positive, Strict
from specmoe.config.block import NO_DRAFT
from specmoe.config.option_words import parts_of_setting

FamilyName = Literal["moe", "dense"]
_ARTICLES = {"moe": "an MoE", "dense": "a dense"}
CONSTRUCTED = "acceptance was constructed: the targets have random weights or copied experts"
CELL_KEYS = ("suite", "target", "draft", "gamma", "prompt")


class Predicate(Strict):
    """A kind of claim: its parameters, and how an analysis decides it."""

    def judge(self, analysis: Analysis) -> ClaimResult:
        """Return what an analysis, all measured in one way, says of it."""
        raise NotImplementedError

    @property
    def leans_on_baselines(self) -> bool:
        """Whether the spread of its cells' baselines could change the verdict."""
        return False


class OfModels(Predicate):
    """A claim that comparisons decide, about the models of a family, some targets, or all.

    A subclass yields its comparisons in `_compare`, and says in `_missing` what a campaign without
    any lacks. `agree` follows the count of the comparisons that hold.
    """

    family: FamilyName | None = None
    targets: list[Name] = Field(default=[])
    agree: ClassVar[str] = "targets agree"

    @property
    def share(self) -> Share:
        """How many of the comparisons must hold."""
        return Share.EVERY

    def judge(self, analysis: Analysis) -> ClaimResult:
        """Return what its comparisons say."""
        marked = analysis.marked
        impossible = marked[marked["impossible"] > 0].to_dict("records")
        return conclude(
            list(self._compare(analysis)),
            self.agree,
            self._missing(analysis),
            level_of(analysis),
            self.share,
            partial(_is_among, cells=impossible),
        )

    def _compare(self, analysis: Analysis) -> Iterable[Comparison]:
        raise NotImplementedError

    def _missing(self, analysis: Analysis) -> str:
        raise NotImplementedError

    def _of_models(self) -> str:
        named = " and ".join(self.targets)
        return named or (f"{_ARTICLES[self.family]} target" if self.family else "any target")

    def _among(self, frame: pd.DataFrame) -> pd.DataFrame:
        # Nothing is claimed of targets to which a suite gives options of the engine.
        plain = [not of_options for _, of_options in map(parts_of_setting, frame["target"])]
        frame = frame[np.array(plain, dtype=bool)]
        if self.family:
            frame = frame[frame["family"] == self.family]
        return frame[frame["target"].isin(self.targets)] if self.targets else frame

    def baselines(self, analysis: Analysis) -> Sequence[TableRow]:
        """Return the rates without a draft of these models, with the models' columns."""
        return self._among(analysis.baselines).to_dict("records")


class OfCells(OfModels):
    """A claim about cells with a draft; controls are left out.

    - cells: `texts` are those of suites that send whole texts (of all suites, where a campaign has
      none), `lengths` those of each exact length, `prompts` those of each text, `all` those of
      every suite.
    - gammas: those draft lengths alone, where some are named.
    - draft: `smallest` is the one of fewest parameters of those that a target was measured with.
    """

    cells: Literal["texts", "lengths", "prompts", "all"] = "texts"
    draft: Literal["smallest"] | None = None
    draft_family: FamilyName | None = None
    gammas: list[Positive] = Field(default=[])
    agree: ClassVar[str] = "cells agree"
    several: ClassVar[str] = ""  # follows "a draft" in `_missing`

    @property
    def needed(self) -> str:
        """The column that decides the claim; cells where it is null are left out."""
        return "speedup"

    @property
    def leans_on_baselines(self) -> bool:
        """True for speedups: the baseline counts as much as the run."""
        return self.needed == "speedup"

    @property
    def about_acceptance(self) -> bool:
        """Whether it says what targets accept, which those that were made for it cannot show."""
        return self.needed == "acceptance_rate_mean"

    def select(self, analysis: Analysis) -> pd.DataFrame:
        """Return the cells, as module `filters` has them, with their drafts' columns.

        Added: draft_parameters, draft_family.
        """
        cells = self._known(analysis)
        if self.about_acceptance:
            cells = cells[~cells["constructed"].astype(bool)]
        return self._narrow(cells, analysis)

    def _known(self, analysis: Analysis) -> pd.DataFrame:
        cells = _TABLES[self.cells](analysis)
        return cells[cells[self.needed].notna()]

    def _narrow(self, cells: pd.DataFrame, analysis: Analysis) -> pd.DataFrame:
        models = analysis.models[["model", "parameters_total", "family"]]
        models.columns = pd.Index(["draft_model", "draft_parameters", "draft_family"])
        drafts = analysis.drafts[["draft", "draft_model"]].merge(models, on="draft_model")
        drafts = drafts.drop(columns="draft_model")
        cells = cells.merge(drafts, how="left", on="draft", validate="m:1")
        cells = self._among(cells)
        if self.draft_family:
            cells = cells[cells["draft_family"] == self.draft_family]
        if self.draft:
            least = cells.groupby("series")["draft_parameters"].transform("min")
            cells = cells[cells["draft_parameters"] == least]
        return cells[cells["gamma"].isin(self.gammas)] if self.gammas else cells

    def rows(self, analysis: Analysis) -> Sequence[TableRow]:
        """Return the cells as rows."""
        return self.select(analysis).to_dict("records")

    def groups(self, analysis: Analysis, *keys: str) -> list[Sequence[TableRow]]:
        """Return the cells in groups of equal values of `keys`, each in order of γ."""
        cells = self.select(analysis).sort_values("gamma", kind="stable")
        return [members.to_dict("records") for _, members in cells.groupby(list(keys), sort=False)]

    def _missing(self, analysis: Analysis) -> str:
        known = self._narrow(self._known(analysis), analysis)
        if self.about_acceptance and known["constructed"].any():
            return CONSTRUCTED
        draft = f"{_ARTICLES[self.draft_family]} draft" if self.draft_family else "a draft"
        gamma = f" at γ = {' or '.join(map(str, self.gammas))}" if self.gammas else ""
        what = f"{self._of_models()} with {draft}{gamma}{self.several}"
        return f"no runs of {what}{_PROMPTS.get(self.cells, '')}{_KNOWN[self.needed]}"


class OfWholeCells(OfCells):
    """A claim about cells with all of their prompts together."""

    cells: Literal["texts", "all"] = "texts"


class WithinTargets(OfWholeCells):
    """A claim that compares cells of one target with each other: a common baseline cancels."""

    leans_on_baselines: ClassVar[bool] = False


class Between(OfModels):
    """A claim that a number is between `low` and `high`.

    With `digits`, the bounds were printed with so many decimals and stand for all numbers that
    round to them.
    """

    low: float = -inf
    high: float = inf
    digits: int | None = None

    def _inside(self, found: Estimate) -> Estimate:
        half = 0.0 if self.digits is None else 0.5 * 10.0**-self.digits
        return found.within(self.low - half, self.high + half)


class Bounded(OfCells, Between):
    """A claim that a number of cells is between bounds."""


def _text_cells(analysis: Analysis) -> pd.DataFrame:
    cells = text_cells(analysis)
    return usual_cells(analysis) if cells.empty else cells


_TABLES: dict[str, Callable[[Analysis], pd.DataFrame]] = {
    "texts": _text_cells,
    "all": usual_cells,
    "lengths": length_cells,
    "prompts": prompt_cells,
}
_PROMPTS = {"lengths": " on prompts of exact length", "prompts": " on texts"}
_KNOWN = {
    "speedup": "",
    "acceptance_rate_mean": " whose acceptance rate is known",
    "tokens_per_round": " whose rounds are known",
}


def level_of(analysis: Analysis) -> Level:
    """Return the confidence of a campaign's intervals, and how many blocks make them.

    Cells that were repeated more often have narrower intervals than this allows for.
    """
    campaign = analysis.campaign.iloc[0]
    blocks = campaign["machines"] if campaign["machine_varies"] else campaign["repeats"]
    return Level(float(campaign["confidence"]), max(1, int(blocks) - 1))


def _is_among(row: TableRow, cells: Iterable[TableRow]) -> bool:
    """Return whether one of the cells is of a row; a row without a draft names none."""
    own = {"draft": NO_DRAFT, **row}
    return any(all(own[key] == cell[key] for key in CELL_KEYS if key in own) for cell in cells)


def speedup(row: TableRow) -> Estimate:
    """Return a cell's speedup."""
    return Estimate(row["speedup"], row["speedup_low"], row["speedup_high"])


def acceptance(row: TableRow) -> Estimate:
    """Return a cell's acceptance rate in percent as the study has it, the mean over its runs."""
    return Estimate.exact(100 * row["acceptance_rate_mean"])


def rate(row: TableRow) -> Estimate:
    """Return a baseline's rate, in tokens a second."""
    return Estimate(*(row[f"tokens_per_second{end}"] for end in ("", "_low", "_high")))


def cell_words(row: TableRow) -> str:
    """Return a cell's name."""
    where = f", {prompt_words(row)}" if "prompt" in row else ""
    return f"{row['label']}, {row['draft_label']}, γ = {row['gamma']}{where}"


def prompt_words(row: TableRow) -> str:
    """Return the name of the prompt of a cell that has a single one."""
    return f"length {row['n_prompt']}" if "n_prompt" in row else str(row["prompt"])


def best_of(rows: Iterable[TableRow]) -> TableRow:
    """Return the cell of highest speedup.

    The best of several is partly the luckiest, and its interval does not allow for the choice.
    """
    return max(rows, key=lambda row: float(row["speedup"]))
