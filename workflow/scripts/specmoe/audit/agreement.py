"""The check of a run's counters against the draft's own reading of its text.

No time is used, so whoever forges times, or counters to fit them, does not pass it.
"""

from specmoe.audit.evidence import Evidence, check
from specmoe.audit.finding import Finding, Level, Run, combined, equal, not_applicable
from specmoe.audit.reading import Limits, Reading, Totals, possible_totals
from specmoe.config.block import Protocol, Stop
from specmoe.measure.common_prefix import common_prefix
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
    readings = given.readings.get((run.engine, run.target_model, run.draft_model or "", run.prompt))
    readings = [one for one in readings or [] if one.draft_sha256 == run.draft_sha256]
    if not readings:
        return not_applicable("its draft has read no text of its target after that prompt")
    assert run.tokens is not None
    reading = next((one for one in readings if one.tokens == run.tokens), None)
    if reading is None:
        prefix = max(common_prefix(run.tokens, one.tokens) for one in readings)
        return not_applicable(f"it leaves the text that its draft has read after {prefix} tokens")
    tie_nats = given.settings.widest_tie(reading.moved_nats)
    found: dict[Totals, tuple[int, ...]] = {}
    # What replayed where replays were not counted is not known.
    for replays in {True, False} if run.replays is None else {run.replays > 0}:
        limits = Limits(run.n_predict, run.stopped_by == Stop.EOS, replays)
        found |= possible_totals(reading, run.gamma, run.p_min or 0.0, limits, tie_nats)
    nearest = min(found, key=lambda totals: (_distance(run, totals), len(found[totals])))
    return _compared(run, nearest, _ties(reading, found[nearest]))


def _unplayable(run: Run) -> str | None:
    """Return why a run's rounds do not follow from a reading; None if they do."""
    if not run.by_model:
        return "only what a draft model proposes alone can be read"
    if run.protocol != Protocol.PAIRED or run.temperature > 0 or run.imposed_acceptance is not None:
        return "only greedy runs whose acceptance is the draft's own follow from a reading"
    if run.concurrency > 1:
        return "its batches had tokens of other requests"
    if run.n_min:
        return "drafts that were too short were given up"
    if run.replays_rejected:
        return "a replay was rejected, so rounding decided what was accepted"
    if None in (run.rounds, run.drafted, run.accepted, run.tokens):
        return "rounds, drafted or accepted tokens are not known"
    return None


def _distance(run: Run, totals: Totals) -> int:
    return sum(abs(one - other) for one, other in _pairs(run, totals).values())


def _pairs(run: Run, totals: Totals) -> dict[str, tuple[int, int]]:
    """Return each count of a run with the one that a reading gives."""
    assert run.rounds is not None
    assert run.drafted is not None
    assert run.accepted is not None
    drafted = min(max(run.drafted, totals.drafted_least), totals.drafted_most)
    pairs = {
        "rounds": (run.rounds, totals.rounds),
        "drafted": (run.drafted, drafted),
        "accepted": (run.accepted, totals.accepted),
    }
    return pairs if run.replays is None else pairs | {"replays": (run.replays, totals.replays)}


def _ties(reading: Reading, ties: tuple[int, ...]) -> str:
    named = ", ".join(f"{at + 1} ({reading.lead_nats[at]:.2g} nats)" for at in ties[:_NAMED])
    more = ", ..." if len(ties) > _NAMED else ""
    return f" if near ties fall the other way, at token {named}{more}" if ties else ""


def _compared(run: Run, totals: Totals, ties: str) -> Finding:
    parts = [
        equal(own, due, f"{own} {name}, {due} by the draft's reading of the text{ties}")
        for name, (own, due) in _pairs(run, totals).items()
    ]
    held = f"{run.accepted} of {counted(run.drafted or 0, 'drafted token')} accepted"
    return combined(parts, f"{held}, as the draft's reading of the text gives{ties}")
