"""The checks of the audit, and its sensitivity.

Every run is checked at two levels. Bounds that no valid run breaks find the impossible ones;
expectations find the suspicious ones, and rest on what was seen of the machine or of other runs. A
run that fails a check is flagged and named, never dropped.

The sensitivity is counted on runs that are made too fast on purpose. A failed decode leaves a
shorter time. A row that is written by hand can also have a shorter time of drafting, and counters
of a higher acceptance. All other rows stay, and so do the times of single tokens. The other side of
a speedup is wrong where all baselines are too slow.
"""

from collections import ChainMap
from collections.abc import Callable
from copy import copy
from enum import StrEnum
from itertools import product
from math import ceil
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from specmoe.audit import accounting, bounds, output
from specmoe.audit.evidence import CheckVerdict, Evidence, Finding, Level, Run
from specmoe.config.block import MEASURED_BY
from specmoe.yaml_files import read_yaml

ALL = "all"
"""The target and draft in the row that counts the whole campaign."""

_SETTING = [*MEASURED_BY, "target", "draft", "gamma"]
_COUNTED = {"passed": CheckVerdict.PASS, "failed": CheckVerdict.FAIL}
_COUNTED |= {"not_judged": CheckVerdict.NOT_JUDGED}
_IDENTITY = ["run", *MEASURED_BY, "suite", "target", "draft", "gamma", "prompt", "repeat"]
_NUMBERS = ("bound", "measured", "ratio")


class Check(NamedTuple):
    """A check of runs, as `checks.yaml` declares it."""

    meaning: str
    find: Callable[[Run, Evidence], Finding]
    level: Level


_FUNCTIONS = ChainMap(*map(vars, (accounting, bounds, output)))
CHECKS = {
    name: Check(entry["meaning"], _FUNCTIONS[f"check_{name}"], Level(entry["level"]))
    for name, entry in read_yaml(Path(__file__).with_name("checks.yaml")).items()
}
"""The checks by name, as `checks.yaml` declares them, which explains its fields."""


def audit_runs(evidence: Evidence) -> pd.DataFrame:
    """Return one row per run and check, in their orders.

    Columns: run, protocol, engine, suite, target, draft, gamma, prompt, repeat, check (a key of
    CHECKS), level (of the check), verdict (of CheckVerdict), bound, measured,
    ratio (how many times over the bound: above 1 breaks it, infinite if the bound is zero, null if
    not applicable), why (a sentence with the numbers).
    """
    rows = []
    for run, (name, check) in product(evidence.runs.values(), CHECKS.items()):
        finding = check.find(run, evidence)
        rows.append(
            {column: getattr(run, column) for column in _IDENTITY}
            | {"check": name, "level": check.level.value, "verdict": finding.verdict.value}
            | {column: getattr(finding, column) for column in (*_NUMBERS, "why")}
        )
    return pd.DataFrame(rows).astype(dict.fromkeys(_NUMBERS, float))


def summarise_audit(audit: pd.DataFrame) -> pd.DataFrame:
    """Return the table `audit` of the analysis, of `audit_runs`'s frame."""
    whole = dict.fromkeys(_SETTING, ALL) | {"gamma": None}
    groups = [*audit.groupby(_SETTING), (whole.values(), audit)]
    rows = [
        dict(zip(_SETTING, setting, strict=True)) | _counts(members) for setting, members in groups
    ]
    return pd.DataFrame(rows).astype({"gamma": "Int64"})


def flagged_runs(audit: pd.DataFrame) -> pd.DataFrame:
    """Return the run of each row: in `flagged` if it fails there, in `impossible` by that level."""
    failed = audit["run"].where(audit["verdict"] == CheckVerdict.FAIL)
    broken = failed.where(audit["level"] == Level.IMPOSSIBLE)
    return pd.DataFrame({"runs": audit["run"], "flagged": failed, "impossible": broken})


def count_flagged(audit: pd.DataFrame) -> pd.DataFrame:
    """Return the table `flagged` of the analysis, of `audit_runs`'s frame."""
    keys = [*MEASURED_BY, "suite", "target", "draft", "gamma", "prompt"]
    return flagged_runs(audit).groupby([audit[key] for key in keys]).nunique().reset_index()


