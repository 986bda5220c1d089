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
    PackageModel,
    PathModel,
)
from specmoe.config.schema import Config
from specmoe.config.timed_passes import TimedPasses
from specmoe.engine.memory import bytes_together, usable_memory, working_bytes
from specmoe.files import gigabytes
from specmoe.models.expected_sizes import size_of
from specmoe.models.sizes import Size
from specmoe.plan.estimate import Machine, block_seconds, timed_passes_seconds
from specmoe.plan.inventory import Inventory
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
    sizes = {
        name: size
        for name in config.needed_models
        if (size := size_of(name, config, found.cards, found.asked))
    }
    downloads, made = _to_download(config, sizes, found), _to_make(config, sizes, found)
    needs = _memory_needs(config, blocks, sizes)
    own = host.get("gpu_memory_bytes")
    usable = usable_memory(
        round(_number(host, "memory_bytes")), own if isinstance(own, int) else None, backend
    )
    machine = _machine(host, backend)
    estimated_s = {
        block.block: _estimate(block, sizes, machine, found.prompt_tokens) for block in blocks
    }
    timed = list_timed_passes(config, blocks)
    return Plan(
        campaign=config.campaign.name,
        host=host,
        backend=backend,
        machine=machine,
        found=found,
        downloads=downloads,
        made=made,
        memory=max(needs.items(), key=lambda need: need[1], default=None),
        memory_usable=usable,
        in_turn=_in_turn(config, blocks, sizes, usable, backend),
        ways=list_ways(config, blocks, sizes),
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
        timed_s=_timed_seconds(timed, len({block.repeat for block in blocks}), sizes, machine),
        estimated_s=estimated_s,
        memory_bytes={block.block: _bytes_together(block, sizes, backend) for block in blocks},
        left_s=seconds_left(estimated_s, found.measured_s),
        unverified=[item.model for item in downloads if _unverified(config, item.model)],
        shortfalls=[
            *_disk_shortfalls(downloads, made, found),
            *_memory_shortfalls(needs, usable),
        ],
    )


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


def _machine(host: Mapping[str, object], backend: Backend) -> Machine | None:
    """Return what an estimate needs of the machine; None if its bandwidth is unknown."""
    bandwidth = host["memory_bandwidth_bytes_per_second"]
    if not isinstance(bandwidth, int | float):
        return None
    return Machine(bandwidth, backend != Backend.CPU, round(_number(host, "physical_cores")))


def _to_download(config: Config, sizes: Mapping[str, Size], found: Inventory) -> list[Item]:
    """Return what has to be downloaded; a file that two models share counts once."""
    items: dict[str, Item] = {}
    for name in config.needed_models:
        entry = config.models[name]
        if name in found.made or name in found.cached:
            continue
        if isinstance(entry, HubModel | ConvertModel):
            file = entry.file if isinstance(entry, HubModel) else "*.safetensors"
            source = f"{entry.repository}, {file}"
            items.setdefault(f"{source}@{entry.revision}", _item(name, source, sizes))
    return list(items.values())


def _to_make(config: Config, sizes: Mapping[str, Size], found: Inventory) -> list[Item]:
    """Return the models to write here: all except links to the user's and the hub's files."""
    entries = {name: config.models[name] for name in config.needed_models if name not in found.made}
    return [
        _item(name, _maker(entry), sizes)
        for name, entry in entries.items()
        if not isinstance(entry, HubModel | PathModel)
    ]


def _maker(entry: AnyModel) -> str:
    """Return in words how a model is made; pip's download is needed during that alone."""
    return f"pip: {entry.origin}" if isinstance(entry, PackageModel) else entry.kind


def _item(name: str, source: str, sizes: Mapping[str, Size]) -> Item:
    size = sizes.get(name)
    if size is None:
        return Item(name, source, None, "size unknown")
    return Item(name, source, size.file_bytes, size.basis)


