"""The audit: whether a row can be a measurement of what it says it measures.

Every run is checked at two levels. Bounds that no true run breaks tell what is impossible;
expectations tell what is implausible. A row that fails a check is marked and named, never dropped.
The reader decides what to make of it.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import pandas as pd

from specmoe.audit.bounds import Bandwidth, check_bandwidth, check_draft_time, single_token_ms
from specmoe.audit.counters import (
    Answers,
    check_accounting,
    check_batch_noise,
    check_collapsed_output,
    check_controls,
    check_determinism,
    check_failed_decodes,
    check_losslessness,
)
from specmoe.audit.finding import CheckVerdict, Finding, Level, Run
from specmoe.audit.plausible import check_baseline_time, check_expected_experts
from specmoe.audit.repetition import most_of_one
from specmoe.audit.ties import Gap
from specmoe.config.audit import AuditSettings
from specmoe.config.block import WAY
from specmoe.models.sizes import Size

ALL = "all"
"""The target and draft in the row that counts the whole campaign."""

_CELL = [*WAY, "target", "draft", "gamma"]
_IDENTITY = ["run", *WAY, "suite", "target", "draft", "gamma", "prompt", "repeat"]
_Repeats = dict[tuple[Any, ...], tuple[Run, int]]


@dataclass(frozen=True)
class Evidence:
    """What a run is checked against."""

    runs: Mapping[str, Run]
    repeats: _Repeats
    answers: Mapping[tuple[Any, ...], Answers]
    loads: Mapping[str, int]  # tokens of the measured runs of each load
    divergences: Mapping[str, Gap]
    times: Mapping[tuple[str, str, str], Mapping[str, float]]
    sizes: Mapping[str, Size]
    bandwidth: Bandwidth | None
    of_machines: Mapping[str, Bandwidth | None]
    settings: AuditSettings

    def bandwidth_of(self, run: Run) -> Bandwidth | None:
        """Return how fast the memory of a run's machine can be read."""
        return self.of_machines.get(run.host, self.bandwidth)

    def baseline(self, run: Run) -> Run | None:
        """Return a run's baseline, None without one."""
        return None if run.baseline is None else self.runs.get(run.baseline)

    def reference(self, run: Run) -> tuple[Run | None, int]:
        """Return the repeat with the tokens that most have, and how many repeats there are."""
        return self.repeats.get(_repeated(run), (None, 0))


class Check(NamedTuple):
    """A check: its name, its level, what it finds, the columns it uses, and its function.

    A check of `level` implausible says what no true run should do, the others what none can.
    """

    words: str
    level: Level
    meaning: str
    columns: frozenset[str]
    find: Callable[[Run, Evidence], Finding]


_COUNTS = frozenset({"generated", "rounds", "drafted", "accepted", "decode_ms"})