def _counts(audit: pd.DataFrame) -> dict[str, Any]:
    counts: dict[Any, Any] = flagged_runs(audit).nunique().to_dict()
    counts["suspicious"] = counts["flagged"] - counts["impossible"]
    for name, members in audit.groupby("check", sort=False):
        for word, verdict in _COUNTED.items():
            counts[f"{name}_{word}"] = int((members["verdict"] == verdict).sum())
        counts[f"{name}_worst"] = members["ratio"].max()
    return counts


SLOWED_BY = (1.0, 1.5, 2.0, 2.5, 3.0)  # the first is the rows as they are
# Those of time, and of counters: that do not add up, or are not the draft model's.
_LOOKED_AT = [check for check in CHECKS.values() if check.find not in vars(output).values()]
_OF_SINGLE_ROUNDS = (
    *("accepted_per_position", "accepted_lengths", "drafted_lengths"),
    *("replays", "replays_rejected", "decodes"),
)


class Forged(StrEnum):
    """What is made wrong in the rows of a campaign."""

    DECODING = "decoding"  # a run's decode time, too short
    # Its logged time of drafting too, and as many fewer rounds, so that more seems accepted.
    COUNTERS = "counters"
    BASELINES = "baselines"  # the times of all runs without speculation, too long


def count_sensitivity(evidence: Evidence) -> pd.DataFrame:
    """Return the table `sensitivity` of the analysis: what is found in runs with wrong times."""
    timed = [run.run for run in evidence.runs.values() if run.speculative and run.decode_ms]
    rows = []
    for factor in SLOWED_BY if timed else ():
        row = {"factor": factor, "runs": len(timed)}
        for forged in Forged:
            seen = _forge(evidence, forged, factor) if factor > 1 else evidence
            failed = [
                {check.level for check in _LOOKED_AT if check.find(seen.runs[run], seen).ratio > 1}
                for run in timed
            ]
            impossible = sum(Level.IMPOSSIBLE in levels for levels in failed)
            row[f"impossible_{forged}"] = impossible / len(timed)
            row[f"flagged_{forged}"] = sum(map(bool, failed)) / len(timed)
        rows.append(row)
    shares = [f"{part}_{forged}" for forged in Forged for part in ("impossible", "flagged")]
    return pd.DataFrame(rows, columns=["factor", "runs", *shares])


def mostly_missed(sensitivity: pd.DataFrame) -> dict[str, tuple[float, float]]:
    """Return, by `Forged`, the largest factor with which less than half of runs are flagged.

    With it, the share that is. What is not missed has no entry.
    """
    largest = {}
    for forged in Forged:
        share = sensitivity.set_index("factor")[f"flagged_{forged}"]
        missed = share[(share < 0.5) & (share.index > 1)]
        if len(missed):
            largest[forged.value] = float(missed.index[-1]), float(missed.iloc[-1])
    return largest


def _forge(evidence: Evidence, forged: Forged, factor: float) -> Evidence:
    """Return the evidence of a campaign with this wrong in its rows, and all else as it is."""
    made, plain = copy(evidence), forged == Forged.BASELINES
    if plain:
        made.times = {model: ms * factor for model, ms in evidence.times.items()}
        made.alone = {run: rate / factor for run, rate in evidence.alone.items()}
        factor = 1 / factor
    made.runs = {
        name: run if run.speculative == plain else _faster(run, forged, factor)
        for name, run in evidence.runs.items()
    }
    return made


def _faster(run: Run, forged: Forged, factor: float) -> Run:
    """Make a run faster, with fewer rounds as far as γ allows, and without counts of each round."""
    ms, rate = run.decode_ms, run.tokens_per_second
    faster = run.changed(decode_ms=ms and ms / factor, tokens_per_second=rate and rate * factor)
    if forged != Forged.COUNTERS:
        return faster
    faster = faster.changed(draft_ms=run.draft_ms and run.draft_ms / factor)
    if run.rounds is None or run.accepted is None or run.drafted is None:
        return faster
    tokens = run.rounds + run.accepted + (run.replays or 0) - (run.replays_rejected or 0)
    rounds = max(ceil(run.rounds / factor), ceil(tokens / (1 + run.longest)))
    accepted = tokens - rounds
    drafted = max(accepted, min(run.drafted, rounds * run.longest))
    counts: dict[str, Any] = dict.fromkeys(_OF_SINGLE_ROUNDS)
    return faster.changed(**counts, rounds=rounds, accepted=accepted, drafted=drafted)
