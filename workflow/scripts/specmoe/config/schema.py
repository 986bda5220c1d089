"""The configuration's types: what each key may hold, its default and its description.

`specmoe.config.reference` documents the keys from these classes: docstrings, and the texts below
fields, are written for users. `specmoe.config.load` checks what relates one key to another.
"""

from collections.abc import Iterable
from pathlib import PurePath
from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field, NonNegativeFloat, PositiveFloat, PositiveInt, model_validator

from specmoe.config.base import Distinct, DraftLength, Name, Size, Strict, TextPath, Times, UserPath
from specmoe.config.block import NO_DRAFT, Protocol, Stop
from specmoe.config.engines import ArmArgs, Backend, Engine, EngineArgs, EngineVariable
from specmoe.config.factors import Vary
from specmoe.config.methods import Drafting, Method
from specmoe.config.models import AnyModel, Family, Model, StudyModel, families
from specmoe.config.workloads import Category, Workload


class Campaign(Strict):
    """What is measured: by which machines, with one engine, one model set, some suites."""

    name: Name
    """results go to `results/<name>/`"""
    engine: Name
    """one of `engines`: the llama.cpp that measures and quantizes"""
    backend: Backend = Backend.AUTO
    """what llama.cpp computes on. `auto` takes Metal on Apple silicon, CUDA, HIP or Vulkan where a
    GPU and the tools to build for it are present, in this order, and the CPU elsewhere"""
    machines: Literal["one", "same"] = "one"
    """`one` machine measures every block, `same` lets machines of one kind share them (processor,
    cores, memory and GPU are compared). A block measures what it compares, so it never spans
    machines"""
    models: Name
    """one of `model_sets`"""
    suites: Distinct[Name] = Field(min_length=1)
    """the experiments: names in `suites`"""
    source: Literal["measured", "shipped", "study_rows"] = "measured"
    """where the runs come from: measured here, shipped beside the configuration, or the published
    study's own rows"""
    folder: UserPath | None = None
    """where the files of a shipped campaign are: beside its configuration, or in
    `resources/campaigns/<name>/`"""
    compare_with_study: dict[StudyModel, Name] = Field(default={})
    """which models are the published study's, or stand for them: ids by its own names, such as
    `{moe_q4: qwen3.5-35b-a3b-q4}`. A campaign whose targets are among them (`moe_q4`, `moe_q8`,
    `dense_4b` or `dense_9b`) is about the study: paper and page have its question, claims and
    numbers"""
    exclude: list[str] = Field(default=[])
    """what is not measured on purpose, because it fails on this machine: a target in
    a suite, `methods/big`, what drafts for it, `methods/big/small`, or one setting of
    that, `methods/big/small/g8`; `/r1` behind any of them excludes its second repeat alone,
    and a block's id that block. Everything else is rendered, and says what was excluded"""


class Prompt(Strict):
    """A text that is sent whole."""

    file: TextPath
    """path relative to the workflow's folder"""
    category: Category | None = None
    """what results are grouped by where a workload sends it"""


class Prompts(Strict):
    """The texts that suites name, and the passage that prompts of exact length are cut from."""

    texts: dict[Name, Prompt]
    passage: TextPath
    """path relative to the workflow's folder"""