CHECKS: dict[str, Check] = {
    "accounting": Check(
        "token accounting",
        Level.IMPOSSIBLE,
        "Give another number of tokens than its rounds and accepted tokens add up to.",
        _COUNTS,
        lambda run, given: check_accounting(
            run, given.baseline(run), given.loads.get(run.load or "")
        ),
    ),
    "draft_time": Check(
        "draft-time bound",
        Level.IMPOSSIBLE,
        "Take less time than its own passes and drafted tokens need at the speeds measured without"
        " a draft.",
        _COUNTS - {"generated", "accepted"},
        lambda run, given: check_draft_time(
            run, given.times.get(run.timed_with, {}), given.sizes, given.settings
        ),
    ),
    "bandwidth": Check(
        "memory-bandwidth bound",
        Level.IMPOSSIBLE,
        "Read its weights faster than the machine's memory delivers them.",
        _COUNTS,
        lambda run, given: check_bandwidth(
            run, given.sizes, given.bandwidth_of(run), given.settings
        ),
    ),
    "baseline_time": Check(
        "baseline time",
        Level.IMPLAUSIBLE,
        "Take less time than all its passes at the speed of its own baseline and its own logged"
        " drafting.",
        _COUNTS | {"replays", "draft_ms"},
        lambda run, given: check_baseline_time(run, given.baseline(run), given.settings),
    ),
    "expected_experts": Check(
        "expected experts",
        Level.IMPLAUSIBLE,
        "Read the experts that its tokens are expected to visit faster than the machine's memory"
        " delivers them.",
        _COUNTS,
        lambda run, given: check_expected_experts(
            run, given.sizes, given.bandwidth_of(run), given.settings
        ),
    ),
    "failed_decodes": Check(
        "failed decodes",
        Level.IMPOSSIBLE,
        "Count as a measurement although the engine reported decodes that failed.",
        frozenset({"decode_failures"}),
        lambda run, _: check_failed_decodes(run),
    ),
    "losslessness": Check(
        "losslessness",
        Level.IMPOSSIBLE,
        "Leave the text that the target writes alone, where the target's own probabilities are not"
        " a near tie.",
        frozenset({"tokens"}),
        lambda run, given: check_losslessness(
            run, given.baseline(run), given.divergences.get(run.run), given.settings
        ),
    ),
    "batch_noise": Check(
        "batch noise",
        Level.IMPLAUSIBLE,
        "Come from an engine whose probabilities move with the size of a batch by more than"
        " rounding explains.",
        frozenset({"tokens"}),
        lambda run, given: check_batch_noise(given.divergences.get(run.run), given.settings),
    ),
    "determinism": Check(
        "determinism",
        Level.IMPOSSIBLE,
        "Write other tokens than its repeats, although nothing is left to chance.",
        frozenset({"tokens"}),
        lambda run, given: check_determinism(run, *given.reference(run)),
    ),
    "collapsed_output": Check(
        "collapsed output",
        Level.IMPLAUSIBLE,
        "Write one token again and again, or the same text, whatever the prompt, as broken weights"
        " or kernels do; or loop where the target alone does not.",
        frozenset({"tokens"}),
        lambda run, given: check_collapsed_output(
            run, given.baseline(run), given.answers.get(_asked(run)), given.settings
        ),
    ),
    "controls": Check(
        "controls",
        Level.IMPOSSIBLE,
        "Reject its own tokens when a target drafts for itself, or accept, or gain by, those of an"
        " unrelated draft.",
        frozenset({"drafted", "accepted"}),
        lambda run, given: check_controls(run, given.baseline(run), given.settings),
    ),
}


def gather_evidence(
    runs: pd.DataFrame,
    sizes: Mapping[str, Size],
    bandwidth: Bandwidth | None,
    settings: AuditSettings,
    divergences: Mapping[str, Gap] | None = None,
    of_machines: Mapping[str, Bandwidth | None] | None = None,
) -> Evidence:
    """Return what the runs of a campaign are checked against.

    `runs` is `schema.read_runs`'s frame, `sizes` are those of its models, `bandwidth` is that of
    the machine's memory, or of the machines that `of_machines` lacks, which has it by host.
    `divergences` holds, by run, the target's gap at the token where the run left its baseline.
    """
    listed = [Run.of(row) for row in runs.to_dict("records")]
    return Evidence(
        {run.run: run for run in listed},
        _references(listed),
        _answers(listed),
        _loads(listed),
        divergences or {},
        single_token_ms(runs),
        sizes,
        bandwidth,
        of_machines or {},
        settings,
    )


def audit_runs(evidence: Evidence) -> pd.DataFrame:
    """Return one row per run and check, in their orders.

    Columns: run, protocol, engine, suite, target, draft, gamma, prompt, repeat, check (a key of
    CHECKS), level (of the check), verdict (`pass`, `fail`, `not applicable`), bound, measured,
    ratio (how many times over the bound: above 1 breaks it, infinite if the bound is zero, null if
    not applicable), recovered (whether it rests on values recovered by arithmetic), why (a sentence
    with the numbers).
    """
    rows = [
        _row(run, name, check, evidence)
        for run in evidence.runs.values()
        for name, check in CHECKS.items()
    ]
    return pd.DataFrame(rows).astype({"bound": float, "measured": float, "ratio": float})


def summarise_audit(audit: pd.DataFrame) -> pd.DataFrame:
    """Return one row per way, target, draft and gamma, sorted, and a last one for all of them.

    Columns: protocol, engine, target, draft (all `all` in the last row), gamma (null there), runs,
    marked (runs that fail some check), impossible and implausible (those of them that fail a check
    of the first level, and the others), and for each check `<check>_passed`, `<check>_failed`,
    `<check>_not_applicable` (numbers of runs) and `<check>_worst` (the largest ratio; null if it
    applies to no run).
    """
    cells = [
        dict(zip(_CELL, cell, strict=True)) | _counts(members)
        for cell, members in audit.groupby(_CELL)
    ]
    whole = dict.fromkeys(_CELL, ALL) | {"gamma": None} | _counts(audit)
    return pd.DataFrame([*cells, whole]).astype({"gamma": "Int64"})


