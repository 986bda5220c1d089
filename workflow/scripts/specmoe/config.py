"""The configuration: its types, its checks, and one readable line for everything that is wrong.

Everything a campaign measures is said in `config/`; config/README.md explains each key.
`load` is called by the Snakefile before any rule is defined, so a wrong name never reaches the DAG.
"""

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    StringConstraints,
    ValidationError,
    model_validator,
)

from specmoe.backend import Backend
from specmoe.block import NO_DRAFT
from specmoe.errors import ConfigError, nearest
from specmoe.recipe import Recipe

# Names become file names and command-line words: no separators, no shell or LaTeX surprises inside.
Name = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")]
Digest = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
Positive = Annotated[int, Field(gt=0)]


class Protocol(StrEnum):
    """How a run is measured."""

    PAIRED = "paired"


class Strict(BaseModel):
    """A section of the configuration that refuses keys it does not know, naming the nearest."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    @model_validator(mode="before")
    @classmethod
    def _refuse_unknown_keys(cls, data: Any) -> Any:
        if isinstance(data, Mapping):
            for key in data:
                if key not in cls.model_fields:
                    raise ValueError(f"unknown key {key!r}; {nearest(str(key), cls.model_fields)}")
        return data


class Campaign(Strict):
    """One machine, one engine, one model set, one matrix."""

    name: Name
    engine: Name
    backend: Backend = Backend.AUTO
    models: Name
    suites: list[Name] = Field(min_length=1)


class Measurement(Strict):
    """What every run of the campaign has in common."""

    protocol: Protocol = Protocol.PAIRED
    n_predict: Annotated[int, Field(gt=1)] = 256
    temperature: Annotated[float, Field(ge=0)] = 0.0
    seed: Annotated[int, Field(ge=0)] = 42
    repeats: Positive = 3
    warmups: Annotated[int, Field(ge=0)] = 2
    order_seed: int = 1
    context: Positive = 2048
    threads: Annotated[int, Field(ge=0)] = 0
    gpu_layers: Annotated[int, Field(ge=0)] = 99
    start_limit_s: Positive = 600
    run_limit_s: Positive = 600


class Statistics(Strict):
    """How intervals are computed from repeats."""

    confidence: Annotated[float, Field(gt=0, lt=1)] = 0.95
    resamples: Positive = 10_000
    seed: Annotated[int, Field(ge=0)] = 1


class EngineBuild(Strict):
    """What all engines built from source share."""

    commit: Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{7,40}$")]
    cmake: dict[str, str] = {}
    fallbacks: list[dict[str, str]] = []


class PypiEngine(EngineBuild):
    """The llama.cpp inside a source distribution of llama-cpp-python."""

    source: Literal["pypi"]
    version: Annotated[str, StringConstraints(pattern=r"^[0-9][0-9A-Za-z.]*$")]
    sha256: Digest


class GitEngine(EngineBuild):
    """A tag of a git repository, checked to be the commit it should be."""

    source: Literal["git"]
    url: str
    tag: Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._/-]*$")]


class PathEngine(Strict):
    """Binaries the user has already: a folder with llama-server and llama-quantize in it."""

    source: Literal["path"]
    path: str
    commit: str = "unknown"


Engine = Annotated[PypiEngine | GitEngine | PathEngine, Field(discriminator="source")]


class ModelBase(Strict):
    """What every model has: a label for tables and figures (default: its id)."""

    label: str = ""


class HubModel(ModelBase):
    """A file of a Hugging Face repository at a revision."""

    kind: Literal["hub"]
    repository: Annotated[str, StringConstraints(pattern=r"^[^/\s]+/[^/\s]+$")]
    revision: str
    file: str
    size_bytes: Positive | None = None
    sha256: Digest | None = None


class QuantizeModel(ModelBase):
    """A model made from another one of the set by llama-quantize."""

    kind: Literal["quantize"]
    source: Name
    type: Annotated[str, StringConstraints(pattern=r"^[A-Z0-9_]+$")]


class SyntheticModel(ModelBase):
    """Random weights of a real architecture, written here."""

    kind: Literal["synthetic"]
    recipe: Recipe


class PathModel(ModelBase):
    """A GGUF file the user has; a relative path starts where snakemake is called."""

    kind: Literal["path"]
    path: str


Model = Annotated[
    HubModel | QuantizeModel | SyntheticModel | PathModel, Field(discriminator="kind")
]


class Prompt(Strict):
    """A text sent whole; `file` is relative to the workflow's folder."""

    label: str
    file: str


