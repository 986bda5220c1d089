"""The measurement of a block: its arms on the same prompts, in groups that memory holds at once.

Speculation flags are the only difference of a run and its baseline. In the paired protocol all
servers of a group are live and take turns, so that the two are seconds apart. Where memory does not
hold the baseline and one setting, servers follow one another.
"""

import logging
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

from specmoe.config.block import Arm, Block, PromptSource, Protocol, Schedule, shuffle_key
from specmoe.engine.disturbance import Budget
from specmoe.engine.identity import Workplace
from specmoe.engine.job import Job, exclusive_job, log_of_job
from specmoe.engine.machine import groups_in_memory, machine_id
from specmoe.engine.others import busiest, describe_others, snapshot
from specmoe.engine.responses import tokens_per_second
from specmoe.files import info_beside
from specmoe.measure import study_commands
from specmoe.measure.arm import LiveArm, Run, prompt_ids, serve_alone
from specmoe.measure.load import serve_at_once
from specmoe.models.info import load_info, require_template
from specmoe.text import counted

_logger = logging.getLogger(__name__)


def measure_block(
    block: Block, workplace: Workplace, target: Path, drafts: Mapping[str, Path], log: Path
) -> dict[str, Any]:
    """Measure a block by its protocol, with no other measurement, and return its record.

    `target` and `drafts`, by model, are what its arms load; `log` receives a line for every run,
    and each arm's server has a log beside it.
    """
    if not block.arms:  # all are beaten, see `analysis.contenders`
        return _record(Schedule.INTERLEAVED, [], [])
    if block.sends_chats:
        require_template(load_info(info_beside(target)), target, block.suite)
    server_log = log.with_suffix(".server.log")
    given = workplace, block.environment, target, server_log, drafts
    with log_of_job(log), exclusive_job(*given) as job:
        runs = counted(block.runs, "run")
        _logger.info("%s: %s begin, with a line for each in %s", block.block, runs, log)
        before = snapshot()
        record = measure(block, job)
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
    means = {arm: fmean(own) for arm, own in rates.items()}
    alone = means.pop(Arm().name, None)
    arm, best = max(means.items(), key=lambda one: one[1], default=("", 0.0))
    again = sum(bool(run.get("reruns")) for run in record["runs"])
    failures = sum(run["decode_failures"] for run in record["runs"])
    parts = [
        f"baseline {alone:.1f} tok/s" if alone else "",
        f"fastest {arm}, {f'{best / alone:.2f}×' if alone else f'{best:.1f} tok/s'}" if arm else "",
        f"{counted(again, 'run')} repeated because of other load" if again else "",
        counted(failures, "failed decode") if failures else "",
        describe_others(record.get("others", [])),
    ]
    return "; ".join(filter(None, parts))


def measure(block: Block, job: Job) -> dict[str, Any]:
    """Do all runs of a block by its protocol; return its record: its arms, and raw responses.

    Raises MeasurementError, with the end of the engine's log, if a run fails.
    """
    if block.protocol == Protocol.STUDY:
        return study_commands.measure(block, job)
    schedule, arms_of_groups = arrange(block, job)
    groups: list[list[LiveArm]] = []
    runs: list[Run] = []
    budget = Budget(block.reruns, block.runs)
    for arms in arms_of_groups:
        turns = turns_of(block, arms, interleaved=schedule != Schedule.SEQUENTIAL)
        live, own = _measure_group(turns, block, job, len(groups), len(runs), budget)
        groups.append([live[arm] for arm in arms])
        runs += own
    return _record(schedule, groups, runs)


def _record(
    schedule: Schedule, groups: Sequence[Sequence[LiveArm]], runs: list[Run]
) -> dict[str, Any]:
    return {
        "schedule": schedule,
        "machine": machine_id(),
        "groups": [[one.arm.name for one in group] for group in groups],
        "arms": [one.record() for group in groups for one in group],
        "runs": runs,
    }


def arrange(block: Block, job: Job) -> tuple[Schedule, list[list[Arm]]]:
    """Return the schedule of a block's arms, and their groups, as memory allows."""
    if block.schedule != Schedule.AUTO:
        return block.schedule, [[*block.arms]]
    files = {**job.drafts, block.target: job.target}
    sizes = {model: files[model].stat().st_size for model in block.models}
    groups = groups_in_memory(block, block.arms, sizes, job.backend, job.usable_memory)
    if not groups:
        return Schedule.SEQUENTIAL, [[*block.arms]]
    return Schedule.GROUPED if groups[1:] else Schedule.INTERLEAVED, groups


class Turn(NamedTuple):
    """A run of a block; or a load, see `measure.load`, which goes once through the prompts."""

    arm: Arm
    sources: tuple[PromptSource, ...]  # one; those of a load in the order in which they are sent
    iteration: int  # through the prompts
    live: tuple[Arm, ...]  # whose processes run then


def turns_of(block: Block, arms: Sequence[Arm], *, interleaved: bool) -> list[Turn]:
    """Return the turns of some arms of a block in order.

    In each iteration the prompts come in random order. Interleaved arms take turns for each prompt,
    in random order, so that a run and its baseline are seconds apart. Sequential arms follow one
    another, reversed in every second repeat, so that a steady drift favours none.
    """

    def drawn(where: str) -> bytes:
        return shuffle_key(block.order_seed, f"{block.block}/{where}")

    sent: list[tuple[int, str, tuple[PromptSource, ...]]] = []
    for number in range(block.prompt_iterations):
        place = f"p{number}"
        sources = sorted(block.prompts, key=lambda one: drawn(f"{place}/{one.prompt}"))
        if block.concurrency is not None:
            sent.append((number, place, tuple(sources)))
        else:
            sent += [(number, f"{place}/{source.prompt}", (source,)) for source in sources]
    if not interleaved:
        in_order = arms if block.repeat % 2 == 0 else arms[::-1]
        return [Turn(arm, what, number, (arm,)) for arm in in_order for number, _, what in sent]
    # Those that speculate start first: they need most.
    live = tuple(sorted(arms, key=lambda arm: not arm.speculates))
    return [
        Turn(arm, what, number, live)
        for number, where, what in sent
        for arm in sorted(arms, key=lambda one: drawn(f"{where}/{one.name}"))
    ]


def _measure_group(
    turns: Sequence[Turn], block: Block, job: Job, group: int, first: int, budget: Budget
) -> tuple[dict[Arm, LiveArm], list[Run]]:
    """Return the arms that take some turns, and their runs; `first` is the place of the first."""
    live: dict[Arm, LiveArm] = {}
    runs: list[Run] = []
    serve = serve_alone if block.concurrency is None else serve_at_once
    for arms in dict.fromkeys(turn.live for turn in turns):
        with ExitStack() as servers:
            for arm in arms:
                live[arm] = servers.enter_context(LiveArm(block, arm, job, group))
            server = live[arms[0]].server
            ids = {one.prompt: prompt_ids(server, one, block, job.root) for one in block.prompts}
            for arm in arms:
                live[arm].prompts = ids
                live[arm].warm_up()
            for turn in (turn for turn in turns if turn.live == arms):
                order = first + len(runs)
                runs += live[turn.arm].measure(turn.sources, turn.iteration, order, serve, budget)
    for one in live.values():
        one.add_traces([run for run in runs if run["arm"] == one.arm.name])
    return live, runs
