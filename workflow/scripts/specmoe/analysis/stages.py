"""Measurement in stages: repeat by repeat, until each answer is decided or the minutes end.

Before the first repeat, targets write alone what draft models then score and n-grams are played on,
and passes are timed: the speedups of both are predicted. After each repeat, `contenders` says what
is measured further, and what joins. What was decided before a repeat is kept beside the records, so
that a later call goes on where this one ended, and decides again only what rests on other records.
"""

import json
import math
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd

from specmoe.analysis import contenders
from specmoe.analysis.decision import Fate
from specmoe.analysis.number_text import TOO_FEW_PROMPTS, measured
from specmoe.campaign.asked import Asked
from specmoe.campaign.campaign import LoadedCampaign
from specmoe.config.block import Block
from specmoe.config.matrix import PASSES_SHARE, TEXTS
from specmoe.config.schema import Config
from specmoe.files import ROOT, read_record, replace_text
from specmoe.measure import jobs
from specmoe.records import digest_of, head_of
from specmoe.text import duration, fill_template, in_columns

# Of the minutes: what targets write alone, before anything is compared.
TEXTS_SHARE = 0.2
FEWEST_TEXTS = 3
# Texts end where they end, so a block may take longer than others of its target did.
MARGIN = 1.2
# Of the minutes: for what follows measuring, such as judging tokens that differ from a baseline's.
END_SHARE = 0.1


def measure_until_decided(campaign: LoadedCampaign, log: Path) -> None:
    """Measure repeat by repeat until each answer is decided, or the minutes end."""
    stages = Stages(campaign, log)
    ended = stages.measure()
    outcome = {
        "ended": ended,
        "blocks": stages.blocks,
        "passes": stages.passes,
        "settings": [*begun_of(stages.decided[-1]["settings"]).values()],
        "stages": stages.decided,
    }
    replace_text(campaign.places.stages[0], json.dumps(outcome, indent=1) + "\n")


@dataclass
class Stages:
    """A campaign that is measured in stages, and how far it is."""

    campaign: LoadedCampaign
    log: Path
    blocks: list[str] = field(default_factory=list)  # that are measured as asked
    passes: list[int] = field(default_factory=list)  # the repeats before which they were timed
    passes_s: float = 0.0  # that the last ones took
    decided: list[dict[str, Any]] = field(default_factory=list)  # before each repeat
    # When it began, had all records been made since then.
    began: float = field(default_factory=time.monotonic)
    taken: dict[str, tuple[float, int]] = field(default_factory=dict)  # seconds and runs, by target
    repeat_s: float = 0.0  # that the last repeat took

    @property
    def left_s(self) -> float:
        """The seconds that measuring may still take."""
        minutes = self.campaign.config.measurement.minutes
        spent = time.monotonic() - self.began
        return float("inf") if minutes is None else 60 * minutes * (1 - END_SHARE) - spent

    @property
    def paces(self) -> dict[str, float]:
        """The seconds of a run, by target."""
        return {target: seconds / runs for target, (seconds, runs) in self.taken.items()}

    def measure(self) -> str:
        """Measure; return why it ended."""
        most = self.campaign.config.measurement.most
        self._time_passes(0)
        self._write_texts()
        for repeat in range(most):
            if ended := self._decide(repeat):
                return ended
            if repeat and self.passes_s < PASSES_SHARE * self.left_s:
                self._time_passes(repeat)
            if not self._measure_repeat(repeat):
                return self._decide(repeat + 1, "the minutes end")
        return self._decide(most, "all repeats are measured")

    def _measure_repeat(self, repeat: int) -> bool:
        """Measure the blocks of a repeat; return whether the minutes were enough for all.

        What is measured already takes none.
        """
        blocks, asked = self.campaign.blocks.items(), Asked(self.campaign)
        names = (name for name, block in blocks if block.repeat == repeat and TEXTS not in name)
        due = [block for block in map(asked.progress.remaining, names) if block and block.arms]
        self.repeat_s, enough = 0.0, True
        for number, block in enumerate(due):
            name, expected = f"blocks/{block.block}", self.seconds(block)
            late = expected is not None and MARGIN * expected > self.left_s
            if late and asked.records.seconds(name, asked.block(block.block)) is None:
                enough = False
                continue
            known = sum(self.seconds(later) or 0.0 for later in due[number + 1 :])
            of_repeat = f"{number + 1} of {len(due)} blocks of repeat {repeat + 1}"
            about = f", about {duration(min(known, self.left_s))} left" if known else ""
            self.repeat_s += self._measure(block, f"{of_repeat}{about}")
        return enough

    def seconds(self, block: Block) -> float | None:
        """Return how long a block takes at the pace of its target's; None if it is not known."""
        pace = self.paces.get(block.target)
        return None if pace is None else block.runs * pace

    def _measure(self, block: Block, where: str) -> float:
        """Measure a block unless it is; return the seconds that it took."""
        began = time.monotonic()
        self.campaign.places.log_of(block.block).parent.mkdir(parents=True, exist_ok=True)
        said, fresh = jobs.measure_once(self.campaign, block.block)
        head = head_of(self.campaign.places.record_files([block.block])[0])
        assert head is not None
        self.began -= max(head.seconds - (time.monotonic() - began), 0)
        seconds, runs = self.taken.get(block.target, (0.0, 0))
        self.taken[block.target] = seconds + head.seconds, runs + block.runs
        self.blocks.append(block.block)
        if fresh:
            print(f"{where}: {block.block}: {said}", flush=True)
        return head.seconds

    def _time_passes(self, repeat: int) -> None:
        if self.campaign.timed_passes:
            began = time.monotonic()
            self.passes_s = jobs.time_passes(self.campaign, repeat, self.log)
            self.passes.append(repeat)
            self.began -= max(self.passes_s - (time.monotonic() - began), 0)

    def _write_texts(self) -> None:
        """Measure targets alone, and score what they wrote; with few minutes fewer of each."""
        texts = [block for name, block in self.campaign.blocks.items() if TEXTS in name]
        minutes = self.campaign.config.measurement.minutes or 0.0
        spared_s, written = 60 * minutes * (1 - END_SHARE - TEXTS_SHARE), Counter[str]()
        for number, block in enumerate(texts):
            if written[block.target] < FEWEST_TEXTS or self.left_s >= spared_s:
                self._measure(block, f"{number + 1} of {len(texts)} texts that targets write alone")
                written[block.target] += 1
        for record, blocks in self.campaign.scoring.items():
            if read := tuple(name for name in blocks if name in self.blocks):
                log = self.log.with_name(f"{record.replace('/', '.')}.log")
                jobs.score(self.campaign, record, log, read)

    def _decide(self, repeat: int, last: str = "") -> str:
        """Decide what is measured in a repeat, unless it is, and print it; return why nothing is.

        `last` is why no repeat follows whatever is decided; then the decision is not kept.
        """
        file, basis = self.campaign.places.stage_file(repeat), self._basis()
        if not last and file.exists():
            kept = dict(read_record(file))
            if kept["basis"] == basis:
                self.decided.append(kept)
                return str(kept["ended"])
        before = self.decided[-1]["settings"] if self.decided else {}
        rows = contenders.choose(self.campaign, repeat, self.blocks, before)
        if not last:
            # The final repeat, as far as minutes tell by what the one before took.
            most = self.campaign.config.measurement.most
            final = repeat + 1 == most or self.left_s < 2 * self.repeat_s
            contenders.join(rows, final=final)
            contenders.afford(rows, self.left_s, self.paces)
        measured = {name: row["verdict"] == Fate.CONTENDER for name, row in rows.items()}
        going = {row["target"] for name, row in rows.items() if measured[name]}
        decided = {row["target"] for row in rows.values()} - going
        ended = "no setting needs more repeats" if rows and not going else ""
        print(describe_stage(self.campaign.config, rows, repeat, ended or last), flush=True)
        kept = {
            "basis": basis,
            "settings": rows,
            "measured": measured,
            "targets": sorted({block.target for block in self.campaign.blocks.values()} - decided),
            "ended": ended,
        }
        self.decided.append(kept)
        if not last:
            replace_text(file, json.dumps(kept, indent=1) + "\n")
        return ended or last

    def _basis(self) -> str:
        """Return a digest of what a decision rests on: the question, and records."""
        asked = Asked(self.campaign)
        heads = {name: head_of(asked.records.link(f"blocks/{name}")) for name in self.blocks}
        written = {name: head.sha256 for name, head in heads.items() if head}
        return digest_of({"settings": asked.settings, "records": written})


