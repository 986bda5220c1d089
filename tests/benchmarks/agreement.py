"""How many accepted tokens must be forged before the audit's check of agreement sees it.

Each run by a draft model that the check applies to is given some accepted tokens more or fewer, and
as many rounds fewer or more, so that its counts still add up; times stay. Drafted tokens are those
of as many rounds less or more. Printed: how many runs have the rounds of their draft's reading, and
of the forged ones the share that this check finds, and that the check of accounting does.
"""

import argparse
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "workflow/scripts"))

from specmoe.audit.checks import CHECKS  # noqa: E402
from specmoe.audit.evidence import Check, Evidence, gather_evidence  # noqa: E402
from specmoe.audit.finding import CheckVerdict, Run  # noqa: E402
from specmoe.audit.reading import readings_of  # noqa: E402
from specmoe.config.audit import AuditSettings  # noqa: E402
from specmoe.runs.agreement import read_agreement  # noqa: E402
from specmoe.runs.schema import read_runs  # noqa: E402

MORE = (-10, -5, -3, -2, -1, 1, 2, 3, 5, 10)
AGREEMENT, ACCOUNTING = CHECKS["agreement"], CHECKS["accounting"]


def main() -> None:
    """Parse the command line, forge the runs, print the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--runs", required=True, type=Path, help="runs.parquet")
    parser.add_argument("--agreement", required=True, type=Path, help="agreement.parquet")
    args = parser.parse_args()
    readings = readings_of(read_agreement(args.agreement))
    settings = AuditSettings()
    given = gather_evidence(read_runs(args.runs), {}, None, settings, readings=readings)
    drafted = [run for run in given.runs.values() if run.by_model]
    outcomes = Counter(outcome(run, given) for run in drafted)
    for words, count in outcomes.most_common():
        print(f"{count:5} of {len(drafted)} runs by a draft model: {words}")
    known = [run for run in drafted if AGREEMENT.find(run, given).verdict == CheckVerdict.PASS]
    print("accepted tokens   forged runs   found by agreement   by accounting")
    for more in MORE:
        rows = [one for run in known if (one := forged(run, more))]
        by = [share(rows, failing(check, given)) for check in (AGREEMENT, ACCOUNTING)]
        print(f"{more:+15}   {len(rows):11}   {by[0]:18.1%}   {by[1]:13.1%}")


def outcome(run: Run, given: Evidence) -> str:
    """Return what the check finds of a run, in few words."""
    finding = AGREEMENT.find(run, given)
    if finding.verdict == CheckVerdict.NOT_APPLICABLE:
        return "not applicable, it leaves the text" if "leaves" in finding.why else finding.why
    return f"{finding.verdict}{', by a near tie' if 'tie' in finding.why else ''}"


def forged(run: Run, more: int) -> Run | None:
    """Return a run with so many accepted tokens more, or None if it has too few rounds for that."""
    assert run.rounds is not None
    assert run.accepted is not None
    assert run.drafted is not None
    rounds, accepted = run.rounds - more, run.accepted + more
    drafted = run.drafted - more * run.gamma
    if min(rounds, accepted) < 0 or not accepted <= drafted <= run.gamma * rounds:
        return None
    details = ("accepted_per_position", "accepted_lengths", "drafted_lengths", "decodes")
    return replace(
        run,
        rounds=rounds,
        accepted=accepted,
        drafted=drafted,
        **dict.fromkeys(details),  # type: ignore[arg-type]
    )


def failing(check: Check, given: Evidence) -> Callable[[Run], bool]:
    """Return whether a run fails a check, as a function."""
    return lambda run: check.find(run, given).verdict == CheckVerdict.FAIL


def share(runs: list[Run], found: Callable[[Run], bool]) -> float:
    """Return the share of runs that are found."""
    return sum(map(found, runs)) / len(runs) if runs else 0.0


if __name__ == "__main__":
    main()
