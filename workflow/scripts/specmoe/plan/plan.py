"""The plan of a campaign: what it needs and has, whether that fits, and how long it may take.

It is printed, by `paper/plan.txt.j2`.
"""

import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

from specmoe.campaign.campaign import LoadedCampaign
from specmoe.campaign.progress import Progress, left_s
from specmoe.config.block import Block, PromptSource, Stop
from specmoe.config.engines import COUNTS_SINCE, Backend
from specmoe.config.matrix import TEXTS, begun
from specmoe.config.methods import METHODS, Method, is_ngram
from specmoe.config.models import AnyModel, HubModel, PackageModel, PathModel
from specmoe.config.schema import Config
from specmoe.errors import PlanError
from specmoe.files import ROOT, at_home, read_record
from specmoe.hardware.description import PROBED, machine_facts, probe
from specmoe.hardware.machine import devices_of, memory_needed, usable_memory
from specmoe.models.reported import accepted_elsewhere, passes_elsewhere
from specmoe.plan.estimate import ASSUMED, Machine, block_seconds
from specmoe.plan.inventory import Inventory, take_inventory
from specmoe.text import duration, fill_template

_Remote = HubModel | PackageModel


class Shortfall(NamedTuple):
    """What needs more than there is."""

    of: str  # disk or memory
    needed: int  # bytes
    there: int
    what: str  # folders, or models


class Needed(NamedTuple):
    """The tokens that a round must write to gain, and those that others report of such models.

    The first are what a pass costs others, on their machines, with what drafting reads.
    """

    target: str
    method: Method
    gamma: int
    tokens: tuple[float, float]
    reported: tuple[float, ...] | None


@dataclass(frozen=True)
class Plan:
    """What a campaign needs on a machine and how long it may take.

    All blocks count, measured or not; of a campaign in stages those of the first repeat.
    """

    config: Config
    blocks: list[Block]
    description: Mapping[str, Any]  # of the machine; see `hardware.description`
    backend: Backend
    inventory: Inventory

    @cached_property
    def machine(self) -> Machine | None:
        """What estimates need of the machine; None if its bandwidth is unknown."""
        bandwidth = self.description["memory_bandwidth_bytes_per_second"]
        cores = self.description["physical_cores"]
        return bandwidth and Machine(bandwidth, self.backend != Backend.CPU, cores)

    @cached_property
    def downloads(self) -> dict[str, int | None]:
        """The bytes of what has to be downloaded, by where it is; a shared file counts once."""
        return {entry.origin: size for _, entry, size in self._absent if isinstance(entry, _Remote)}

    @cached_property
    def made(self) -> dict[str, int | None]:
        """The bytes of the models that are written here, by name."""
        ready = _Remote | PathModel
        return {name: size for name, entry, size in self._absent if not isinstance(entry, ready)}

    @property
    def _absent(self) -> list[tuple[str, AnyModel, int | None]]:
        known = {model: size.file_bytes for model, size in self.inventory.sizes.items()}
        absent = [name for name in self.config.needed_models if name not in self.inventory.here]
        return [(name, self.config.models[name], known.get(name)) for name in absent]

    @cached_property
    def memory_needs(self) -> dict[str, int]:
        """The bytes that each combination of target and draft needs by its label, most first.

        With one budget it is each arm, with the words by which it fits.
        """
        needs = dict[str, int]()
        sizes = {model: size.file_bytes for model, size in self.inventory.sizes.items()}
        if fitted := self.config.fitted:
            needs = {f"{arm}: {shlex.join(words)}": need for arm, (words, need) in fitted.items()}
        for block in self.blocks:
            at_once = f", {block.slots} requests at once" if block.slots > 1 else ""
            for arm in block.arms:
                files = block.files_of(arm)
                if not fitted and sizes.keys() >= {*files}:
                    words = " with ".join(map(self.config.label, files)) + at_once
                    needs[words] = memory_needed(block, [arm], sizes, self.backend)
        return dict(sorted(needs.items(), key=lambda need: -need[1]))

    @property
    def memory_usable(self) -> int:
        """The bytes of memory that models can use, or that are given to each arm."""
        of_gpu = self.description["gpu_memory_bytes"]
        there = usable_memory(self.description["memory_bytes"], of_gpu, self.backend)
        return min(there, self.config.measurement.memory or there)

    def estimate(self, blocks: Iterable[Block]) -> float | None:
        """Return the time of some blocks; None if a size is unknown."""
        seconds, sizes = 0.0, self.inventory.sizes
        for block in blocks:
            # Some files that draft have no known size before they are there.
            networks = [arm.draft_model for arm in block.arms if arm.method == Method.DRAFT]
            if self.machine is None or not sizes.keys() >= {block.target, *networks}:
                return None
            tokens = [*map(self.tokens_of, block.prompts)]
            seconds += block_seconds(block, tokens, sizes, self.machine)
        return seconds

    def tokens_of(self, source: PromptSource) -> int:
        """Return the tokens of a prompt, estimated unless it is cut to a length."""
        return source.length or self.inventory.prompt_tokens[source.prompt]

    @cached_property
    def needed(self) -> list[Needed]:
        """What drafting on MoEs must bring, by what others report, in the order of the blocks."""
        settings = dict.fromkeys(
            (block.target, arm.draft_model, arm.method, arm.gamma)
            for block in self.blocks
            for arm in block.arms
            if arm.method and not is_ngram(arm.method) and arm.forced_acceptance is None
        )
        found, sizes = [], self.inventory.sizes
        for target, model, method, gamma in settings:
            family, size, costs = self.config.family(target), sizes.get(target), passes_elsewhere()
            if family is None or not family.experts or size is None or gamma + 1 not in costs:
                continue
            drafter = sizes.get(model) if method == Method.DRAFT and model else None
            # A draft model reads its weights for each token; what a head takes is not known.
            drafting = gamma * (drafter.pass_bytes(1) / size.pass_bytes(1) if drafter else 0)
            least, most = (cost + drafting for cost in costs[gamma + 1])
            shares = accepted_elsewhere(family.parameters, family.parameters_active, method, gamma)
            tokens = shares and tuple(1 + gamma * share for share in shares)
            found.append(Needed(self.config.label(target), method, gamma, (least, most), tokens))
        return found

    @property
    def fullest(self) -> tuple[int, int, str]:
        """The tokens that a run takes of its context, the context, and the prompt: the fullest."""
        runs = [(block, source) for block in self.blocks for source in block.prompts]
        block, source = max(
            runs, key=lambda run: (self.tokens_of(run[1]) + run[0].n_predict) / run[0].context
        )
        return self.tokens_of(source) + block.n_predict, block.context, source.prompt

    @cached_property
    def shortfalls(self) -> list[Shortfall]:
        """What does not fit the disks and the memory, most first; empty if everything does."""
        folders = self.inventory.hub_folder, self.inventory.models_folder
        sizes = (sum(filter(None, files.values())) for files in (self.downloads, self.made))
        written = [(folder, size) for folder, size in zip(folders, sizes, strict=True) if size]
        # Both may go to the same disk.
        wanted = ([*parts] for _, parts in groupby(written, lambda part: part[0].disk))
        disks = [
            Shortfall(
                "disk", needed, free, at_home(" and ".join(str(folder.path) for folder, _ in parts))
            )
            for parts in wanted
            if (needed := sum(size for _, size in parts)) > (free := parts[0][0].free_bytes)
        ]
        return disks + [
            Shortfall("memory", needed, self.memory_usable, models)
            for models, needed in self.memory_needs.items()
            if needed > self.memory_usable
        ]