def begun_of(rows: contenders.Rows) -> contenders.Rows:
    """Return settings without those that wait: nobody knows whether they are ever measured."""
    return {name: row for name, row in rows.items() if row["verdict"] != Fate.WAITING}


def describe_stage(config: Config, rows: contenders.Rows, repeats: int, ended: str = "") -> str:
    """Return a table of all settings after so many repeats, and a line for each target.

    `ended` says why no repeat follows, if none does.
    """
    every, rows = rows, begun_of(rows)
    cells, several = [], len({row["suite"] for row in rows.values()}) > 1
    numbers = ("predicted", "speedup")
    # N-grams that are never measured are many.
    never = Fate.SURPASSED, Fate.IDLE
    for row in (row for row in rows.values() if row["verdict"] not in never or "speedup" in row):
        target = config.label(row["target"])
        place = ", ".join(filter(None, [target, row["suite"] * several, row["level"]]))
        shown = {"target": place, "setting": row["label"], "number": row.get(numbers[repeats > 0])}
        cells.append({**row, **shown, **{name: _number(row, name) for name in numbers}})
    heads = ["target", "setting", *(name for name in numbers if any(row[name] for row in cells))]
    heads.append("verdict")
    both = [row for row in rows.values() if {"predicted", "speedup"} <= row.keys()]
    off = [math.log(row["predicted"] / row["speedup"]) for row in both]
    inside = [row["predicted_low"] <= row["speedup"] <= row["predicted_high"] for row in both]
    values = {
        "predictions": {"settings": len(both), "inside": sum(inside)},
        "bias": math.expm1(sum(off) / max(len(off), 1)),
        "table": in_columns([heads, *([str(row[head]) for head in heads] for row in cells)]),
        "rows": cells,
        "never": len(rows) - len(cells),
        "repeats": repeats,
        "known": numbers[repeats > 0],
        "ended": ended,
        "contender": Fate.CONTENDER,
        "waiting": len(every) - len(rows),
    }
    return fill_template(ROOT / "paper/stages.txt.j2", **values)


def _number(row: Mapping[str, Any], name: str) -> str:
    value, low, high = (row.get(f"{name}{end}") for end in ("", "_low", "_high"))
    return "" if pd.isna(value) else measured(value, low, high, wide=TOO_FEW_PROMPTS)
