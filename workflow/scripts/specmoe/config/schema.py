"""The configuration's types: what each key may hold, and its default.

Everything a campaign measures is said in `config/`; config/README.md explains each key, and
`specmoe.config.load` holds one part against another.
"""

from collections.abc import Mapping
from enum import StrEnum
from pathlib import PurePath
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, StringConstraints

from specmoe.config.audit import AuditSettings
from specmoe.config.backend import Backend
from specmoe.config.base import Digest, Name, Positive, Strict, UserPath
from specmoe.config.block import NO_DRAFT, Protocol
from specmoe.config.environment import may_be_given
from specmoe.config.models import AnyModel, Family, HubModel, Model, PathModel, QuantizeModel


def _engine_variable(name: str) -> str:
    if not may_be_given(name):
        raise ValueError(
            f"{name!r} is no variable that sets up how an engine computes (such as"
            " CUDA_VISIBLE_DEVICES, OMP_NUM_THREADS or GGML_CUDA_FORCE_MMQ), or one that other keys"
            " decide (LLAMA_ARG_...)"
        )
    return name


EngineVariable = Annotated[str, AfterValidator(_engine_variable)]


class Campaign(Strict):
    """One machine, one engine, one model set, one matrix."""

    name: Name
    engine: Name
    backend: Backend = Backend.AUTO
    models: Name
    suites: list[Name] = Field(min_length=1)
    source: Literal["measured", "cached", "published"] = "measured"  # of its runs


class Order(StrEnum):
    """How the blocks of a repeat follow one another; either way seeded."""

    MIXED = "mixed"
    BY_TARGET = "by_target"


class Measurement(Strict):
    """What every run of the campaign has in common."""

    protocol: Protocol = Protocol.PAIRED
    n_predict: Annotated[int, Field(gt=1)] = 256
    temperature: Annotated[float, Field(ge=0)] = 0.0
    seed: Annotated[int, Field(ge=0)] = 42
    repeats: Positive = 3
    more_repeats: dict[str, Positive] = {}  # by cell, a block's id without its repeat
    warmups: Annotated[int, Field(ge=0)] = 2
    order_seed: int = 1
    order: Order = Order.MIXED
    context: Positive = 2048
    threads: Annotated[int, Field(ge=0)] = 0
    gpu_layers: Annotated[int, Field(ge=0)] = 99
    environment: dict[EngineVariable, str] = {}  # of the engine's processes
    start_limit_s: Positive = 600
    run_limit_s: Positive = 600


class Statistics(Strict):
    """How intervals are computed from repeats, and how narrow they should be."""

    confidence: Annotated[float, Field(gt=0, lt=1)] = 0.95
    resamples: Positive = 10_000
    seed: Annotated[int, Field(ge=0)] = 1
    precision: Annotated[float, Field(gt=0, lt=1)] = 0.02  # half an interval, as share of a speedup
    repeats_limit: Positive = 30  # of what `more_repeats` asks for


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
    """Binaries the user has already: a folder with llama-server and llama-quantize in it.

    `converter` is a folder of llama.cpp's source, for models of kind `convert`.
    """

    source: Literal["path"]
    path: UserPath
    converter: UserPath | None = None
    commit: str = "unknown"


Engine = Annotated[PypiEngine | GitEngine | PathEngine, Field(discriminator="source")]


class Prompt(Strict):
    """A text sent whole; `file` is relative to the workflow's folder."""

    label: str
    file: str


class Prompts(Strict):
    """The texts a suite can name, and the passage that prompts of exact length are cut from."""

    texts: dict[Name, Prompt]
    passage: str


class Suite(Strict):
    """One experiment: the product of its lists, repeated.

    A draft may be `itself`, the target. Without temperatures it has the campaign's; acceptance is
    what it comes to unless it is imposed.

    It is measured by the campaign's protocol and engine unless it names others.
    """

    title: str
    targets: list[Name] = Field(min_length=1)
    drafts: list[Name] = Field(min_length=1)
    gammas: list[Positive] = []
    prompts: list[Name] = []
    prompt_lengths: list[Positive] = []
    baseline: Name | None = None
    temperatures: list[Annotated[float, Field(ge=0)]] = []
    imposed_acceptance: list[Annotated[float, Field(ge=0, le=1)]] = []
    protocol: Protocol | None = None
    engine: Name | None = None

    @property
    def has_speculation(self) -> bool:
        """Whether any run of the suite uses a draft."""
        return any(draft != NO_DRAFT for draft in self.drafts)


class Published(Strict):
    """Where the published study's own rows are; they are its authors' and not shipped here."""

    repository: str  # on GitHub
    commit: Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{7,40}$")]
    path: str
    sha256: Digest
    file: UserPath | None = None  # the same file, if it is here already


