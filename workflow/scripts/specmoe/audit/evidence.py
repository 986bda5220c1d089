"""The form of a check, and what it checks a run against: baseline, repeats, times, sizes, ties."""

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import pandas as pd

from specmoe.audit.finding import Finding, Level, Run
from specmoe.audit.reading import Reading, ReadingKey
from specmoe.audit.repetition import most_of_one
from specmoe.config.block import MEASURED_BY, NO_DRAFT
from specmoe.config.measurement import AuditSettings
from specmoe.models.card import Size
from specmoe.plan.machine import bandwidth_of
from specmoe.runs.schema import undisturbed


@dataclass(frozen=True)
class Bandwidth:
    """How fast a machine's memory can be read, in bytes a second."""

    bytes_per_second: float
    stated: bool  # by the maker or the config, as a peak that nothing exceeds; else probed

    @classmethod
    def of(cls, machine: Mapping[str, Any]) -> "Bandwidth | None":
        """Return that of a description of a machine; None if it is not known."""
        rate = bandwidth_of(machine)
        probed = str(machine["memory_bandwidth_source"]).startswith("probe")
        return None if rate is None else cls(rate, stated=not probed)

    def most(self, settings: AuditSettings) -> float:
        """Return the highest rate that a true run can reach."""
        tolerance = 0.0 if self.stated else settings.bandwidth_tolerance
        return self.bytes_per_second * (1 + tolerance)


class Gap(NamedTuple):
    """The target's gap, in nats, at the first token that differs from the baseline's.

    A fixed number of nats would tell a tie for one file on one machine only. On two cores of an AMD
    EPYC, batches move a gap of the synthetic campaign's targets by up to 0.31 nats at four bits and
    0.13 at eight (tests/benchmarks/README.md). So each target is asked at its own divergences.
    """

    position: int
    gap_nats: float  # how far the run's token is behind the baseline's
    # How far batches move such gaps of this target, with the same options, here or elsewhere.
    moved_nats: float
    closed_by: int | None  # the narrowest batches in which the target itself takes it


def gaps_of(judged: Mapping[str, Any]) -> dict[str, Gap]:
    """Return the gap of each run of a target that left its baseline.

    `judged` is the answer of `divergence.judge_all`. What was answered before batches were asked
    about decides nothing and is left out.
    """
    asked = [one for one in judged["divergences"] if "gap_nats_by_width" in one]
    moved: dict[str, float] = {}
    for one in asked:
        gaps = one["gap_nats_by_width"].values()
        widest = max((abs(gap - one["gap_nats"]) for gap in gaps), default=0.0)
        moved[_setting(one)] = max(widest, moved.get(_setting(one), 0.0))
    found = {}
    for one in asked:
        closing = [int(width) for width, gap in one["gap_nats_by_width"].items() if gap <= 0]
        closed_by = min(closing, default=None)
        gap = Gap(one["position"], one["gap_nats"], moved[_setting(one)], closed_by)
        found[one["run"]] = gap
    return found


def _setting(one: Mapping[str, Any]) -> str:
    """Return the options of the target, of which all divergences are."""
    return str(one.get("engine_options", ""))


class Answers(NamedTuple):
    """How many prompts a target answered with the same settings, and by which texts.

    `commonest` is the least share of a text that its commonest token has.
    """

    prompts: int
    texts: int
    commonest: float


@dataclass(frozen=True)
class Evidence:
    """What the runs of a campaign are checked against."""

    runs: Mapping[str, Run]
    repeats: Mapping[tuple[Any, ...], list[Run]]  # those with tokens, in order
    answers: Mapping[tuple[Any, ...], Answers]
    loads: Mapping[str, int]  # tokens of the measured runs of each load
    divergences: Mapping[str, Gap]
    times: Mapping[tuple[str, ...], Mapping[str, float]]
    sizes: Mapping[str, Size]
    bandwidth: Bandwidth | None
    settings: AuditSettings
    readings: Mapping[ReadingKey, list[Reading]]

    def times_of(self, run: Run) -> Mapping[str, float]:
        """Return the milliseconds a token of each model that was timed as the run was."""
        return self.times.get(run.timed_with, {})

    def baseline(self, run: Run) -> Run | None:
        """Return a run's baseline, None without one."""
        return None if run.baseline is None else self.runs.get(run.baseline)

    def repeats_of(self, run: Run) -> list[Run]:
        """Return the repeats of a run whose tokens are known, itself among them."""
        return self.repeats.get(_repeated(run), [])

    def answers_of(self, run: Run) -> Answers | None:
        """Return what the target answered to all prompts with a run's settings."""
        return self.answers.get(_asked(run))


