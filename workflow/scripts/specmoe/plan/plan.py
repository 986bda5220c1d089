"""The plan of a campaign: what it needs and has, whether that fits, and how long it may take.

A screen of it is printed, by `paper/plan.txt.j2`, and all of it is in the campaign's folder: as
plan.md for people, and as plan.json for jobs.
"""

import json
import shlex
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from specmoe.config.block import Arm, Block, PromptSource, Protocol, Schedule, TimedPasses
from specmoe.config.engines import Backend
from specmoe.config.matrix import list_blocks, list_timed_passes
from specmoe.config.methods import PARAMETERS, Method, draft_label
from specmoe.config.models import UNVERIFIED, HubModel, PathModel
from specmoe.config.schema import Config
from specmoe.engine.machine import groups_in_memory, usable_memory, working_bytes
from specmoe.errors import PlanError
from specmoe.files import at_home, read_record, replace_text
from specmoe.models.info import Size
from specmoe.plan.campaign import ROOT, LoadedCampaign
from specmoe.plan.estimate import (
    ACCEPTANCE,
    HIGH,
    LOW,
    Machine,
    block_seconds,
    size_of,
    timed_passes_seconds,
)
from specmoe.plan.inventory import Inventory, take_inventory
from specmoe.plan.machine import PROBED, devices_of, probe
from specmoe.plan.machine import describe as describe_machine
from specmoe.text import duration, fill_template


def _grouped(pairs: Iterable[tuple[Any, Any]]) -> dict[Any, list[Any]]:
    groups: dict[Any, list[Any]] = {}
    for key, value in pairs:
        groups.setdefault(key, []).append(value)
    return groups


class Item(NamedTuple):
    """A model to download or to make."""

    model: str
    source: str  # in words
    size_bytes: int | None  # None: unknown
    basis: str


class Shortfall(NamedTuple):
    """What needs more than there is."""

    of: str  # disk or memory
    needed: int  # bytes
    there: int
    what: str  # folders, or models