class Suite(Strict):
    """One experiment: the product of its lists, times `measurement.repeats`."""

    title: str
    """its name in tables"""
    targets: Distinct[Name] = Field(min_length=1)
    """models of the campaign's set"""
    drafts: Distinct[Name] = Field(default=[])
    """draft models of the set; `self` lets each target draft for itself. Each is compared with
    the baseline, measured beside it. `none` as the only entry measures baselines; beside
    others it adds them by protocol `study`, which has none by itself"""
    methods: list[Drafting] | Literal["all"] = Field(default=[])
    """further drafting methods, each compared with the baseline; `all` tries every method that
    the targets' and the draft models' files are made for at every γ of `gammas`, and n-grams at
    lengths of their own: 3 tokens looked up and 8 drafted, and in the pool also 24 and 64, as
    llama.cpp advises for MoEs. Where it is measured until it is decided (greedily, by an engine of
    source `pypi`) n-grams are first played on what each target wrote alone: then also 2 and 4
    tokens looked up, and 4 and 16 drafted, of all of which the best two are measured. In stages
    `p_min: [0.5, 0.75]` joins at the best one or two γ of each model or head, and in the end the
    best of them with the best n-gram method beside it"""
    gammas: Distinct[DraftLength] = Field(default=[])
    """draft lengths γ: the most tokens drafted in a round"""
    prompts: Distinct[Name | PositiveInt] = Field(default=[])
    """names in `prompts.texts`, sent whole; a whole number is a passage of so many tokens, cut from
    `prompts.passage` (protocol `study` counts words of the study's text)"""
    workloads: Distinct[Name] = Field(default=[])
    """names in `workloads`, every prompt of which is sent"""
    vary: Vary = Field(default={})
    """one thing that the suite varies, and its levels, such as `{temperature: [0, 0.7]}`; rows have
    the level. `prompt_tokens` are passages in place of prompts, and `forced_acceptance` the shares
    of drafted tokens that the engine is asked to accept, whatever they are (rows have what it did):
    these time drafting, verifying and replaying, and no table of speedups has them. Levels of the
    others make comparisons with baselines of their own: `temperature` (above 0 each repeat has its
    own seed), `requests` (so many clients keep a server busy at once, and rows have the load's
    throughput; `1`: of a single client), `thinking` (`true` and `false`, in place of that of the
    suite's workloads, all chats) and `engine_args` (behind `measurement`'s; `[]`: none)"""
    baseline_args: ArmArgs = Field(default=[])
    """further words of the baselines' command lines alone, as `engine_args` of a method has them"""
    protocol: Protocol | None = None
    """replaces the campaign's protocol for this suite"""
    engine: Name | None = None
    """replaces the campaign's engine for this suite, under protocol `study`"""

    @property
    def ways(self) -> list[Drafting]:
        """All drafting methods: the suite's draft models, then its further methods."""
        models = [draft for draft in self.drafts if draft != NO_DRAFT]
        simple = [Drafting(method=Method.DRAFT, drafts=models)] if models else []
        assert self.methods != "all"  # see `load.load`
        return [*simple, *self.methods]


class Repeats(Strict):
    """How often prompts are measured until it is decided."""

    least: Times = 1
    """repeats before anything is dropped"""
    most: Times = 6
    """repeats after which it stops"""

    @model_validator(mode="after")
    def _check_order(self) -> Self:
        if self.least > self.most:
            raise ValueError(f"least ({self.least}) is more than most ({self.most})")
        return self


