"""Runs as the audit reads them, the evidence they are checked against, and findings.

The evidence is all of a campaign that a check may look at: baselines, repeats, loads, times, sizes,
ties. A finding is a value, its bound, and how far apart they are.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Set
from dataclasses import InitVar, dataclass, field
from enum import StrEnum
from math import inf, isnan, nan
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import pandas as pd
import pyarrow

from specmoe.audit.draft_rounds import DraftScores, ScoresKey
from specmoe.audit.limits import LIMITS, Limits
from specmoe.config.block import MEASURED_BY, NO_DRAFT, Protocol, Stop
from specmoe.config.engines import COUNTS_SINCE
from specmoe.config.methods import METHODS, Method
from specmoe.config.schema import AuditSettings
from specmoe.hardware.description import bandwidth_of
from specmoe.models.info import Size
from specmoe.runs.other_tables import undisturbed_passes
from specmoe.runs.schema import Row, undisturbed

if TYPE_CHECKING:
    # Its attributes have the types that the schema declares.
    class _Columns(Row):
        def __new__(cls, **columns: Any) -> Self: ...

else:
    _Columns = SimpleNamespace


class Run(_Columns):
    """A row of runs: its columns are its attributes; null is None, a list a tuple."""

    @classmethod
    def of(cls, row: dict[str, Any]) -> Self:
        """Return the run of a row of `schema.read_runs`'s frame, whose values are Python's.

        llama-speculative does not print its rounds. They follow from its tokens: the prompt gives
        the first, and each round gives one besides those it accepts.
        """
        lists = {name: tuple(value) for name, value in row.items() if isinstance(value, list)}
        run = cls(**row | lists)
        of_study = run.protocol == Protocol.STUDY and run.speculative
        if of_study and None not in (run.generated, run.accepted) and run.rounds is None:
            return run.changed(rounds=run.numbers.generated - 1 - run.numbers.accepted)
        return run

    def changed(self, **columns: Any) -> Self:
        """Return the run with other values of some columns."""
        return type(self)(**vars(self) | columns)

    @property
    def numbers(self) -> Any:
        """Its columns with NaN for null: what follows from an unknown number is unknown too."""
        columns = vars(self).items()
        return SimpleNamespace(**{name: nan if value is None else value for name, value in columns})

    @property
    def speculative(self) -> bool:
        """Whether tokens were drafted for it."""
        return self.draft != NO_DRAFT

    @property
    def load(self) -> tuple[str, ...]:
        """What the runs of a load share, if it is of one: its arm's id and the iteration."""
        return tuple(self.run.rsplit("/", 2)[::2])

    @property
    def by_model(self) -> bool:
        """Whether a whole second model drafts, by itself."""
        return self.method == METHODS[Method.DRAFT].engine

    @property
    def longest(self) -> int:
        """The most tokens that are drafted in a round, by the method or its partner."""
        return max(self.gamma, self.partner_gamma or 0)

    @property
    def cut(self) -> int:
        """The most tokens that may have been accepted behind the end of its text."""
        return self.longest if self.stopped_by == Stop.EOS else 0

    @property
    def timed_tokens(self) -> int | None:
        """The tokens that `decode_ms` spans: llama-server times the first with the prompt."""
        first = self.protocol == Protocol.PAIRED
        return None if self.generated is None else self.generated - first

    @property
    def repeated(self) -> tuple[Any, ...]:
        """The conditions that its repeats share."""
        request = self.prompt, self.forced_acceptance, self.temperature, self.seed
        # Machines round differently, so a repeat on another one may write other tokens.
        return self.machine, self.suite, self.target, self.level, self.draft, self.gamma, *request

    @property
    def setting(self) -> tuple[Any, ...]:
        """The conditions that the runs of its setting share, whatever their prompts."""
        server = self.protocol, self.engine, self.engine_options, self.concurrency
        return server, self.target, self.draft, self.gamma, self.n_predict, self.temperature

    @property
    def passes_after_prompt(self) -> Any:
        """The target's forward passes after the prompt's: each gives one token; NaN if unknown.

        The prompt's pass gives the first token, and a rejected replay gives none. Where a text ends
        within a round there may be more, see `cut`.
        """
        accepted = self.numbers.accepted if self.speculative else 0
        due = self.numbers.generated - 1 - accepted + (self.replays_rejected or 0)
        return max(due, (self.rounds or 0) + (self.replays or 0)) if self.cut else due


