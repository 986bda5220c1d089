"""Acceptance by position that a suite imposes: given by hand, or by a speculation profile."""

from itertools import pairwise
from typing import Annotated, Self

from pydantic import AfterValidator, Field, model_validator

from specmoe.config.base import Name, Strict, UserPath


def _never_rising(rates: list[float]) -> list[float]:
    for position, (before, after) in enumerate(pairwise(rates), 2):
        if after > before:
            raise ValueError(
                f"the rate at position {position} ({after:g}) is above the one before"
                f" ({before:g}); a token is accepted only where all before it are"
            )
    return rates


JointRates = Annotated[list[Annotated[float, Field(ge=0, le=1)]], AfterValidator(_never_rising)]
"""For each position of a draft the chance that it and all before it are accepted."""


class ImposedProfile(Strict):
    """Acceptance by position that the engine imposes, measured elsewhere."""

    name: Name = Field(description="its name in rows and tables")
    file: UserPath | None = Field(
        default=None,
        description="a speculation profile, as the target `export_profile` writes it; relative"
        " paths start where snakemake is called",
    )
    setting: str | None = Field(
        default=None, description="the id of one of the file's settings, its `setting`"
    )
    rates: JointRates = Field(
        default=[],
        description="in place of a file: the share of drafts of which the token at each position"
        " and all before it are accepted; at least as many as the largest γ",
    )

    @model_validator(mode="after")
    def _is_of_one_source(self) -> Self:
        if (self.file is None) != (self.setting is None):
            raise ValueError(f"profile {self.name}: `file` and `setting` need each other")
        if self.file is None and not self.rates:
            raise ValueError(f"profile {self.name}: give `file` and `setting`, or `rates`")
        return self

    def imposed_share(self, gamma: int) -> float:
        """Return the share of the drafted tokens that is accepted in the mean."""
        return round(sum(self.rates[:gamma]) / gamma, 6)
