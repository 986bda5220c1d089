"""The checks of a run's counters: exact arithmetic, and the draft model's scores of the text.

The second uses no time, so forged times, or counters that fit them, do not pass it.
"""

from collections.abc import Iterator
from itertools import pairwise
from math import inf

from specmoe.audit.draft_rounds import Counts, Limits, Outcome, possible_outcomes
from specmoe.audit.evidence import Evidence, Finding, Run, at_least, at_most, combined, equal
from specmoe.config.block import Protocol, Stop
from specmoe.config.methods import BY_TYPE, METHODS
from specmoe.text import counted

# How far a printed rate may be from tokens over time; rounding of printed digits makes 0.01 %.
_RATE_TOLERANCE = 0.01
_PRINTED_MS = 0.5  # llama-speculative prints whole milliseconds, a server microseconds


def check_accounting(run: Run, given: Evidence) -> Finding:
    """Check that the counters of a run agree with each other."""
    parts = [
        *_load(run, given.loads.get(run.load or "")),
        *_output(run),
        *_rounds(run),
        *_decodes(run, given.baseline(run)),
        *_by_round(run),
    ]
    none = Finding("no counter that could be checked is known")
    return combined(parts, "all sums hold") if parts else none


def _most(what: str, found: float, most: float) -> Finding:
    return at_most(found, most, f"{what}: {found:.6g}, {most:.6g} at most")


def _same(what: str, found: float, due: float, tolerance: float = 0.0) -> Finding:
    return equal(found, due, f"{what}: {found:.6g}, not {due:.6g}", tolerance)


def _load(run: Run, of_load: int | None) -> Iterator[Finding]:
    """Check that a run fits its load, whose measured runs have `of_load` tokens in all."""
    seconds, tokens, rate = run.load_s, run.load_tokens, run.load_tokens_per_second
    if seconds is None or tokens is None or rate is None:
        return
    own_s = ((run.prompt_ms or 0) + (run.decode_ms or 0)) / 1000
    yield _most("seconds of a run in its load", own_s, seconds)
    yield _same("a load's rate times its seconds", rate * seconds, tokens, _RATE_TOLERANCE)
    if of_load is not None:
        why = f"tokens of a load: {tokens}, {of_load} of them in measured runs"
        yield at_least(tokens, of_load, why)
    if run.load_decodes is not None:
        # The counter is read just before and after the load, while passes are under way.
        most = run.concurrency * (1 + run.gamma) * (4 + 1.1 * run.load_decodes)
        yield _most(f"tokens of a load of {run.load_decodes} passes", tokens, most)


def _output(run: Run) -> Iterator[Finding]:
    """Check the number of tokens, their ids, and the rate by the protocol's definition."""
    if run.generated is not None and run.protocol == Protocol.PAIRED:
        ends = run.stopped_by == Stop.EOS
        yield (_most if ends else _same)("tokens generated", run.generated, run.n_predict)
    if run.generated is not None and run.tokens is not None:
        yield _same("ids of generated tokens", len(run.tokens), run.generated)
    tokens, rate, ms = run.timed_tokens, run.tokens_per_second, run.decode_ms
    if tokens and rate is not None and ms is not None:
        rounded = _PRINTED_MS / ms if run.protocol == Protocol.STUDY and ms else 0.0
        yield _same("tok/s times seconds", rate * ms / 1000, tokens, _RATE_TOLERANCE + rounded)


def _rounds(run: Run) -> Iterator[Finding]:
    """Check that every round gives one token of the target besides those it accepts."""
    rounds, drafted, accepted = run.rounds, run.drafted, run.accepted
    if rounds is not None and drafted is not None:
        yield _most(f"tokens drafted in {counted(rounds, 'round')}", drafted, run.gamma * rounds)
    if drafted is not None and accepted is not None:
        yield _most("drafted tokens accepted", accepted, drafted)
    if rounds is not None and accepted is not None and run.generated is not None:
        given = 1 + rounds + accepted + (run.replays or 0) - (run.replays_rejected or 0)
        what = "1 + rounds + accepted + replays"
        # llama-speculative ends between rounds and counts all tokens of the last one. llama-server
        # never drafts past the tokens left to generate, so a round is cut only where the text ends.
        # The sum lacks single steps.
        if run.protocol == Protocol.STUDY:
            yield _same(what, given, run.generated)
        else:
            yield _most(what, given, run.generated + run.cut)
    # Where the target undoes rejected tokens, nothing is replayed.
    if run.speculative and METHODS[BY_TYPE[run.method]].rolls_back and run.replays is not None:
        yield _most(f"replays with {run.draft}", run.replays, 0)