class Measurement(Strict):
    """What all runs have in common."""

    protocol: Protocol = Protocol.PAIRED
    """`paired`: a llama-server process for each arm of a comparison, on the same prompts;
    `study`: the study's own commands, llama-bench and llama-speculative"""
    n_predict: int = Field(default=256, gt=2)  # of two tokens none is drafted
    """tokens that each run generates; with `stop: eos` at most"""
    stop: Stop = Stop.LENGTH
    """`length`: each run generates `n_predict` tokens, past the model's end if need be; `eos`:
    until the model ends its text, or `n_predict` is reached"""
    temperature: float = Field(default=0.0, ge=0)
    """sampling temperature; 0 is greedy"""
    # The engine keeps 32 bits, and draws one itself if all are set. Runs count on, see `run_seed`.
    seed: int = Field(default=42, ge=0, lt=2**31)
    """seed of sampling"""
    repeats: Times | Repeats = 3
    """how often every prompt is measured, in blocks that are minutes apart; if you raise it, only
    the new blocks are measured. `{least: 1, most: 6}` measures until it is decided: after each
    repeat a table says what is known; settings that are clearly beaten, and targets whose answer is
    decided, are measured no further. Of a dense model and MoEs made of it that a suite has, all is
    measured in each repeat: it is what they are compared by"""
    minutes: PositiveFloat | None = None
    """minutes from the first prompt to the end, a tenth of them for what follows measuring. No
    block begins that would not end in time, and with few minutes fewer settings and prompts are
    tried, the most promising ones first. The same command with more minutes goes on"""
    block_prompts: Times | None = None
    """prompts that a block sends, one after the other; null: one on a CPU, five on a GPU, where a
    run takes less time than loading a model"""
    warmups: int = Field(default=6, ge=0)
    """the most warm-ups of each process. They are timed, kept in the block's record and not
    counted; they end once one is no faster than the one before, or decodes for a second"""
    pass_samples: int = Field(default=8, ge=0)
    """places of a passage at which passes of every target and draft model are timed by themselves,
    for each number of tokens, in each repeat: the cost of a round is fitted beside them. 0 times
    none, lets no draft model score outputs and plays no n-grams on them; an engine of source `path`
    does none of it"""
    order: Literal["mixed", "by_target"] = "mixed"
    """order of the blocks of a repeat: `mixed` shuffles them, `by_target` keeps those of a target
    together, for machines that cannot hold two targets in memory"""
    context: PositiveInt = 2048
    """context of each engine process in tokens; the longest prompt, its output and one draft must
    fit"""
    threads: int = Field(default=0, ge=0)
    """threads of the engine; 0 takes the number of physical cores"""
    gpu_layers: int = Field(default=99, ge=0)
    """layers on the GPU; backend `cpu` ignores it"""
    environment: dict[EngineVariable, str] = Field(default={})
    """environment variables of the engine's processes that set up drivers and threads, such as
    `CUDA_VISIBLE_DEVICES: "0"`. The engine sees no exported ones. `LLAMA_ARG_*` is refused, because
    other keys decide the flags"""
    engine_args: EngineArgs = Field(default=[])
    """further arguments of every llama-server, such as `[--numa, distribute]`; rows have
    them. Flags that other keys decide are refused, and the engine judges the rest"""
    memory: Size | None = None
    """one budget of memory for each arm, as `12 GiB`, `12GB` or a number of GiB: of the GPU, or on
    a CPU of the process. An arm gets the words by which it fits with what drafts, its caches and
    its states: on a GPU the fewest layers of experts in main memory (`--n-cpu-moe`), or of a dense
    model the most on the GPU (`--gpu-layers`); on a CPU its weights are read (`--load-mode none`),
    and caches have 8 bits if need be. What does not fit is refused. Models must be here"""
    reruns: NonNegativeFloat | None = 0.1
    """share of runs that are measured again, once each, because other load disturbed them, by the
    rule in `hardware.disturbance`. What stays disturbed counts, unless it is far beyond what is
    usual on that machine (`runs.schema.excluded`). null records the load and judges no run"""
    time_limit_s: PositiveInt = 600
    """seconds after which loading a model, or a run, counts as hung; a change makes no result
    outdated"""

    @property
    def staged(self) -> bool:
        """Whether what was measured decides what is measured further."""
        return isinstance(self.repeats, Repeats) or self.minutes is not None

    @property
    def least(self) -> int:
        """How often everything is measured at least."""
        return self.repeats.least if isinstance(self.repeats, Repeats) else self.repeats

    @property
    def most(self) -> int:
        """How often anything is measured at most."""
        return self.repeats.most if isinstance(self.repeats, Repeats) else self.repeats

    @property
    def looks(self) -> int:
        """After how many repeats at most it may end; 1 where everything is measured."""
        return self.most if self.staged else 1


class Statistics(Strict):
    """How intervals are computed from repeats."""

    confidence: float = Field(default=0.95, gt=0, lt=1)
    """level of every interval"""
    session_sd: Annotated[float, Field(ge=0, lt=1)] | None = None
    """how far a session's speedups are from the mean of sessions, as a standard deviation of the
    logarithm: answers of `advise` allow for it. null estimates it, from the campaign's own sessions
    if it has several, and from those of shipped campaigns (`resources/noise.yaml`)"""


