"""Which cells of a campaign a claim is about, and their numbers with their intervals."""

from collections.abc import Callable, Sequence
from typing import Literal

import pandas as pd
from pydantic import Field

from specmoe.analysis.build import Analysis
from specmoe.analysis.labelled import (
    length_cells,
    ordered_baselines,
    prompt_cells,
    table,
    text_cells,
    usual_cells,
)
from specmoe.claims.verdicts import Judgement, Quantity, Row
from specmoe.config.base import Name, Positive, Strict

Family = Literal["moe", "dense"]
_ARTICLES = {"moe": "an MoE", "dense": "a dense"}
Digits = int | None


class Predicate(Strict):
    """A kind of claim: its parameters, and how an analysis decides it."""

    def judge(self, analysis: Analysis) -> Judgement:
        """Return what an analysis, all measured in one way, says of it."""
        raise NotImplementedError

    @property
    def leans_on_baselines(self) -> bool:
        """Whether how the baselines of its cells vary could change the verdict."""
        return False


class OfModels(Predicate):
    """A claim about models; what is not said is not restricted."""

    family: Family | None = None
    targets: list[Name] = Field(default=[])

    def of_models(self) -> str:
        """Return the models in words."""
        named = " and ".join(self.targets)
        return named or (f"{_ARTICLES[self.family]} target" if self.family else "any target")

    def _among(self, frame: pd.DataFrame, column: str) -> pd.DataFrame:
        chosen = pd.Series(True, index=frame.index)
        if self.family:
            chosen &= frame["family"] == self.family
        if self.targets:
            chosen &= frame[column].isin(self.targets)
        return frame[chosen]

    def baselines(self, analysis: Analysis) -> Sequence[Row]:
        """Return the rates without a draft of these models, with the models' columns."""
        return self._among(ordered_baselines(analysis), "target").to_dict("records")


class OfCells(OfModels):
    """A claim about cells with a draft.

    `cells`: `texts` are those of suites that send whole texts (all, where a campaign has none),
    `lengths` those of each exact length, `prompts` those of each text, `all` those of every suite.
    `draft`: `smallest` is, of the drafts that a target was measured with, the one of fewest
    parameters. Controls are left out.
    """

    cells: Literal["texts", "lengths", "prompts", "all"] = "texts"
    draft: Literal["smallest"] | None = None
    draft_family: Family | None = None
    gamma: Positive | None = None

    @property
    def needed(self) -> str:
        """The column that the claim is decided by; cells where it is not known are left out."""
        return "speedup"

    @property
    def leans_on_baselines(self) -> bool:
        """What a speedup is compared with matters as much as itself."""
        return self.needed == "speedup"

    def select(self, analysis: Analysis) -> pd.DataFrame:
        """Return the cells, as `labelled.describe_cells` has them, with their drafts' columns.

        Added: draft_parameters, draft_family.
        """
        cells = _TABLES[self.cells](analysis)
        drafts = table(analysis, "models")[["model", "parameters_total", "family"]]
        drafts.columns = pd.Index(["draft", "draft_parameters", "draft_family"])
        cells = cells.merge(drafts, how="left", on="draft", validate="m:1")
        cells = self._among(cells[cells[self.needed].notna()], "target")
        if self.draft_family:
            cells = cells[cells["draft_family"] == self.draft_family]
        if self.draft:
            least = cells.groupby("series")["draft_parameters"].transform("min")
            cells = cells[cells["draft_parameters"] == least]
        return cells if self.gamma is None else cells[cells["gamma"] == self.gamma]

    def rows(self, analysis: Analysis) -> Sequence[Row]:
        """Return the cells as rows."""
        return self.select(analysis).to_dict("records")

    def groups(self, analysis: Analysis, *keys: str) -> list[Sequence[Row]]:
        """Return the cells in groups of equal values of `keys`, each in order of γ."""
        cells = self.select(analysis).sort_values("gamma", kind="stable")
        return [members.to_dict("records") for _, members in cells.groupby(list(keys), sort=False)]

    def missing(self) -> str:
        """Return the sentence for a campaign without such cells."""
        draft = f"{_ARTICLES[self.draft_family]} draft" if self.draft_family else "a draft"
        gamma = f" at γ = {self.gamma}" if self.gamma else ""
        words = f"no runs of {self.of_models()} with {draft}{gamma}{_PROMPTS[self.cells]}"
        return words + _KNOWN[self.needed]


class OfWholeCells(OfCells):
    """A claim about cells with all of their prompts together."""

    cells: Literal["texts", "all"] = "texts"


class WithinTargets(OfWholeCells):
    """A claim that sets cells of one target against each other: a common baseline cancels."""

    @property
    def leans_on_baselines(self) -> bool:
        """It does not."""
        return False


def _text_cells(analysis: Analysis) -> pd.DataFrame:
    cells = text_cells(analysis)
    return usual_cells(analysis) if cells.empty else cells


_TABLES: dict[str, Callable[[Analysis], pd.DataFrame]] = {
    "texts": _text_cells,
    "all": usual_cells,
    "lengths": length_cells,
    "prompts": prompt_cells,
}
_PROMPTS = {
    "texts": "",
    "all": "",
    "lengths": " on prompts of exact length",
    "prompts": " on texts",
}
_KNOWN = {
    "speedup": "",
    "acceptance_rate_mean": " whose acceptance rate is known",
    "mean_accepted_length": " whose rounds are known",
}


def speedup(row: Row) -> Quantity:
    """Return a cell's speedup."""
    return Quantity(row["speedup"], row["speedup_low"], row["speedup_high"])


def acceptance(row: Row) -> Quantity:
    """Return a cell's acceptance rate in percent as the study has it, the mean over its runs."""
    return Quantity.exact(100 * row["acceptance_rate_mean"])


def rate(row: Row) -> Quantity:
    """Return a baseline's rate, in tokens a second."""
    keys = ("tokens_per_second", "tokens_per_second_low", "tokens_per_second_high")
    return Quantity(*(row[key] for key in keys))


def cell_words(row: Row) -> str:
    """Return a cell's name."""
    if "n_prompt" in row:
        where = f", length {row['n_prompt']}"
    else:
        where = f", {row['prompt']}" if "prompt" in row else ""
    return f"{row['label']}, {row['draft_label']}, γ = {row['gamma']}{where}"


def best_of(rows: Sequence[Row]) -> Row:
    """Return the cell of highest speedup.

    The best of several is in part the luckiest, and its interval does not know of the others.
    """
    return max(rows, key=lambda row: float(row["speedup"]))


def rounded(bound: float, digits: Digits, sign: int) -> float:
    """Return a printed bound, moved out (`sign` -1 down, 1 up) by half of its last digit."""
    return bound if digits is None else bound + sign * 0.5 * 10.0**-digits