def _decodes(run: Run, baseline: Run | None) -> Iterator[Finding]:
    """Check that every decode gives one token of its own, prompt and rejected replays excepted."""
    due = run.passes_after_prompt
    if run.protocol != Protocol.PAIRED or run.decodes is None or due is None:
        return
    baseline_passes = baseline.passes_after_prompt if baseline else None
    if baseline is None or baseline.decodes is None or baseline_passes is None:
        yield at_least(run.decodes, due + 1, f"decodes: {run.decodes}, {due + 1} at least")
        return
    # As many for the prompt as in the baseline.
    due += baseline.decodes - baseline_passes
    yield at_least(run.decodes, due, f"decodes: {run.decodes}, {due} at least")
    yield _most("decodes", run.decodes, due + run.cut)


def _by_round(run: Run) -> Iterator[Finding]:
    """Check counts by position and by draft length; a position needs all before it accepted."""
    positions, rounds = run.accepted_per_position, run.rounds
    if positions is not None:
        if run.accepted is not None:
            yield _same("accepted by position", sum(positions), run.accepted)
        first = inf if rounds is None else rounds
        for index, (before, after) in enumerate(pairwise([first, *positions]), 1):
            yield _most(f"accepted at position {index}", after, before)
    for what, lengths, total in (
        ("accepted", run.accepted_lengths, run.accepted),
        ("drafted", run.drafted_lengths, run.drafted),
    ):
        if lengths is not None and total is not None and rounds is not None:
            yield _same(f"rounds by tokens {what}", sum(lengths), rounds)
            tokens = sum(length * count for length, count in enumerate(lengths))
            yield _same(f"tokens {what} by round", tokens, total)


def check_agreement(run: Run, given: Evidence) -> Finding:
    """Check that a run's rounds are those that the draft model's scores of its text give."""
    if not run.by_model:
        return Finding("only what a draft model proposes alone can be scored")
    alone = run.protocol == Protocol.PAIRED and run.concurrency == 1
    known = None not in (run.rounds, run.drafted, run.accepted, run.tokens)
    # Where a replay was rejected, rounding decided what was accepted.
    if not (alone and known) or run.replays_rejected:
        return Finding("its rounds are not known, or others or rounding had a part in them")
    if run.temperature > 0 or run.forced_acceptance is not None:
        return Finding("only greedy runs whose acceptance is the draft model's own follow from it")
    texts = given.draft_scores.get((run.engine, run.target, run.draft_model or "", run.prompt), [])
    own_text = run.draft_sha256, run.tokens
    scores = next((one for one in texts if (one.draft_sha256, one.tokens) == own_text), None)
    if scores is None:
        return Finding("its draft model has not scored its text")
    tie_nats = given.limits.widest_tie(scores.moved_nats)
    found: dict[Counts, Outcome] = {}
    # Where replays were not counted, the run may have any.
    for replays in {True, False} if run.replays is None else {run.replays > 0}:
        limits = Limits(run.n_predict, run.stopped_by == Stop.EOS, replays)
        found |= possible_outcomes(scores, run.gamma, run.p_min or 0.0, limits, tie_nats)
    if not found:
        return Finding("too many near ties: its draft model prefers hardly any token to the next")
    pairs, ties = min(
        ((_pairs(run, *outcome), outcome[1].ties) for outcome in found.items()),
        key=lambda one: (sum(abs(own - due) for _, own, due in one[0]), one[1]),
    )
    source = "by the draft model's scores"
    source += f" if {counted(ties, 'near tie')} fall the other way" if ties else ""
    parts = [equal(own, due, f"{own} {name}, {due} {source}") for name, own, due in pairs]
    return combined(parts, f"{run.accepted} of {run.drafted} accepted, as {source}")


def _pairs(run: Run, counts: Counts, outcome: Outcome) -> list[tuple[str, int, int]]:
    """Return the name of each count of a run, the count, and the expected one."""
    drafted = min(max(run.drafted or 0, outcome.drafted_least), outcome.drafted_most)
    expected = {**counts._asdict(), "drafted": drafted}
    pairs = ((name, getattr(run, name), due) for name, due in expected.items())
    return [pair for pair in pairs if pair[1] is not None]