class AuditSettings(Strict):
    """What the audit cannot know about draft models. Its tolerances are in `audit.limits`."""

    draft_proxies: dict[Name, Name] = Field(default={})
    """for a draft model without a baseline, the model that times it: the same network in a file of
    another type"""
    unrelated_drafts: list[Name] = Field(default=[])
    """draft models that have nothing in common with any target"""


class StatedMachine(Strict):
    """Facts about the machine that specmoe does not find, or finds wrong."""

    chip: str | None = None
    """name of the processor; it decides the bandwidth if the table of `resources/hardware/` has
    it"""
    memory_gb: PositiveFloat | None = None
    """memory in GiB, as it is sold"""
    memory_bandwidth_gb_s: PositiveFloat | None = None
    """peak bandwidth of the memory that the backend uses, in 10⁹ bytes a second. Without it the
    table of chips decides; a chip that is not in the table is probed for two seconds before each
    repeat, and the highest value counts; only a peak that is stated makes a run impossible"""
    gpu: str | None = None
    """name of the GPU"""
    gpu_memory_gb: PositiveFloat | None = None
    """memory of the GPU in GiB, as it is sold"""


class OwnModel(Strict):
    """Your own model in the campaign of `my-models.example.yaml`, which is named after its file.

    Words of the command line, `--config target=/models/m.gguf minutes=10`; all but `campaign` may
    be given beside them. `minutes` alone is `measurement.minutes`.
    """

    target: UserPath
    """path of the target's GGUF file; of a split model the first part"""
    draft: UserPath | None = None
    """path of a draft model, or of a trained head (EAGLE-3, DFlash, DSpark): its file says which"""
    prompts: UserPath | None = None
    """path of a file of prompts, as workloads have them, which are sent as chats"""
    minutes: PositiveFloat | None = None
    """minutes that measuring may take"""


