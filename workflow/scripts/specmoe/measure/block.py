"""The measurement of a block: each setting beside the baseline, on the same prompts.

Speculation flags, and options that are an arm's own, are the only difference of a run and its
baseline. At most two servers are live, the baseline and one setting, which ends before the next one
starts: whoever drafts runs one server, and each further copy of a model in memory costs where a
kernel watches memory. The two take turns, so that they are seconds apart. Where memory does not
hold both, they follow one another.
"""

import logging
from collections.abc import Iterator, Mapping
from itertools import chain
from statistics import fmean
from typing import Any

from specmoe.campaign.campaign import LoadedCampaign
from specmoe.config.block import Arm, Block, Protocol, Schedule
from specmoe.engine.job import Job, log_of_job
from specmoe.engine.responses import tokens_per_second
from specmoe.hardware.disturbance import Budget, busiest, snapshot
from specmoe.hardware.machine import machine_id, memory_needed
from specmoe.measure import study_commands
from specmoe.measure.alone import exclusive_job
from specmoe.measure.arm import LiveArm, RunRecord, Turn, serve_alone
from specmoe.measure.load import serve_at_once
from specmoe.text import counted

_logger = logging.getLogger(__name__)


def measure_block(campaign: LoadedCampaign, block: Block) -> dict[str, Any]:
    """Measure a block by its protocol, with no other measurement, and return its record.

    Its log receives a line for every run, and each arm's server has a log beside it.
    """
    log = campaign.places.log_of(block.block)
    given = block.block, block.target, log.with_suffix(".server.log"), block.draft_models
    with log_of_job(log), exclusive_job(campaign, *given) as job:
        _logger.debug("%s: %s begin", block.block, counted(block.runs, "run"))
        before = snapshot()
        record = measure_arms(block, job)
        return record | {"others": busiest(before, snapshot())}


def summary(block: Block, record: Mapping[str, Any]) -> str:
    """Return a measured block in a line: the baseline's rate, and the fastest setting's ratio."""
    rates: dict[str, list[float]] = {}
    for run in record["runs"]:
        if block.protocol == Protocol.STUDY:
            rate = run["reading"]["tokens_per_second"]
        else:
            rate = run.get("load_tokens_per_second", tokens_per_second(run["answer"]))
        rates.setdefault(run["arm"], []).append(rate or 0.0)
    means = {arm: fmean(measured) for arm, measured in rates.items()}
    alone = means.pop(Arm().name, None)
    arm, best = max(means.items(), key=lambda item: item[1], default=("", 0.0))
    again = sum(bool(run.get("reruns")) for run in record["runs"])
    failures = sum(run["decode_failures"] for run in record["runs"])
    others = ", ".join(f"{name} {share:.0%}" for name, share in record.get("others", []))
    parts = [
        f"baseline {alone:.1f} tok/s" if alone else "",
        f"fastest {arm}, {f'{best / alone:.2f}×' if alone else f'{best:.1f} tok/s'}" if arm else "",
        f"{counted(again, 'run')} repeated because of other load" if again else "",
        counted(failures, "failed decode") if failures else "",
        f"beside it {others} of the CPUs" if others else "",
    ]
    return "; ".join(filter(None, parts))


def measure_arms(block: Block, job: Job) -> dict[str, Any]:
    """Do all runs of a block by its protocol; return its record: its arms, and raw responses.

    Raises MeasurementError, with the end of the engine's log, if a run fails.
    """
    if block.protocol == Protocol.STUDY:
        return study_commands.measure_by_study(block, job)
    schedule = Schedule.INTERLEAVED if _holds_two(block, job) else Schedule.SEQUENTIAL
    serve = serve_alone if block.concurrency is None else serve_at_once
    live: dict[Arm, LiveArm] = {}
    ended: list[LiveArm] = []
    runs: list[RunRecord] = []
    # A tenth of two runs is one of five blocks' runs: which blocks, their names draw.
    budget = Budget(block.reruns, block.runs, int.from_bytes(block.drawn("reruns")[:8]) / 2**64)
    try:
        for turn in turns_of(block, together=schedule == Schedule.INTERLEAVED):
            for arm in live.keys() - turn.live:
                ended.append(live.pop(arm))
                ended[-1].stop()
            for arm in turn.live:
                if arm not in live:
                    live[arm] = LiveArm(block, arm, job, turn.group)
                    live[arm].begin()
                live[arm].groups.add(turn.group)
            runs += live[turn.arm].measure(turn, len(runs), serve, budget)
        for live_arm in live.values():
            live_arm.stop()
    finally:
        for live_arm in [*ended, *live.values()]:
            live_arm.server.stop()  # after an error its log is not read
    return {
        "schedule": schedule,
        "machine": machine_id(),
        "groups": [[arm.name for arm in group] for group in block.groups],
        "arms": [live_arm.record() for live_arm in (*ended, *live.values())],
        "runs": runs,
    }


def _holds_two(block: Block, job: Job) -> bool:
    """Return whether memory holds the baseline and any setting at once."""
    files = {**job.drafts, block.target: job.target}
    sizes = {model: files[model].stat().st_size for model in block.models}
    needed = (memory_needed(block, group, sizes, job.backend) for group in block.groups)
    return max(needed) <= job.usable_memory


def turns_of(block: Block, *, together: bool) -> Iterator[Turn]:
    """Yield the turns of a block in order: setting by setting, prompts and arms in drawn orders.

    Arms that are live together take turns for each prompt, or chat, so that a run and its baseline
    are seconds apart. Others follow one another.
    """
    for number, arms in enumerate(block.groups):
        sent = sorted(block.chats, key=lambda chat: block.drawn(f"g{number}/{chat[0].chat}"))
        sent = sent if block.concurrency is None else [tuple(chain.from_iterable(sent))]
        if together:
            # The one that speculates starts first: it needs most.
            live = tuple(sorted(arms, key=lambda arm: not arm.speculates))
            for place, what in enumerate(sent):
                order = sorted(arms, key=lambda arm: block.drawn(f"g{number}/{place}/{arm.name}"))
                yield from (Turn(number, arm, what, live) for arm in order)
        else:
            for arm in sorted(arms, key=lambda arm: block.drawn(f"g{number}/{arm.name}")):
                yield from (Turn(number, arm, what, (arm,)) for what in sent)
