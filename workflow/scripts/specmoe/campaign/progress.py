"""The progress of a campaign: what is decided in stages, what is measured, and what is left."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from specmoe.campaign.campaign import LoadedCampaign
from specmoe.config import matrix
from specmoe.config.block import Block
from specmoe.files import ROOT, named_if_damaged, read_record
from specmoe.records import head_of
from specmoe.text import counted, duration, fill_template


class Progress:
    """What is decided and measured of a campaign, by the files that are there now."""

    def __init__(self, campaign: LoadedCampaign):
        """Give the campaign."""
        self.campaign, self.places = campaign, campaign.places

    def decided(self, repeat: int) -> dict[str, Any]:
        """Return what was decided before a repeat, see `analysis.stages`; empty if nothing was."""
        if self.campaign.config.campaign.source == "measured":
            return _read(self.places.stage_file(repeat))
        decided = self.ended.get("stages", [])
        return dict(decided[repeat]) if repeat < len(decided) else {}

    @property
    def ended(self) -> dict[str, Any]:
        """What a campaign in stages has measured, and why it ended; empty before, or for others."""
        return _read(self.places.stages[0]) if self.places.stages else {}

    def remaining(self, name: str) -> Block | None:
        """Return a block with the arms that are measured; without any, or None: not decided yet.

        Controls and forced acceptance are measured as long as anything of their target is.
        """
        block = self.campaign.block(name)
        if not self.places.stages or matrix.TEXTS in name:
            return block
        if not (stage := self.decided(block.repeat)):
            return None
        # What waits is measured only where that was decided.
        settings = {matrix.setting_of(block, arm): bool(arm.waits) for arm in block.arms}
        measured = stage["measured"]
        gone = {name for name, waits in settings.items() if not measured.get(name, not waits)}
        if block.target not in stage["targets"]:
            gone.add(block.comparison)
        return matrix.without(block, gone) or replace(block, arms=())

    @property
    def measured_blocks(self) -> list[str]:
        """The blocks that are measured: all, or in stages those that were decided on."""
        blocks = self.campaign.blocks
        measured = set(self.ended.get("blocks", ()) if self.places.stages else blocks)
        return [name for name in blocks if name in measured]

    @property
    def passes_before(self) -> list[int]:
        """The repeats before which passes are timed; in stages those that were measured."""
        every = [*self.campaign.first_blocks]
        return self.ended.get("passes", []) if self.places.stages else every

    def describe(self) -> str:
        """Say how many blocks are measured, and how long the others take at their pace."""
        blocks = self.campaign.blocks
        heads = zip(blocks, map(head_of, self.places.record_files(blocks)), strict=True)
        took = {block: head.seconds for block, head in heads if head}
        progress = f"{len(took)} of {counted(len(blocks), 'block')}"
        left = left_s(blocks.values(), took)
        return f"{progress}, {duration(left)} left" if left else progress

    def describe_missing(self, *, interrupted: bool = False) -> str:
        """Say what is not measured of what is decided on, and which blocks failed, if any."""
        blocks = [one for one in self.campaign.blocks if (due := self.remaining(one)) and due.arms]
        missing = [name for name in blocks if not self.places.record_files([name])[0].exists()]
        return fill_template(
            ROOT / "paper/missing.txt.j2",
            blocks=len(blocks),
            missing=len(missing),
            logs=[(block, log) for block in missing if (log := self.places.log_of(block)).exists()],
            interrupted=interrupted,
        ).rstrip("\n")


def _read(stages: Path) -> dict[str, Any]:
    """Return what was written of stages; empty before that."""
    with named_if_damaged(stages):
        return dict(read_record(stages)) if stages.exists() else {}


def left_s(blocks: Iterable[Block], took: Mapping[str, float]) -> float | None:
    """Return the seconds that blocks take after those that took some, at their pace a run.

    None if no run is done.
    """
    runs = {block.block: block.runs for block in blocks}
    done = sum(runs[block] for block in took)
    return (sum(runs.values()) - done) / done * sum(took.values()) if done else None