def marked_runs(audit: pd.DataFrame, level: Level | None = None) -> set[str]:
    """Return the runs of `audit_runs`'s frame that fail a check, of one level if one is given."""
    failed = audit["verdict"] == CheckVerdict.FAIL
    if level is not None:
        failed &= audit["level"] == level
    return set(audit.loc[failed, "run"])


def count_marked(audit: pd.DataFrame) -> pd.DataFrame:
    """Return one row per way, suite, target, draft, gamma and prompt, sorted.

    Columns: those, runs, marked (runs that fail some check), impossible (those of them that fail a
    check that no true run can fail).
    """
    failed = audit["run"].where(audit["verdict"] == CheckVerdict.FAIL)
    keys = [*WAY, "suite", "target", "draft", "gamma", "prompt"]
    broken = failed.where(audit["level"] == Level.IMPOSSIBLE)
    cells = audit.assign(failed=failed, broken=broken).groupby(keys)
    counts = {"runs": "run", "marked": "failed", "impossible": "broken"}
    return cells.agg(**{name: (of, "nunique") for name, of in counts.items()}).reset_index()


def _row(run: Run, name: str, check: Check, evidence: Evidence) -> dict[str, Any]:
    finding = check.find(run, evidence)
    return {
        **{column: getattr(run, column) for column in _IDENTITY},
        "check": name,
        "level": check.level.value,
        "verdict": finding.verdict.value,
        "bound": finding.bound,
        "measured": finding.measured,
        "ratio": finding.ratio,
        "recovered": not check.columns.isdisjoint(run.recovered),
        "why": finding.why,
    }


def _counts(audit: pd.DataFrame) -> dict[str, Any]:
    marked, impossible = marked_runs(audit), marked_runs(audit, Level.IMPOSSIBLE)
    counts: dict[str, Any] = {
        "runs": audit["run"].nunique(),
        "marked": len(marked),
        "impossible": len(impossible),
        "implausible": len(marked - impossible),
    }
    for name in CHECKS:
        members = audit[audit["check"] == name]
        for verdict, word in (
            (CheckVerdict.PASS, "passed"),
            (CheckVerdict.FAIL, "failed"),
            (CheckVerdict.NOT_APPLICABLE, "not_applicable"),
        ):
            counts[f"{name}_{word}"] = int((members["verdict"] == verdict).sum())
        counts[f"{name}_worst"] = members["ratio"].max()
    return counts


def _repeated(run: Run) -> tuple[Any, ...]:
    asked = run.imposed_acceptance, run.temperature, run.seed
    remembers = bool(run.prompts_before)
    # Machines round differently, so a repeat on another one may write other tokens.
    return run.host, run.suite, run.target, run.draft, run.gamma, run.prompt, remembers, *asked


def _asked(run: Run) -> tuple[Any, ...]:
    return run.way, run.target, run.draft, run.gamma, run.n_predict, run.temperature


def _loads(runs: list[Run]) -> dict[str, int]:
    """Return the tokens that the measured runs of each load generated."""
    tokens: Counter[str] = Counter()
    for run in runs:
        if run.load is not None:
            tokens[run.load] += run.generated or 0
    return tokens


def _answers(runs: list[Run]) -> dict[tuple[Any, ...], Answers]:
    """Return what each target answered its prompts with the same settings."""
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


def _references(runs: list[Run]) -> _Repeats:
    """Return, of each group of repeats, the first with the tokens most have, and their number."""
    groups = defaultdict(list)
    for run in sorted(runs, key=lambda run: run.repeat):
        if run.tokens is not None:
            groups[_repeated(run)].append(run)
    references = {}
    for key, members in groups.items():
        # Among equally common texts, `most_common` returns the first one seen.
        [(tokens, _)] = Counter(run.tokens for run in members).most_common(1)
        references[key] = next(run for run in members if run.tokens == tokens), len(members)
    return references