def known_bandwidth(
    machine: Mapping[str, Any], passes: pd.DataFrame, sizes: Mapping[str, Size]
) -> tuple[float | None, dict[str, float]]:
    """Return the peak of the memory that is stated, and what was read without one, by machine.

    In bytes a second. A maker or the configuration states a peak, which nothing exceeds. What was
    read is the most of probes and timed passes; a cache gives more than memory does.
    """
    if not str(machine["memory_bandwidth_source"]).startswith("probe"):
        return bandwidth_of(machine), {}
    machines = machine.get("machines", [machine])
    rates = {str(single["id"]): bandwidth_of(single) or 0.0 for single in machines}
    for timed in undisturbed_passes(passes).to_dict("records"):
        size, name = sizes.get(timed["model"]), timed["machine"]
        if name in rates and size and size.file_bytes > LIMITS.cache_bytes:
            rate = 1000 * size.pass_bytes(timed["n_tokens"]) / timed["ms"]
            rates[name] = max(rates[name], rate)
    return None, rates


class Gap(NamedTuple):
    """The target's gap, in nats, at the first token that differs from the baseline's.

    How wide a tie is depends on the file and the machine: batches move gaps of synthetic targets by
    up to 0.31 nats at four bits and 0.13 at eight (tests/benchmarks/README.md). So each is measured
    at its own divergences.
    """

    position: int
    gap_nats: float  # how far the run's token is behind the baseline's
    moved_nats: float  # the farthest that batches move such gaps of this target, with its options
    places: int  # of such gaps


def gaps_of(judged: Mapping[str, Any]) -> dict[str, Gap]:
    """Return the gap of each run that left its baseline, from `divergence.judge_all`."""
    moves: dict[str, dict[tuple[str, int], float]] = defaultdict(dict)  # by options, and place
    rows = [(row, moves[row.get("engine_options", "")]) for row in judged["divergences"]]
    for row, own in rows:
        place, gaps = (row["prompt"], row["position"]), row["gap_nats_by_batch"].values()
        own[place] = max([own.get(place, 0.0), *(abs(gap - row["gap_nats"]) for gap in gaps)])
    return {
        row["run"]: Gap(row["position"], row["gap_nats"], max(own.values()), len(own))
        for row, own in rows
    }