@dataclass(frozen=True)
class Plan:
    """What a campaign needs on a machine and how long it may take; all blocks, measured or not."""

    config: Config
    blocks: list[Block]
    description: Mapping[str, Any]  # of the machine; see `machine.describe`
    backend: Backend
    found: Inventory

    @cached_property
    def machine(self) -> Machine | None:
        """What estimates need of the machine; None if its bandwidth is unknown."""
        bandwidth = self.description["memory_bandwidth_bytes_per_second"]
        cores = self.description["physical_cores"]
        return bandwidth and Machine(bandwidth, self.backend != Backend.CPU, cores)

    @cached_property
    def sizes(self) -> Mapping[str, Size]:
        """The sizes of the needed models, as far as they are known."""
        return {
            name: size
            for name in self.config.needed_models
            if (size := size_of(name, self.config, self.found.infos, self.found.hub_bytes))
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
        size, entry = self.sizes.get(model), self.config.models[model]
        unverified = isinstance(entry, HubModel) and entry.sha256 == UNVERIFIED
        basis = (size.basis if size else "size unknown") + ", no SHA-256" * unverified
        return Item(model, source, size.file_bytes if size else None, basis)

    @cached_property
    def memory_needs(self) -> dict[str, int]:
        """The bytes that each combination of target and draft needs by its label, most first."""
        needs = {}
        for block in self.blocks:
            at_once = f", {block.slots} requests at once" if block.slots > 1 else ""
            working = working_bytes(block.slots, block.context)
            for files in {block.files_of(arm) for arm in block.arms}:
                if all(model in self.sizes for model in files):
                    words = " with ".join(map(self.config.label, files)) + at_once
                    needs[words] = sum(self._file_bytes[model] for model in files) + working
        return dict(sorted(needs.items(), key=lambda need: -need[1]))

    @property
    def memory_usable(self) -> int:
        """The bytes of memory that models can use."""
        own = self.description["gpu_memory_bytes"]
        return usable_memory(self.description["memory_bytes"], own, self.backend)

    @cached_property
    def _file_bytes(self) -> dict[str, int]:
        return {model: size.file_bytes for model, size in self.sizes.items()}

    def groups_of(self, block: Block) -> list[list[Arm]]:
        """Return the arms that take turns; see `machine.groups_in_memory`."""
        sized = all(model in self.sizes for model in block.models)
        if (block.protocol, block.schedule, sized) != (Protocol.PAIRED, Schedule.AUTO, True):
            return [[*block.arms]]
        given = (self._file_bytes, self.backend, self.memory_usable)
        return groups_in_memory(block, block.arms, *given)

    @cached_property
    def divided(self) -> int:
        """How many blocks have arms that the memory does not hold at once."""
        return sum(len(self.groups_of(block)) != 1 for block in self.blocks)

    @cached_property
    def estimated_s(self) -> Mapping[str, float | None]:
        """The time of every block; None: a size is unknown."""
        return {block.block: self._seconds(block) for block in self.blocks}

    def estimate(self, blocks: Iterable[str]) -> float | None:
        """Return the time of some blocks; None if one is unknown."""
        seconds = [self.estimated_s[block] for block in blocks]
        return None if None in seconds else sum(one for one in seconds if one)

    @property
    def whole_s(self) -> float | None:
        """The time of all blocks and of what is timed before repeats; None: one is unknown."""
        whole = self.estimate(self.estimated_s)
        return whole and whole + (self.timed_s or 0)

    @property
    def left_s(self) -> float | None:
        """The time of the blocks that are not measured, at the pace of those that are."""
        measured = self.found.measured_s
        known = [block for block in measured if self.estimated_s[block]]
        rate = sum(measured[block] for block in known) / (self.estimate(known) or 1) if known else 1
        left = self.estimate(self.estimated_s.keys() - measured)
        return left and rate * left

    def _seconds(self, block: Block) -> float | None:
        # Some files that draft have no known size before they are there.
        networks = [arm.draft_model for arm in block.arms if arm.method == Method.DRAFT]
        needed = {block.target, *networks}
        if self.machine is None or not all(model in self.sizes for model in needed):
            return None
        tokens = [*map(self.tokens_of, block.prompts)]
        # The baseline is measured in each group.
        arms = tuple(arm for group in self.groups_of(block) for arm in group) or block.arms
        return block_seconds(replace(block, arms=arms), tokens, self.sizes, self.machine)

    def tokens_of(self, source: PromptSource) -> int:
        """Return the tokens of a prompt, estimated unless it is cut to a length."""
        return source.length or self.found.prompt_tokens[source.prompt]

    @property
    def fullest(self) -> tuple[int, int, str]:
        """The tokens that a run takes of its context, the context, and the prompt: the fullest."""
        runs = [(block, one) for block in self.blocks for one in block.prompts]
        block, one = max(
            runs, key=lambda run: (self.tokens_of(run[1]) + run[0].n_predict) / run[0].context
        )
        return self.tokens_of(one) + block.n_predict, block.context, one.prompt

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
    def shortfalls(self) -> list[Shortfall]:
        """What does not fit the disks and the memory, most first; empty if everything does."""
        folders = ((self.found.hub_folder, self.downloads), (self.found.models_folder, self.made))
        sizes = ((one, sum(item.size_bytes or 0 for item in items)) for one, items in folders)
        # By disk: both may go to the same one.
        wanted = _grouped((folder.disk, (folder, size)) for folder, size in sizes if size)
        disks = [
            Shortfall(
                "disk", needed, free, at_home(" and ".join(str(one.path) for one, _ in parts))
            )
            for parts in wanted.values()
            if (needed := sum(size for _, size in parts)) > (free := parts[0][0].free_bytes)
        ]
        return disks + [
            Shortfall("memory", needed, self.memory_usable, models)
            for models, needed in self.memory_needs.items()
            if needed > self.memory_usable
        ]

    @property
    def fitting(self) -> list[str]:
        """The suites that can be measured here together, the first ones first."""
        chosen: list[str] = []
        for suite in self.config.campaign.suites:
            campaign = self.config.campaign.model_copy(update={"suites": [*chosen, suite]})
            config = self.config.model_copy(update={"campaign": campaign})
            blocks = [block for block in self.blocks if block.suite in campaign.suites]
            if not replace(self, config=config, blocks=blocks).shortfalls:
                chosen.append(suite)
        return chosen

    @property
    def rows(self) -> list[dict[str, Any]]:
        """Of each suite its blocks, runs, seconds (None: unknown) and measured blocks, see `plan`.

        A row has also each target's drafting methods, with their draft lengths.
        """
        rows = []
        for suite in self.config.campaign.suites:
            blocks = [block for block in self.blocks if block.suite == suite]
            names = [block.block for block in blocks]
            known = [name for name in names if name in self.found.measured_s]
            ways = _grouped(
                ((self.config.label(block.target), self._way(arm)), arm.gamma)
                for block in blocks
                for arm in block.arms
                if arm.speculates
            )
            rows.append(
                {
                    "suite": suite,
                    "title": self.config.suites[suite].title,
                    "blocks": len(blocks),
                    "runs": sum(block.runs for block in blocks),
                    "seconds": self.estimate(names),
                    "measured": len(known),
                    "measured_s": sum(self.found.measured_s[name] for name in known),
                    "ways": [(*of, sorted({*gammas})) for of, gammas in ways.items()],
                }
            )
        return rows

    def _way(self, arm: Arm) -> str:
        given = {name: getattr(arm, name) for name in PARAMETERS}
        file = arm.draft_model and self.config.label(arm.draft_model)
        return draft_label(arm.method, file, given) if arm.method else arm.setting


def plan(results: Path, check_capacity: bool = False, configfile: tuple[Path, ...] = ()) -> None:
    """Say what a campaign needs and how long it may take; its configuration is on stdin.

    `configfile` are the files that configure it, for lines to be pasted. Raises PlanError if the
    campaign does not fit, and `check_capacity` is set.
    """
    # A command line may be too short for a configuration of hundreds of suites or prompts.
    config = Config.model_validate_json(sys.stdin.read())
    campaign = LoadedCampaign(config, ROOT, results)
    description = describe_machine(
        campaign.backend,
        config.machine.model_dump(exclude_none=True),
        lambda: _probed(campaign.machine_file) or probe(),
        devices_of(campaign, campaign.engine_file(campaign.engine_id)),
    )
    blocks = list_blocks(config, gpu=campaign.gpu)
    planned = Plan(config, blocks, description, campaign.backend, take_inventory(campaign, blocks))
    details = campaign.folder / "plan.md"
    replace_text(details, describe(planned, "plan.md.j2"))
    print(describe(planned, "plan.txt.j2", details, configfile), end="", flush=True)
    facts = {"estimated_s": planned.estimated_s}
    replace_text(campaign.plan_file, json.dumps(facts) + "\n")
    if check_capacity and planned.shortfalls:
        raise PlanError("nothing is downloaded, because this campaign does not fit, see above")


def _probed(machine: Path) -> float | None:
    """Return the bandwidth that was measured for the campaign; None if none was."""
    described = read_record(machine) if machine.exists() else {}
    source = described.get("memory_bandwidth_source") or ""
    return described["memory_bandwidth_bytes_per_second"] if source.startswith(PROBED) else None


def describe(
    plan: Plan, template: str, details: Path | None = None, files: Iterable[Path] = ()
) -> str:
    """Return a plan as one of its templates says it; `files` configure the campaign."""
    prompts = {source.prompt: source for block in plan.blocks for source in block.prompts}.values()
    changed = plan.found.changed.items()
    named = shlex.join(map(str, files))
    return fill_template(
        ROOT / "paper" / template,
        plan=plan,
        name=plan.config.campaign.name,
        refused=bool(plan.shortfalls) and plan.config.check_capacity,
        # llama.cpp took 9 minutes on two cores, and 3.5 on 16 with CUDA.
        build_minutes=max(3, round(18 / plan.description["physical_cores"])),
        acceptance=ACCEPTANCE,
        # They are also made.
        packed={one.source[5:]: one.size_bytes for one in plan.made if one.source[:5] == "pip: "},
        prompts=_grouped(
            ((one.workload or "–", one.category or "–"), plan.tokens_of(one)) for one in prompts
        ),
        again=_grouped(((block.partition("/")[0], reason), block) for block, reason in changed),
        # No estimate knows any of them.
        options=sorted({block.options_text for block in plan.blocks} - {""}),
        span=lambda seconds: duration(seconds and LOW * seconds, seconds and HIGH * seconds),
        duration=duration,
        at_home=at_home,
        details=details,
        configfile=f"--configfile {named} " if named else "",
        root=ROOT,
    )