def _memory_needs(
    config: Config, blocks: Iterable[Block], sizes: Mapping[str, Size]
) -> dict[str, int]:
    """Return the bytes that each combination of target and draft needs, by their labels."""
    needs = {}
    for block in blocks:
        if all(model in sizes for model in block.models):
            words = " with ".join(map(config.label, block.models))
            if block.slots > 1:
                words += f", {block.slots} requests at once"
            working = working_bytes(block.slots, block.context)
            needs[words] = sum(sizes[model].file_bytes for model in block.models) + working
    return needs


def _in_turn(
    config: Config,
    blocks: Iterable[Block],
    sizes: Mapping[str, Size],
    usable: int,
    backend: Backend,
) -> list[str]:
    """Return the models of blocks whose sides follow one another because memory is too small."""
    words = []
    for block in blocks:
        chooses = block.protocol == Protocol.PAIRED and block.arrangement == Arrangement.AUTO
        if not chooses or len(block.sides) == 1:
            continue
        needed = _bytes_together(block, sizes, backend)
        if needed is not None and needed > usable:
            words.append(
                f"{config.label(block.target)} with {config.draft_label(block)},"
                f" {len(block.sides)} sides"
            )
    return list(dict.fromkeys(words))


def _bytes_together(block: Block, sizes: Mapping[str, Size], backend: Backend) -> int | None:
    """Return the bytes that a block needs while all of its sides are live; None if unknown."""
    if not all(model in sizes for model in block.models):
        return None
    target, *drafts = (sizes[model].file_bytes for model in block.models)
    return bytes_together(
        target,
        sum(drafts),
        len(block.sides),
        sum(side.speculates for side in block.sides),
        backend,
        working_bytes(block.slots, block.context),
    )


def _unverified(config: Config, model: str) -> bool:
    entry = config.models[model]
    return isinstance(entry, ConvertModel) or (
        isinstance(entry, HubModel) and entry.sha256 == UNVERIFIED
    )


def _memory_shortfalls(needs: Mapping[str, int], usable: int) -> list[str]:
    return [
        f"memory: {words}: {gigabytes(needed)} needed, {gigabytes(usable)} usable"
        for words, needed in needs.items()
        if needed > usable
    ]


def _disk_shortfalls(downloads: list[Item], made: list[Item], found: Inventory) -> list[str]:
    """Return which disks are too full for the downloads and the made models.

    Both often go to the same disk.
    """
    wanted: dict[int, list[tuple[int, str]]] = {}
    for folder, items in ((found.hub_folder, downloads), (found.models_folder, made)):
        needed = sum(item.size_bytes or 0 for item in items)
        wanted.setdefault(folder.disk, []).append((needed, str(folder.path)))
    free = {folder.disk: folder.free_bytes for folder in (found.hub_folder, found.models_folder)}
    return [
        f"disk: {gigabytes(sum(needed for needed, _ in folders))} needed in"
        f" {' and '.join(path for needed, path in folders if needed)}, {gigabytes(free[disk])} free"
        for disk, folders in wanted.items()
        if sum(needed for needed, _ in folders) > free[disk]
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


def _estimate(
    block: Block,
    sizes: Mapping[str, Size],
    machine: Machine | None,
    prompt_tokens: Mapping[str, int],
) -> float | None:
    # What drafts may be of a kind whose size nobody knows before it is there.
    needed = block.models if Method.DRAFT in block.methods else (block.target,)
    if machine is None or not all(model in sizes for model in needed):
        return None
    tokens = [source.length or prompt_tokens[source.prompt] for source in block.prompts]
    draft = sizes.get(block.draft_model) if block.draft_model else None
    return block_seconds(block, tokens, sizes[block.target], draft, machine)


def _timed_seconds(
    timed: Iterable[TimedPasses], repeats: int, sizes: Mapping[str, Size], machine: Machine | None
) -> float | None:
    if machine is None:
        return None
    once = (
        timed_passes_seconds(passes, sizes[passes.model], machine)
        if passes.model in sizes
        else None
        for passes in timed
    )
    whole = total_seconds(once)
    return None if whole is None else repeats * whole


def _number(host: Mapping[str, object], key: str) -> float:
    value = host[key]
    assert isinstance(value, int | float)
    return value