@dataclass
class Evidence:
    """The evidence that the runs of a campaign are checked against.

    Made from them: runs (by id), times, contexts and unsteady (see `_time_models`), alone (by
    machine and run, the bytes a second that runs without speculation read), repeats (digests of
    their prompts and texts in order, by `Run.repeated`), outputs (prompts and texts, by
    `Run.setting`), loads (the tokens of the measured runs of each), drafting (sums of counters, by
    engine, target and what drafts).
    """

    rows: InitVar[pd.DataFrame]  # `schema.read_runs`'s frame
    sizes: Mapping[str, Size]  # of models
    bandwidth: float | None  # the stated peak, see `known_bandwidth`
    settings: AuditSettings
    # By run: the target's gap at the token where the run left its baseline.
    divergences: Mapping[str, Gap] = field(default_factory=dict)
    # What draft models would have proposed in place of the targets' own tokens.
    draft_scores: Mapping[ScoresKey, DraftScores] = field(default_factory=dict)
    limits: Limits = LIMITS
    # The targets whose state the engine restores after a rejection.
    restored: Set[str] = frozenset()
    rates: Mapping[str, float] = field(default_factory=dict)  # what was read

    def __post_init__(self, rows: pd.DataFrame) -> None:
        """Sort the runs by what checks compare."""
        listed = [Run.of(row) for row in pyarrow.Table.from_pandas(rows).to_pylist()]
        self.runs = {run.run: run for run in listed}
        self._time_models(rows)
        self.alone: dict[tuple[str, str], float] = {}
        self.repeats: dict[Any, list[tuple[str | None, tuple[int, ...]]]] = defaultdict(list)
        self.outputs: dict[tuple[Any, ...], set[tuple[str, tuple[int, ...]]]] = defaultdict(set)
        self.loads: Counter[tuple[str, ...]] = Counter()
        self.drafting: dict[tuple[str, ...], Counter[str]] = defaultdict(Counter)
        for run in sorted(listed, key=lambda run: run.repeat):
            if run.tokens is not None:
                self.repeats[run.repeated].append((run.prompt_sha256, run.tokens))
            if run.tokens and run.forced_acceptance is None:
                self.outputs[run.setting].add((run.prompt, run.tokens))
            self.loads[run.load] += run.generated or 0
            counts = {name: getattr(run, name) for name in ("rounds", "drafted", "accepted")}
            if run.forced_acceptance is None and None not in counts.values():
                self.drafting[run.engine, run.target, run.draft].update(counts)
            size = None if run.speculative or run.disturbed_reason else self.sizes.get(run.target)
            tokens, ms = run.timed_tokens, run.decode_ms
            if tokens and ms and size and size.file_bytes > self.limits.cache_bytes:
                self.alone[run.machine, run.run] = 1000 * size.pass_bytes(1) * tokens / ms

    def _time_models(self, runs: pd.DataFrame) -> None:
        """Time a token of each model, by machine, protocol, engine, options and model.

        The times are milliseconds in its fastest baseline run. A mean would be no bound: other work
        slows runs, so a run can be faster than the mean. Of loads, only those of a single client
        time a token. Disturbed runs do not count. Contexts are the fewest tokens before a token, on
        average over a baseline run. Unsteady are models whose baselines differ, or are few.
        """
        runs = undisturbed(runs).dropna(subset="tokens_per_second")
        baselines = runs[(runs["draft"] == NO_DRAFT) & (runs["concurrency"] == 1)]
        baselines = baselines.assign(context=baselines["n_prompt"] + baselines["generated"] / 2)
        timed = baselines.groupby(["machine", *MEASURED_BY, "engine_options", "target"])
        rates = timed["tokens_per_second"].agg(["min", "max", "count"])
        self.times: dict[Any, float] = (1000 / rates["max"]).to_dict()
        self.contexts: dict[Any, float] = timed["context"].min().to_dict()
        close = rates["min"] >= rates["max"] * (1 - self.limits.steady_within)
        self.unsteady = {*rates.index[~close | (rates["count"] < self.limits.steady_runs)]}

    def token_ms(self, run: Run, model: str) -> float:
        """Return the milliseconds a token of a model that was timed as the run was, or NaN.

        A model reads more with every token before it, so one that was timed behind longer prompts
        alone may be faster.
        """
        timed_as = self._timed_as(run, model)
        context = run.numbers.n_prompt + run.numbers.generated / 2
        if self.contexts.get(timed_as, nan) > context + self.limits.longer_context:
            return nan
        return self.times.get(timed_as, nan)

    def steady(self, run: Run) -> bool:
        """Return whether the machine was steady while the run's models were timed as it was."""
        draft = run.draft_model or ""
        models = run.target, draft, self.settings.draft_proxies.get(draft, "")
        return not any(self._timed_as(run, model) in self.unsteady for model in models)

    def _timed_as(self, run: Run, model: str) -> tuple[str, ...]:
        return run.machine, run.protocol, run.engine, run.engine_options, model

    def most_read(self, run: Run) -> float | None:
        """Return the highest rate at which a run should read memory, in bytes a second, if known.

        It is the stated peak. Without one it is the highest of all probes, timed passes and other
        runs without speculation, and a tenth more.
        """
        if self.bandwidth is not None or run.machine not in self.rates:
            return self.bandwidth
        itself = run.machine, run.run
        others = [rate for key, rate in self.alone.items() if key[0] == itself[0] and key != itself]
        return max([self.rates[run.machine], *others]) * (1 + self.limits.bandwidth_tolerance)

    def miscounts(self, run: Run) -> bool:
        """Return whether a run's counters are those of a server that is known to count wrongly."""
        by_server = run.speculative and run.protocol == Protocol.PAIRED
        if not by_server or run.target not in self.restored:
            return False
        build = re.search(r"-b(\d+)$", run.engine_commit)  # see `engine.build.make_engine`
        return build is not None and int(build[1]) < COUNTS_SINCE

    def baseline(self, run: Run) -> Run | None:
        """Return a run's baseline, None without one of its options: others round otherwise."""
        baseline = self.runs.get(run.baseline or "")
        return baseline if baseline and baseline.engine_options == run.engine_options else None


