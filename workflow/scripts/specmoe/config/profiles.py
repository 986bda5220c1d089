"""Acceptance by position that a suite imposes: given by hand, or by a speculation profile.

A profile is JSON: `{"format": "speculation_profile/1", "settings": [...]}`. Of a setting its id
`setting` and its `joint` acceptance by position are read. `analysis.profile` writes more beside
these, and a profile of another benchmark needs no more.
"""

from itertools import pairwise
from pathlib import Path
from typing import Annotated, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, model_validator

from specmoe.config.base import Name, Strict, UserPath
from specmoe.config.parse import first_fault
from specmoe.errors import ConfigError, nearest, one_line
from specmoe.files import json_of, read_whole

FORMAT = "speculation_profile/1"
PROFILE = "speculation_profile.json"


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

    name: Name
    """its name in rows and tables"""
    file: UserPath | None = None
    """a speculation profile, as the target `export_profile` writes it; relative paths start where
    snakemake is called"""
    setting: str | None = None
    """the id of one of the file's settings, its `setting`"""
    rates: JointRates = Field(default=[])
    """in place of a file: the share of drafts of which the token at each position and all before it
    are accepted; at least as many as the largest γ"""

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


class _Setting(BaseModel):
    """What is read of a setting."""

    model_config = ConfigDict(extra="ignore", allow_inf_nan=False)

    setting: str
    joint: JointRates = Field(min_length=1)


class _Profile(BaseModel):
    """What is read of a profile."""

    format: str
    settings: list[_Setting]


def read_rates(file: Path, setting: str, place: str) -> list[float]:
    """Return the joint acceptance by position of one of a profile's settings.

    Raises ConfigError, which begins with `place`.
    """
    if not file.is_file():
        raise ConfigError(
            f"{place}: there is no {file}; write it from a campaign: snakemake --cores 1"
            " export_profile --configfile <the campaign's configuration>"
        )
    try:
        profile = _Profile.model_validate(json_of(read_whole(file)))
    except ValidationError as error:
        raise ConfigError(f"{place}: {file}: {first_fault(error)}") from error
    except (OSError, ValueError) as error:
        raise ConfigError(f"{place}: {file} cannot be read ({one_line(error)})") from error
    if profile.format != FORMAT:
        raise ConfigError(f"{place}: {file} has format {profile.format!r}, not {FORMAT!r}")
    rates = {one.setting: one.joint for one in profile.settings}
    if setting not in rates:
        raise ConfigError(f"{place}: {file} has no setting {setting!r}; {nearest(setting, rates)}")
    return rates[setting]
