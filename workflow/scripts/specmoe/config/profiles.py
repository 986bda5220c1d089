"""Speculation profiles: files that say how far drafts held by position, measured elsewhere.

A profile is JSON: `{"format": "speculation_profile/1", "settings": [...]}`. Of a setting its id
`setting` and its `joint` acceptance by position are read. `analysis.profile` writes more beside
these, and a profile of another benchmark needs no more.
"""

from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from specmoe.config.imposed import JointRates
from specmoe.config.parse import first_fault
from specmoe.config.schema import Config, Suite
from specmoe.errors import ConfigError, nearest

FORMAT = "speculation_profile/1"
PROFILE = "speculation_profile.json"


class _Setting(BaseModel):
    """What is read of a setting."""

    model_config = ConfigDict(extra="ignore", allow_inf_nan=False)

    setting: str
    joint: JointRates = Field(min_length=1)


class _Profile(BaseModel):
    """What is read of a profile."""

    format: str
    settings: list[_Setting]


_PROFILE = TypeAdapter(_Profile)


def expand_profiles(config: Config) -> Config:
    """Return the configuration with the rates of each profile that the campaign imposes.

    A campaign that is not measured here keeps the rates that its configuration has. Raises
    ConfigError with the file and the first fault.
    """
    if config.campaign.source != "measured":
        return config
    suites = {
        name: _expanded(name, suite) if name in config.campaign.suites else suite
        for name, suite in config.suites.items()
    }
    return config.model_copy(update={"suites": suites})


def _expanded(name: str, suite: Suite) -> Suite:
    filled = []
    for profile in suite.imposed_profiles:
        place = f"config: suites.{name}.imposed_profiles: {profile.name}"
        if profile.file is not None and profile.setting is not None:
            rates = read_rates(Path(profile.file), profile.setting, place)
            if profile.rates and profile.rates != rates:
                raise ConfigError(
                    f"{place}: its `rates` are not those of {profile.file}; leave one of them out"
                )
            profile = profile.model_copy(update={"rates": rates})
        filled.append(profile)
    return suite.model_copy(update={"imposed_profiles": filled})


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
        profile = _PROFILE.validate_json(file.read_bytes())
    except ValidationError as error:
        raise ConfigError(f"{place}: {file}: {first_fault(error)}") from error
    if profile.format != FORMAT:
        raise ConfigError(f"{place}: {file} has format {profile.format!r}, not {FORMAT!r}")
    rates = {one.setting: one.joint for one in profile.settings}
    if setting not in rates:
        raise ConfigError(f"{place}: {file} has no setting {setting!r}; {nearest(setting, rates)}")
    return rates[setting]
