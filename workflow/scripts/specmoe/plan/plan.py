"""The plan of a campaign: what it needs, whether that fits, and how long it may take."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from specmoe.config.backend import Backend
from specmoe.config.block import Arrangement, Block, Protocol
from specmoe.config.engine_options import EXTRA_ARGS
from specmoe.config.matrix import added_runs, list_timed_passes
from specmoe.config.methods import Method
from specmoe.config.models import (
    UNVERIFIED,
    AnyModel,
    ConvertModel,
    HubModel,
    PathModel,
)
from specmoe.config.schema import Config
from specmoe.config.timed_passes import TimedPasses
from specmoe.engine.memory import bytes_together, usable_memory, working_bytes
from specmoe.files import gigabytes
from specmoe.models.expected_sizes import size_of
from specmoe.models.sizes import Size
from specmoe.plan.estimate import Machine, block_seconds, timed_passes_seconds
from specmoe.plan.inventory import Folder, Inventory
from specmoe.plan.progress import seconds_left, total_seconds
from specmoe.plan.ways import Way, list_ways, notes_on_cuts, notes_on_mtp, notes_on_texts


@dataclass(frozen=True)
class Item:
    """A model to download or to make."""

    model: str
    source: str  # in words
    size_bytes: int | None  # None: unknown
    basis: str


@dataclass(frozen=True)
class SuitePlan:
    """The blocks of one suite, estimated and measured; times in seconds."""

    suite: str
    blocks: int
    runs: int
    measured: int  # blocks
    estimated_s: float | None  # of all blocks; None: a size is unknown
    estimated_measured_s: float | None  # of the measured ones
    measured_s: float


def total(suites: Iterable[SuitePlan]) -> SuitePlan:
    """Return the sum of several suites' plans."""
    suites = list(suites)
    return SuitePlan(
        "all",
        sum(suite.blocks for suite in suites),
        sum(suite.runs for suite in suites),
        sum(suite.measured for suite in suites),
        total_seconds(suite.estimated_s for suite in suites),
        total_seconds(suite.estimated_measured_s for suite in suites),
        sum(suite.measured_s for suite in suites),
    )


@dataclass(frozen=True)
class Plan:
    """What a campaign needs and how long it may take."""

    campaign: str
    host: Mapping[str, object]  # see `hardware.describe`
    backend: Backend
    machine: Machine | None  # None: its bandwidth is unknown
    found: Inventory
    downloads: list[Item]
    made: list[Item]
    memory: tuple[str, int] | None  # the largest pair of models, and its bytes
    memory_usable: int
    in_turn: list[str]  # models, by their labels, that the memory does not hold once a side
    ways: list[Way]  # of drafting, see `list_ways`
    notes: list[str]  # what to know of models before they are measured
    added_runs: int  # of targets alone, as the baselines of others
    left_out: list[str]  # blocks and comparisons that the configuration leaves out
    options: dict[str, list[str]]  # of the engine, by suite; see `Setting.text`
    unestimated: list[str]  # names of options that no estimate of memory or time knows
    suites: list[SuitePlan]
    timed_models: int  # whose passes are timed by themselves in each repeat
    timed_s: float | None  # for all of that; None: a size is unknown
    estimated_s: Mapping[str, float | None]  # of every block; None: a size is unknown
    memory_bytes: Mapping[str, int | None]  # of every block while all its sides are live, likewise
    left_s: float | None  # for the blocks that are not measured, at the pace so far
    unverified: list[str]
    shortfalls: list[str]  # what does not fit; empty if everything does

    @property
    def facts(self) -> dict[str, object]:
        """What later jobs read of the plan, as plan.json holds it."""
        return {
            "shortfalls": self.shortfalls,
            "estimated_s": self.estimated_s,
            "measured_s": self.found.measured_s,
            "again": list(self.found.changed),
            "memory_bytes": self.memory_bytes,
        }