class Prompts(Strict):
    """The texts a suite can name, and the passage that prompts of exact length are cut from."""

    texts: dict[Name, Prompt]
    passage: str


class Suite(Strict):
    """One experiment: the product of its lists, repeated."""

    title: str
    targets: list[Name] = Field(min_length=1)
    drafts: list[Name] = Field(min_length=1)
    gammas: list[Positive] = []
    prompts: list[Name] = []
    prompt_lengths: list[Positive] = []
    baseline: Name | None = None

    @property
    def has_speculation(self) -> bool:
        """Whether any run of the suite uses a draft."""
        return any(draft != NO_DRAFT for draft in self.drafts)


class Config(Strict):
    """The whole configuration of one campaign."""

    campaign: Campaign
    measurement: Measurement = Measurement()
    statistics: Statistics = Statistics()
    engines: dict[Name, Engine]
    model_sets: dict[Name, dict[Name, Model]]
    suites: dict[Name, Suite]
    prompts: Prompts

    @property
    def engine(self) -> PypiEngine | GitEngine | PathEngine:
        """The engine of this campaign."""
        return self.engines[self.campaign.engine]

    @property
    def models(
        self,
    ) -> dict[str, HubModel | QuantizeModel | SyntheticModel | PathModel]:
        """The model set of this campaign, by model id."""
        return self.model_sets[self.campaign.models]

    @property
    def selected_suites(self) -> dict[str, Suite]:
        """The suites of this campaign, in the order the campaign names them."""
        return {name: self.suites[name] for name in self.campaign.suites}

    @property
    def baseline_suites(self) -> dict[str, str]:
        """Which suite holds the runs without a draft, for each suite that has some with one."""
        return {
            name: suite.baseline
            for name, suite in self.selected_suites.items()
            if suite.baseline is not None
        }

    def of_campaign(self) -> Self:
        """Return this configuration without what the campaign does not use."""
        return self.model_copy(
            update={
                "engines": {self.campaign.engine: self.engine},
                "model_sets": {self.campaign.models: self.models},
                "suites": self.selected_suites,
            }
        )

    def label(self, model: str) -> str:
        """Return the reader's word for a model id."""
        return self.models[model].label or model


def load(data: Mapping[str, Any], root: Path) -> Config:
    """Return the checked configuration.

    `data` is the merged mapping Snakemake read; `root` is the workflow's folder, where prompt
    files lie. Raises ConfigError with the place of the first fault and the way out of it.
    """
    try:
        config = Config.model_validate(data)
    except ValidationError as error:
        raise ConfigError(_first_fault(error)) from error
    _check_names(config)
    _check_sources(config)
    for name, suite in config.selected_suites.items():
        _check_suite(config, name, suite)
    for name, suite in config.selected_suites.items():
        if suite.has_speculation:
            _check_speculation(config, name, suite)
    _check_prompt_files(config, root)
    return config


def _first_fault(error: ValidationError) -> str:
    fault = error.errors(include_url=False)[0]
    # A discriminated union adds the branch taken to the path, which is no key of the YAML.
    tags = {"hub", "quantize", "synthetic", "path", "pypi", "git"}
    keys = [str(part) for i, part in enumerate(fault["loc"]) if not (i == 3 and part in tags)]
    if fault["loc"][:1] == ("engines",):
        keys = [str(part) for i, part in enumerate(fault["loc"]) if not (i == 2 and part in tags)]
    if fault["type"] == "unexpected_keyword_argument":
        key = keys.pop()
        known = [field.name for field in dataclasses.fields(Recipe)]
        return f"config: {'.'.join(keys)}: unknown key {key!r}; {nearest(key, known)}"
    place = ".".join(keys) or "top level"
    message = fault["msg"].removeprefix("Value error, ")
    shown = f" (got {fault['input']!r})" if fault["type"] not in {"value_error", "missing"} else ""
    return f"config: {place}: {message}{shown}"