class TraceSettings(Strict):
    """What `demo_trace` decodes; what is not named is the campaign's first of its kind."""

    target: Name | None = None
    draft: Name | None = None
    gamma: Positive = 4
    prompt: Name | None = None  # None: the first that the campaign sends to the pair
    n_predict: Annotated[int, Field(gt=2)] = 64  # the fewest that leave room for a draft


class Host(Strict):
    """What the user says of the machine, where it is not found or found wrong."""

    chip: str | None = None
    memory_gb: Annotated[float, Field(gt=0)] | None = None
    memory_bandwidth_gb_s: Annotated[float, Field(gt=0)] | None = None
    gpu: str | None = None
    gpu_memory_gb: Annotated[float, Field(gt=0)] | None = None

    @property
    def given(self) -> Mapping[str, str | float]:
        """What is said, by key."""
        return self.model_dump(exclude_none=True)


class Config(Strict):
    """The whole configuration of one campaign."""

    campaign: Campaign
    measurement: Measurement = Measurement()
    statistics: Statistics = Statistics()
    host: Host = Host()
    trust: Literal["config", "first-use"] = "config"  # of files whose digest nobody knows
    room: Literal["checked", "ignored"] = "checked"  # whether what does not fit is downloaded
    compare_with: list[Name] = []  # campaigns whose results are set beside this one's
    trace: TraceSettings = TraceSettings()
    engines: dict[Name, Engine]
    families: dict[Name, Family] = {}
    published: Published
    audit: AuditSettings = AuditSettings()
    model_sets: dict[Name, dict[Name, Model]]
    suites: dict[Name, Suite]
    prompts: Prompts

    @property
    def engine(self) -> PypiEngine | GitEngine | PathEngine:
        """The engine of this campaign."""
        return self.engines[self.campaign.engine]

    @property
    def models(self) -> dict[str, AnyModel]:
        """The model set of this campaign, by model id."""
        return self.model_sets[self.campaign.models]

    @property
    def measured_models(self) -> list[str]:
        """The ids of the models that some selected suite runs, in the order of the set."""
        suites = self.selected_suites.values()
        named = {name for suite in suites for name in [*suite.targets, *suite.drafts]}
        return [name for name in self.models if name in named]

    @property
    def needed_models(self) -> list[str]:
        """The ids of the measured models and of all that they are made from."""
        needed = set(self.measured_models)
        for name in self.measured_models:
            while isinstance(model := self.models[name], QuantizeModel):
                name = model.source
                needed.add(name)
        return [name for name in self.models if name in needed]

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

    @property
    def used_engines(self) -> list[str]:
        """The ids of the campaign's engine, and of those that its suites name."""
        named = (self.engine_of(suite) for suite in self.campaign.suites)
        return list(dict.fromkeys([self.campaign.engine, *named]))

    def engine_of(self, suite: str) -> str:
        """Return the id of the engine that a suite is measured with."""
        return self.suites[suite].engine or self.campaign.engine

    def protocol_of(self, suite: str) -> Protocol:
        """Return the protocol that a suite is measured by."""
        return self.suites[suite].protocol or self.measurement.protocol

    def of_campaign(self) -> Self:
        """Return this configuration without what the campaign does not use."""
        return self.model_copy(
            update={
                "engines": {name: self.engines[name] for name in self.used_engines},
                "model_sets": {self.campaign.models: self.models},
                "suites": self.selected_suites,
            }
        )

    def family(self, model: str) -> Family | None:
        """Return what is known of a model's family; a quantized model has its source's."""
        entry = self.models[model]
        if entry.family is None and isinstance(entry, QuantizeModel):
            return self.family(entry.source)
        return None if entry.family is None else self.families[entry.family]

    def network(self, model: str) -> str:
        """Return the family a model is a file of, or lacking one the model it was made from."""
        entry = self.models[model]
        if entry.family is None and isinstance(entry, QuantizeModel):
            return self.network(entry.source)
        return entry.family or model

    def is_synthetic(self, model: str) -> bool:
        """Return whether a model's weights are random, or quantized from such."""
        entry = self.models[model]
        if isinstance(entry, QuantizeModel):
            return self.is_synthetic(entry.source)
        return entry.kind == "synthetic"

    def prompt_label(self, prompt: str) -> str:
        """Return the reader's word for a text's id; a text that has gone keeps its id."""
        text = self.prompts.texts.get(prompt)
        return text.label if text else prompt

    def label(self, model: str) -> str:
        """Return the reader's word for a model id: without a label, the name of the user's file.

        Models whose files have one name in different folders are told apart by their ids.
        """
        name = self._file_name(model)
        shared = sum(self._file_name(other) == name for other in self.models) > 1
        return self.models[model].label or (model if shared else name)

    def _file_name(self, model: str) -> str:
        """Return the name that a model's file has where it comes from, or lacking one its id."""
        entry = self.models[model]
        if isinstance(entry, PathModel):
            return PurePath(entry.path).stem
        return PurePath(entry.file).stem if isinstance(entry, HubModel) else model