class Config(Strict):
    """The whole configuration of one campaign."""

    further_keys: ClassVar[Iterable[str]] = OwnModel.model_fields
    campaign: Campaign
    measurement: Measurement = Measurement()
    statistics: Statistics = Statistics()
    machine: StatedMachine = StatedMachine()
    check_capacity: bool = True
    """`false` downloads and measures what does not seem to fit disk or memory"""
    compare_with: list[Name] = Field(default=[])
    """campaigns, rendered before in this folder, to compare with"""
    # What `check_claim` is asked about is no part of a campaign.
    claim: dict[str, str | float | None] | UserPath = Field(default={}, exclude=True)
    """facts of a claim for `check_claim`, or a CSV with a claim a line"""
    folder: UserPath = Field(default="", exclude=True)
    """a packed campaign of others, for `check_campaign`"""
    engines: dict[Name, Engine]
    study_rows: UserPath | None = None
    """path of a copy of the study's `runs.csv`; without it `source: study_rows`
    downloads the file"""
    audit: AuditSettings = AuditSettings()
    model_sets: dict[Name, dict[Name, Model]]
    suites: dict[Name, Suite]
    prompts: Prompts
    workloads: dict[Name, Workload] = Field(default={})
    fitted: dict[str, tuple[tuple[str, ...], int]] = Field(default={})
    """written by specmoe: by arm, the words by which it fits `measurement.memory`, and its bytes"""

    @property
    def models(self) -> dict[str, AnyModel]:
        """The model set of this campaign, by model id."""
        return self.model_sets[self.campaign.models]

    @property
    def measured_models(self) -> list[str]:
        """The ids of the models that the selected suites run, in the order of the set."""
        suites = self.selected_suites.values()
        named = {name for suite in suites for name in suite.targets}
        named |= {name for suite in suites for way in suite.ways for name in way.drafts}
        return [name for name in self.models if name in named]

    @property
    def measured_networks(self) -> list[str]:
        """The measured models but for tables of n-grams."""
        return [name for name in self.measured_models if self.models[name].suffix == ".gguf"]

    @property
    def needed_models(self) -> dict[str, AnyModel]:
        """The measured models and the models they are made from, by id."""
        needed = {name for model in self.measured_models for name in self.lineage(model)}
        return {name: entry for name, entry in self.models.items() if name in needed}

    @property
    def selected_suites(self) -> dict[str, Suite]:
        """The suites of this campaign, in the order the campaign names them."""
        return {name: self.suites[name] for name in self.campaign.suites}

    @property
    def used_engines(self) -> list[str]:
        """The ids of the campaign's engine and of the engines that its suites name."""
        engines = [self.campaign.engine, *map(self.engine_of, self.campaign.suites)]
        return list(dict.fromkeys(engines))

    def engine_of(self, suite: str) -> str:
        """Return the id of the engine that a suite is measured with."""
        return self.suites[suite].engine or self.campaign.engine

    def protocol_of(self, suite: str) -> Protocol:
        """Return the protocol that a suite is measured by."""
        return self.suites[suite].protocol or self.measurement.protocol

    def stops_of(self, suite: str) -> set[Stop]:
        """Return how the runs of a suite end; a checked suite has a single way."""
        its = self.suites[suite]
        stops = [self.workloads[name].stop for name in its.workloads]
        texts = [None] if its.prompts or not stops else []
        return {stop or self.measurement.stop for stop in [*stops, *texts]}

    def of_campaign(self) -> Self:
        """Return the part of this configuration that the campaign uses."""
        sent = {name for suite in self.selected_suites.values() for name in suite.workloads}
        names = self.campaign.compare_with_study.items()
        known = {name: model for name, model in names if model in self.models}
        used = {
            "campaign": self.campaign.model_copy(update={"compare_with_study": known}),
            "engines": {name: self.engines[name] for name in self.used_engines},
            "model_sets": {self.campaign.models: self.models},
            "suites": self.selected_suites,
            "workloads": {name: one for name, one in self.workloads.items() if name in sent},
        }
        return self.model_copy(update=used)

    def lineage(self, model: str) -> dict[str, AnyModel]:
        """Return a model, the one that it is made from, and so on to the first."""
        lineage = {model: self.models[model]}
        while (source := lineage[model].made_from) in self.models and source not in lineage:
            model = source
            lineage[model] = self.models[model]
        return lineage

    @property
    def paired_targets(self) -> set[str]:
        """Dense models, and the MoEs made of them that a suite measures beside them.

        All their settings are measured in each repeat: what is compared is theirs, and not which is
        the fastest.
        """
        paired = set()
        for suite in self.selected_suites.values():
            for name in suite.targets:
                entry = self.models[name]
                if entry.kind == "upcycle" and entry.source in suite.targets:
                    paired |= {name, entry.source}
        return paired

    def network(self, model: str) -> str:
        """Return the model whose weights it has, of whatever type, copied to experts or not."""
        lineage = self.lineage(model).items()
        return next(name for name, entry in lineage if entry.kind not in ("quantize", "upcycle"))

    def family(self, model: str) -> Family | None:
        """Return the family of a model; a quantized model has that of its source."""
        entry = self.models[model]
        if entry.family is None and entry.kind == "quantize":
            return self.family(entry.source)
        return None if entry.family is None else families()[entry.family]

    def origin(self, model: str) -> tuple[str, str] | None:
        """Return where a model's weights are from, and their licence; None if no entry says so.

        Those of a model that is made from another one are that one's.
        """
        *_, (root, entry) = self.lineage(model).items()
        if entry.kind not in ("hub", "package") or not entry.licence:
            return None
        return (entry.origin if root == model else f"made from {entry.origin}", entry.licence)

    def weights(self, model: str) -> set[str]:
        """Return how a model's weights came about: trained or random, and copied to experts."""
        return {entry.weights for entry in self.lineage(model).values()}

    def label(self, model: str) -> str:
        """Return the label of a model; without one, the name of the user's file.

        Models whose files have the same name in different folders keep their ids.
        """
        entry = self.models[model]
        names = [PurePath(other.files[0]).stem for other in self.models.values() if other.files]
        name = PurePath(entry.files[0]).stem if entry.files else model
        return entry.label or (model if names.count(name) > 1 else name)