def _require(name: str, known: Iterable[str], place: str, what: str) -> None:
    known = list(known)
    if name not in known:
        raise ConfigError(f"config: {place}: unknown {what} {name!r}; {nearest(name, known)}")


def _check_names(config: Config) -> None:
    campaign = config.campaign
    _require(campaign.engine, config.engines, "campaign.engine", "engine")
    _require(campaign.models, config.model_sets, "campaign.models", "model set")
    for suite in campaign.suites:
        _require(suite, config.suites, "campaign.suites", "suite")
    if len(set(campaign.suites)) < len(campaign.suites):
        raise ConfigError("config: campaign.suites: a suite is named twice")


def _check_sources(config: Config) -> None:
    """Check that every quantized model leads back to a file, without a circle."""
    models = config.models
    for name, model in models.items():
        seen = [name]
        while isinstance(model, QuantizeModel):
            place = f"model_sets.{config.campaign.models}.{seen[-1]}.source"
            _require(model.source, models, place, "model")
            if model.source in seen:
                raise ConfigError(f"config: {place}: {model.source!r} is made from itself")
            seen.append(model.source)
            model = models[model.source]
    if NO_DRAFT in models:
        raise ConfigError(f"config: model_sets: {NO_DRAFT!r} means no draft and names no model")


def _check_suite(config: Config, name: str, suite: Suite) -> None:
    place = f"suites.{name}"
    for target in suite.targets:
        _require(target, config.models, f"{place}.targets", "model")
    for draft in suite.drafts:
        _require(draft, [NO_DRAFT, *config.models], f"{place}.drafts", "model")
    for prompt in suite.prompts:
        _require(prompt, config.prompts.texts, f"{place}.prompts", "prompt")
    for field in ("targets", "drafts", "gammas", "prompts", "prompt_lengths"):
        values = getattr(suite, field)
        if len(set(values)) < len(values):
            raise ConfigError(f"config: {place}.{field}: a value is named twice")
    if not suite.prompts and not suite.prompt_lengths:
        raise ConfigError(f"config: {place}: name at least one of prompts and prompt_lengths")
    longest = max(suite.prompt_lengths, default=0)
    room = config.measurement.context - config.measurement.n_predict - max(suite.gammas, default=0)
    if longest >= room:
        raise ConfigError(
            f"config: {place}.prompt_lengths: {longest} tokens and what is generated after them"
            f" do not fit measurement.context = {config.measurement.context}"
        )


def _check_speculation(config: Config, name: str, suite: Suite) -> None:
    """Check that every run with a draft has a γ, and a baseline of its target and prompt."""
    place = f"suites.{name}"
    if not suite.gammas:
        raise ConfigError(f"config: {place}.gammas: a suite with a draft needs at least one γ")
    if suite.baseline is None:
        raise ConfigError(f"config: {place}.baseline: say which suite holds the runs without draft")
    _require(suite.baseline, config.campaign.suites, f"{place}.baseline", "suite of this campaign")
    baseline = config.suites[suite.baseline]
    wanted_and_held: list[tuple[str, Sequence[str | int], Sequence[str | int]]] = [
        ("draft", [NO_DRAFT], baseline.drafts),
        ("target", suite.targets, baseline.targets),
        ("prompt", suite.prompts, baseline.prompts),
        ("prompt length", suite.prompt_lengths, baseline.prompt_lengths),
    ]
    lacks = [
        f"{kind} {value!r}"
        for kind, wanted, held in wanted_and_held
        for value in wanted
        if value not in held
    ]
    if lacks:
        raise ConfigError(
            f"config: {place}.baseline: suite {suite.baseline!r} has no {lacks[0]},"
            f" so runs of {name!r} would have nothing to be compared with"
        )


def _check_prompt_files(config: Config, root: Path) -> None:
    files = {f"prompts.texts.{name}.file": p.file for name, p in config.prompts.texts.items()}
    for place, file in {**files, "prompts.passage": config.prompts.passage}.items():
        if not (root / file).is_file():
            raise ConfigError(f"config: {place}: no file {file!r} in the workflow's folder")