def make_plan(
    config: Config,
    blocks: list[Block],
    host: Mapping[str, object],
    backend: Backend,
    found: Inventory,
) -> Plan:
    """Return the plan of all blocks, measured or not, on a host."""
    basis = _Basis.of(config, blocks, host, backend, found)
    downloads, made = basis.to_download(), basis.to_make()
    needs, usable = basis.memory_needs(), _usable_memory(host, backend)
    estimated_s = {block.block: basis.seconds_of_block(block) for block in blocks}
    timed = list_timed_passes(config, blocks)
    return Plan(
        campaign=config.campaign.name,
        host=host,
        backend=backend,
        machine=basis.machine,
        found=found,
        downloads=downloads,
        made=made,
        memory=max(needs.items(), key=lambda need: need[1], default=None),
        memory_usable=usable,
        in_turn=basis.in_turn(usable),
        ways=list_ways(config, blocks, basis.sizes),
        notes=[
            *notes_on_mtp(config, blocks, found.cards),
            *notes_on_texts(config, blocks),
            *notes_on_cuts(config, blocks),
        ],
        added_runs=added_runs(blocks, config),
        left_out=config.campaign.left_out,
        options=_options(config),
        unestimated=_unestimated(blocks),
        suites=_suites(config, blocks, estimated_s, found.measured_s),
        timed_models=len(timed),
        timed_s=basis.seconds_of_passes(timed),
        estimated_s=estimated_s,
        memory_bytes={block.block: basis.bytes_together(block) for block in blocks},
        left_s=seconds_left(estimated_s, found.measured_s),
        unverified=[item.model for item in downloads if _unverified(config.models[item.model])],
        shortfalls=[
            *_disk_shortfalls(downloads, made, found),
            *(
                f"memory: {words}: {gigabytes(needed)} needed, {gigabytes(usable)} usable"
                for words, needed in needs.items()
                if needed > usable
            ),
        ],
    )


@dataclass(frozen=True)
class _Basis:
    """What the figures of a plan are computed from."""

    config: Config
    blocks: list[Block]
    backend: Backend
    found: Inventory
    machine: Machine | None  # None: its bandwidth is unknown
    sizes: Mapping[str, Size]  # of the models of which one is known

    @classmethod
    def of(
        cls,
        config: Config,
        blocks: list[Block],
        host: Mapping[str, object],
        backend: Backend,
        found: Inventory,
    ) -> "_Basis":
        bandwidth, machine = host["memory_bandwidth_bytes_per_second"], None
        if isinstance(bandwidth, int | float):
            cores = round(_number(host, "physical_cores"))
            machine = Machine(bandwidth, backend != Backend.CPU, cores)
        sizes = {
            name: size
            for name in config.needed_models
            if (size := size_of(name, config, found.cards, found.asked))
        }
        return cls(config, blocks, backend, found, machine, sizes)

    def item(self, model: str, source: str) -> Item:
        size = self.sizes.get(model)
        known = (size.file_bytes, size.basis) if size else (None, "size unknown")
        return Item(model, source, *known)

    def to_download(self) -> list[Item]:
        """Return what has to be downloaded; a file that two models share counts once."""
        items: dict[str, Item] = {}
        for name in self.config.needed_models:
            entry = self.config.models[name]
            here = name in self.found.made or name in self.found.cached
            if isinstance(entry, HubModel | ConvertModel) and not here:
                file = entry.file if isinstance(entry, HubModel) else "*.safetensors"
                source = f"{entry.repository}, {file}"
                items.setdefault(f"{source}@{entry.revision}", self.item(name, source))
        return list(items.values())

    def to_make(self) -> list[Item]:
        """Return the models to write here: all except links to the user's and the hub's files."""
        entries = {name: self.config.models[name] for name in self.config.needed_models}
        return [
            # pip's download is needed while the model is made, and no longer.
            self.item(name, f"pip: {entry.origin}" if entry.kind == "package" else entry.kind)
            for name, entry in entries.items()
            if name not in self.found.made and not isinstance(entry, HubModel | PathModel)
        ]

    def memory_needs(self) -> dict[str, int]:
        """Return the bytes that each combination of target and draft needs, by their labels."""
        needs = {}
        for block in self.blocks:
            if files := self._file_bytes(block):
                words = " with ".join(map(self.config.label, block.models))
                if block.slots > 1:
                    words += f", {block.slots} requests at once"
                needs[words] = sum(files) + working_bytes(block.slots, block.context)
        return needs

    def in_turn(self, usable: int) -> list[str]:
        """Return the models of blocks whose sides follow one another because memory is small."""
        words = [
            f"{self.config.label(block.target)} with {self.config.draft_label(block)},"
            f" {len(block.sides)} sides"
            for block in self.blocks
            if block.protocol == Protocol.PAIRED
            and block.arrangement == Arrangement.AUTO
            and len(block.sides) > 1
            and (self.bytes_together(block) or 0) > usable
        ]
        return list(dict.fromkeys(words))

    def bytes_together(self, block: Block) -> int | None:
        """Return the bytes that a block needs while all its sides are live; None if unknown."""
        if not (files := self._file_bytes(block)):
            return None
        return bytes_together(
            files[0],
            sum(files[1:]),
            len(block.sides),
            sum(side.speculates for side in block.sides),
            self.backend,
            working_bytes(block.slots, block.context),
        )

    def _file_bytes(self, block: Block) -> list[int]:
        """Return the sizes of the models that a block loads; empty if one is unknown."""
        if not all(model in self.sizes for model in block.models):
            return []
        return [self.sizes[model].file_bytes for model in block.models]

    def seconds_of_block(self, block: Block) -> float | None:
        # What drafts may be of a kind whose size nobody knows before it is there.
        needed = block.models if Method.DRAFT in block.methods else (block.target,)
        if self.machine is None or not all(model in self.sizes for model in needed):
            return None
        known = self.found.prompt_tokens
        tokens = [source.length or known[source.prompt] for source in block.prompts]
        draft = self.sizes.get(block.draft_model) if block.draft_model else None
        return block_seconds(block, tokens, self.sizes[block.target], draft, self.machine)

    def seconds_of_passes(self, timed: Iterable[TimedPasses]) -> float | None:
        """Return the time of timing passes by themselves, in all repeats; None if unknown."""
        if self.machine is None:
            return None
        once = [
            timed_passes_seconds(passes, self.sizes[passes.model], self.machine)
            if passes.model in self.sizes
            else None
            for passes in timed
        ]
        return total_seconds(once * len({block.repeat for block in self.blocks}))