def plan(campaign: LoadedCampaign, options: str, check_capacity: bool) -> None:
    """Say what a campaign needs and how long it may take.

    `options` configure it, for lines to be pasted. Raises the errors of its inventory, and
    PlanError if it does not fit, and `check_capacity` is set.
    """
    config = campaign.config.of_campaign()
    remaining, staged = Progress(campaign).remaining, config.measurement.staged
    every = [remaining(name) or begun(config, block) for name, block in campaign.blocks.items()]
    # In stages what is measured decides what comes after the first repeat.
    blocks = [block for block in every if block.arms and not (staged and block.repeat)]
    inventory = take_inventory(campaign, blocks)
    backend, engine = campaign.backend, campaign.places.engine_file(campaign.engine_id)
    devices = devices_of(engine, backend, config.measurement.environment)
    rate, stated = partial(_probed, campaign.places.machine_file), config.machine
    description = machine_facts(backend, stated.model_dump(exclude_none=True), rate, devices)
    planned = Plan(config, blocks, description, backend, inventory)
    print(describe(planned, options), end="", flush=True)
    if check_capacity and planned.shortfalls:
        raise PlanError("nothing is downloaded, because this campaign does not fit, see above")


def _probed(machine: Path) -> float:
    """Return the bandwidth that was measured for the campaign; it is measured if none was."""
    described = read_record(machine) if machine.exists() else {}
    measured = (described.get("memory_bandwidth_source") or "").startswith(PROBED)
    return (measured and described["memory_bandwidth_bytes_per_second"]) or probe()


def describe(plan: Plan, options: str) -> str:
    """Return what is printed of a plan; `options` configure the campaign."""
    # Where texts end by themselves, before `n_predict`, it may take less.
    ends_early = any(block.stop == Stop.EOS for block in plan.blocks)
    low, high = ASSUMED["low"] * (ASSUMED["ends_early"] if ends_early else 1.0), ASSUMED["high"]
    return fill_template(
        ROOT / "paper/plan.txt.j2",
        plan=plan,
        refused=bool(plan.shortfalls) and plan.config.check_capacity,
        # llama.cpp took 9 minutes on two cores, and 3.5 on 16 with CUDA.
        build_minutes=max(3, round(18 / plan.description["physical_cores"])),
        prompts=len({source.prompt for block in plan.blocks for source in block.prompts}),
        left=duration(left_s(plan.blocks, plan.inventory.measured)),
        span=lambda seconds: duration(seconds and low * seconds, seconds and high * seconds),
        duration=duration,
        at_home=at_home,
        starts=sum(block.starts(arm) for block in plan.blocks for arm in block.arms),
        start_s=ASSUMED["start_s"],
        probed=(plan.description["memory_bandwidth_source"] or "").startswith(PROBED),
        texts=sum(TEXTS in block.block for block in plan.blocks),
        counts_since=COUNTS_SINCE,
        fixed_drafts={
            (arm.method, arm.gamma)
            for block in plan.blocks
            for arm in block.arms
            if arm.method and "gamma" not in METHODS[arm.method].flags
        },
        options=options,
        root=ROOT,
    )
