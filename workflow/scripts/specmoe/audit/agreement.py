"""The check of a run's counters against the draft's own reading of its text.

No time is used, so whoever forges times, or counters to fit them, does not pass it.
"""

from specmoe.audit.evidence import Evidence, check
from specmoe.audit.finding import Finding, Level, Run, combined, equal, not_applicable
from specmoe.audit.reading import Counts, Limits, Outcome, Reading, possible_outcomes
from specmoe.config.block import Protocol, Stop
from specmoe.measure.trace import common_prefix
from specmoe.words import counted

_NAMED = 3


@check(
    "agreement",
    Level.IMPOSSIBLE,
    "Count other rounds, drafted or accepted tokens than the draft's reading of the same text"
    " gives, near ties excepted.",
    "rounds drafted accepted tokens",
)
def check_agreement(run: Run, given: Evidence) -> Finding:
    """Check that a run's rounds are those that the draft's reading of its text gives."""
    if reason := _unplayable(run):
        return not_applicable(reason)
    readings = given.readings.get((run.engine, run.target, run.draft_model or "", run.prompt))
    readings = [one for one in readings or [] if one.draft_sha256 == run.draft_sha256]
    if not readings:
        return not_applicable("its draft has read no text of its target after that prompt")
    assert run.tokens is not None
    reading = next((one for one in readings if one.tokens == run.tokens), None)
    if reading is None:
        prefix = max(common_prefix(run.tokens, one.tokens) for one in readings)
        return not_applicable(f"it leaves the text that its draft has read after {prefix} tokens")
    tie_nats = given.settings.widest_tie(reading.moved_nats)
    found: dict[Counts, Outcome] = {}
    # What replayed where replays were not counted is not known.
    for replays in {True, False} if run.replays is None else {run.replays > 0}:
        limits = Limits(run.n_predict, run.stopped_by == Stop.EOS, replays)
        found |= possible_outcomes(reading, run.gamma, run.p_min or 0.0, limits, tie_nats)
    if not found:
        return not_applicable("too many near ties: its draft prefers hardly any token to the next")
    pairs = [(_pairs(run, *known), known[1].ties) for known in found.items()]
    nearest, ties = min(
        pairs, key=lambda known: (sum(abs(own - due) for _, own, due in known[0]), len(known[1]))
    )
    fallen = _fallen(reading, ties)
    parts = [
        equal(own, due, f"{own} {name}, {due} by the draft's reading of the text{fallen}")
        for name, own, due in nearest
    ]
    held = f"{run.accepted} of {counted(run.drafted or 0, 'drafted token')} accepted"
    return combined(parts, f"{held}, as the draft's reading of the text gives{fallen}")


def _unplayable(run: Run) -> str | None:
    """Return why a run's rounds do not follow from a reading; None if they do."""
    if not run.by_model:
        return "only what a draft model proposes alone can be read"
    if run.protocol != Protocol.PAIRED or run.temperature > 0 or run.imposed_acceptance is not None:
        return "only greedy runs whose acceptance is the draft's own follow from a reading"
    if run.concurrency > 1:
        return "its batches had tokens of other requests"
    if run.replays_rejected:
        return "a replay was rejected, so rounding decided what was accepted"
    if None in (run.rounds, run.drafted, run.accepted, run.tokens):
        return "rounds, drafted or accepted tokens are not known"
    return None


def _pairs(run: Run, counts: Counts, outcome: Outcome) -> list[tuple[str, int, int]]:
    """Return the name of each count of a run, the count, and the one that a reading gives."""
    drafted = min(max(run.drafted or 0, outcome.drafted_least), outcome.drafted_most)
    pairs = [
        ("rounds", run.rounds, counts.rounds),
        ("drafted", run.drafted, drafted),
        ("accepted", run.accepted, counts.accepted),
        ("replays", run.replays, counts.replays),
    ]
    return [(name, own, due) for name, own, due in pairs if own is not None]


def _fallen(reading: Reading, ties: tuple[int, ...]) -> str:
    named = ", ".join(f"{at + 1} ({reading.lead_nats[at]:.2g} nats)" for at in ties[:_NAMED])
    more = ", ..." if len(ties) > _NAMED else ""
    return f" if near ties fall the other way, at token {named}{more}" if ties else ""