class Check(NamedTuple):
    """A check: its name, its level, what a run that fails it does, the columns it uses.

    A check of `level` implausible says what no true run should do, the others what none can. One
    `of_time` fails where a run took less time than it needs.
    """

    words: str
    level: Level
    meaning: str
    columns: frozenset[str]
    of_time: bool
    find: Callable[[Run, Evidence], Finding]


def check(
    words: str, level: Level, meaning: str, columns: str, *, of_time: bool = False
) -> Callable[[Callable[[Run, Evidence], Finding]], Check]:
    """Make a check of a function; `columns` are separated by spaces."""
    return lambda find: Check(words, level, meaning, frozenset(columns.split()), of_time, find)


def gather_evidence(
    runs: pd.DataFrame,
    sizes: Mapping[str, Size],
    bandwidth: Bandwidth | None,
    settings: AuditSettings,
    divergences: Mapping[str, Gap] | None = None,
    readings: Mapping[ReadingKey, list[Reading]] | None = None,
) -> Evidence:
    """Return what the runs of a campaign are checked against.

    `runs` is `schema.read_runs`'s frame, `sizes` are those of its models, `bandwidth` is that of
    the machine's memory. `divergences` holds, by run, the target's gap at the token where the run
    left its baseline, `readings` what drafts would have proposed in place of the targets' own
    tokens.
    """
    listed = [Run.of(row) for row in runs.to_dict("records")]
    repeats = defaultdict(list)
    for run in sorted(listed, key=lambda run: run.repeat):
        if run.tokens is not None:
            repeats[_repeated(run)].append(run)
    loads: Counter[str] = Counter()
    for run in listed:
        if run.load is not None:
            loads[run.load] += run.generated or 0
    return Evidence(
        {run.run: run for run in listed},
        repeats,
        _answers(listed),
        loads,
        divergences or {},
        single_token_ms(runs),
        sizes,
        bandwidth,
        settings,
        readings or {},
    )


def single_token_ms(runs: pd.DataFrame) -> dict[tuple[str, ...], dict[str, float]]:
    """Return each model's time for a token in its fastest run alone, by `Run.timed_with`.

    A mean would be no bound: other work on the machine slows runs, so a run can be faster than the
    mean. Runs among several at once share their passes and time none; those of a load of a single
    client count for their target like any other. Runs that the machine disturbed count for nothing.
    """
    plain = undisturbed(runs[(runs["draft"] == NO_DRAFT) & (runs["concurrency"] == 1)])
    found: dict[tuple[str, ...], dict[str, float]] = {}
    for keys, members in plain.groupby(["host", *MEASURED_BY, "engine_options"]):
        times = (1000 / members["tokens_per_second"]).groupby(members["target"]).min().dropna()
        own = {str(model): float(ms) for model, ms in times.items()}
        found[*map(str, keys)] = own
    return found


def _repeated(run: Run) -> tuple[Any, ...]:
    asked = run.imposed_acceptance, run.temperature, run.seed
    # Machines round differently, so a repeat on another one may write other tokens.
    return run.host, run.suite, run.target, run.level, run.draft, run.gamma, run.prompt, *asked


def _asked(run: Run) -> tuple[Any, ...]:
    way = run.protocol, run.engine, run.engine_options, run.concurrency
    return way, run.target, run.draft, run.gamma, run.n_predict, run.temperature


def _answers(runs: list[Run]) -> dict[tuple[Any, ...], Answers]:
    prompts, texts = defaultdict(set), defaultdict(set)
    for run in runs:
        if run.tokens and run.imposed_acceptance is None:
            prompts[_asked(run)].add(run.prompt)
            texts[_asked(run)].add(run.tokens)
    return {
        asked: Answers(
            len(prompts[asked]),
            len(its),
            min(most_of_one(text) / len(text) for text in its),
        )
        for asked, its in texts.items()
    }