def _options(config: Config) -> dict[str, list[str]]:
    """Return the options with which each suite measures; suites without any are left out."""
    by_suite = {
        suite: [setting.text for setting in config.option_settings(suite)]
        for suite in config.campaign.suites
    }
    return {suite: texts for suite, texts in by_suite.items() if any(texts)}


def _unestimated(blocks: list[Block]) -> list[str]:
    """Return the names of the engine's options; no estimate of memory or time knows any."""
    given = {name for block in blocks for name in block.engine_options}
    return [*sorted(given), *([EXTRA_ARGS] if any(block.extra_args for block in blocks) else [])]


def _usable_memory(host: Mapping[str, object], backend: Backend) -> int:
    own = host.get("gpu_memory_bytes")
    system = round(_number(host, "memory_bytes"))
    return usable_memory(system, own if isinstance(own, int) else None, backend)


def _unverified(entry: AnyModel) -> bool:
    return isinstance(entry, ConvertModel) or (
        isinstance(entry, HubModel) and entry.sha256 == UNVERIFIED
    )


def _disk_shortfalls(downloads: list[Item], made: list[Item], found: Inventory) -> list[str]:
    """Return which disks are too full for the downloads and the made models.

    Both often go to the same disk.
    """
    wanted: dict[int, dict[Folder, int]] = {}
    for folder, items in ((found.hub_folder, downloads), (found.models_folder, made)):
        needed = sum(item.size_bytes or 0 for item in items)
        folders = wanted.setdefault(folder.disk, {})
        folders[folder] = folders.get(folder, 0) + needed
    return [
        f"disk: {gigabytes(sum(folders.values()))} needed in"
        f" {' and '.join(str(folder.path) for folder, needed in folders.items() if needed)},"
        f" {gigabytes(free)} free"
        for folders in wanted.values()
        if sum(folders.values()) > (free := min(folder.free_bytes for folder in folders))
    ]


def _suites(
    config: Config,
    blocks: list[Block],
    estimated_s: Mapping[str, float | None],
    measured_s: Mapping[str, float],
) -> list[SuitePlan]:
    plans = []
    for name in config.selected_suites:
        members = [block for block in blocks if block.suite == name]
        measured = [block.block for block in members if block.block in measured_s]
        plans.append(
            SuitePlan(
                suite=name,
                blocks=len(members),
                runs=sum(block.runs for block in members),
                measured=len(measured),
                estimated_s=total_seconds(estimated_s[block.block] for block in members),
                estimated_measured_s=total_seconds(estimated_s[block] for block in measured),
                measured_s=sum(measured_s[block] for block in measured),
            )
        )
    return plans


def _number(host: Mapping[str, object], key: str) -> float:
    value = host[key]
    assert isinstance(value, int | float)
    return value