class CheckVerdict(StrEnum):
    """The outcome of a check of a run."""

    PASS = "pass"  # noqa: S105 (no password)
    FAIL = "fail"
    NOT_APPLICABLE = "not applicable"
    NOT_JUDGED = "not judged"  # it applies, and what decides it was not measured


class Level(StrEnum):
    """The level of a check."""

    # Against arithmetic, the engine's own log, the target's own probabilities, a peak that is
    # stated, or the speeds of a machine that proved steady: no valid run fails it.
    IMPOSSIBLE = "impossible"
    SUSPICIOUS = "suspicious"  # none should: it rests on what was seen of this machine or such runs


@dataclass(frozen=True)
class Finding:
    """The result of a check of a run; `ratio` is the measured value over its bound.

    Without a ratio, which is NaN, the check does not apply, and `why` is the reason.
    """

    why: str
    measured: float = nan
    bound: float = nan
    ratio: float = nan
    judged: bool = True

    @property
    def verdict(self) -> CheckVerdict:
        """Whether the bound holds."""
        if not self.judged:
            return CheckVerdict.NOT_JUDGED
        if isnan(self.ratio):
            return CheckVerdict.NOT_APPLICABLE
        return CheckVerdict.FAIL if self.ratio > 1 else CheckVerdict.PASS


def at_most(measured: float, bound: float, why: str) -> Finding:
    """Check measured <= bound."""
    return Finding(why, measured, bound, _over(measured, bound))


def at_least(measured: float, bound: float, why: str) -> Finding:
    """Check measured >= bound."""
    return Finding(why, measured, bound, _over(bound, measured))


def equal(measured: float, expected: float, why: str, tolerance: float = 0.0) -> Finding:
    """Check measured == expected, or nearly; the ratio is that of the larger to the smaller."""
    low, high = sorted([measured, expected])
    ratio = 1.0 if low == high else _over(high, low)
    return Finding(why, measured, expected, ratio / (1 + tolerance))


def combined(parts: Iterable[Finding], when_good: str = "", unknown: str = "") -> Finding:
    """Return the worst of a check's findings, with the sentences of all that fail.

    If none fails, the sentence is `when_good`, or all of theirs; `unknown` if no ratio is known.
    """
    listed = [part for part in parts if not isnan(part.ratio)]
    if not listed:
        return Finding(unknown)
    worst = max(listed, key=lambda part: part.ratio)
    failed = [part.why for part in listed if part.verdict == CheckVerdict.FAIL]
    why = "; ".join(failed) or when_good or "; ".join(part.why for part in listed)
    return Finding(why, worst.measured, worst.bound, worst.ratio)


def _over(value: float, bound: float) -> float:
    if isnan(value + bound):
        return nan
    if value <= 0:
        return 0.0
    return value / bound if bound > 0 else inf
