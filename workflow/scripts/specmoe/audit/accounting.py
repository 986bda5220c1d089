"""The checks of a run's counters: exact arithmetic, and the draft model's scores of the text.

The second uses no time, so forged times, or counters that fit them, do not pass it.
"""

from collections.abc import Iterator
from itertools import pairwise
from math import isnan, nan

from specmoe.audit.draft_rounds import Counts, possible_outcomes
from specmoe.audit.evidence import Evidence, Finding, Run, at_least, at_most, combined, equal
from specmoe.config.block import Protocol, Stop
from specmoe.config.methods import BY_TYPE, METHODS, Method, is_ngram, methods_of
from specmoe.text import counted

# How far a printed rate may be from tokens over time; rounding of printed digits makes 0.01 %.
_RATE_TOLERANCE = 0.01
_PRINTED_MS = 0.5  # llama-speculative prints whole milliseconds, a server microseconds


MISCOUNTED = Finding(
    "its counters are no evidence; its llama-server is known to count wrongly what such targets"
    " accept (llama.cpp #26320)",
    judged=False,
)


def check_accounting(run: Run, given: Evidence) -> Finding:
    """Check that the counters of a run agree with each other, as far as they are known."""
    if given.miscounts(run):
        return MISCOUNTED
    parts = [
        *_load(run, given),
        *_output(run),
        *_rounds(run),
        *_decodes(run, given.baseline(run)),
        *_by_round(run),
    ]
    return combined(parts, "all sums hold", "no counter that could be checked is known")


def _most(what: str, value: float, most: float) -> Finding:
    return at_most(value, most, f"{what}: {value:.6g}, {most:.6g} at most")


def _same(what: str, value: float, due: float, tolerance: float = 0.0) -> Finding:
    return equal(value, due, f"{what}: {value:.6g}, not {due:.6g}", tolerance)


def _load(run: Run, given: Evidence) -> Iterator[Finding]:
    """Check that a run fits its load, and the load its passes and its measured runs."""
    load, tokens = run.numbers, run.numbers.load_tokens
    own_s = ((run.prompt_ms or 0) + (run.decode_ms or 0)) / 1000
    yield _most("seconds of a run in its load", own_s, load.load_s)
    rate = load.load_tokens_per_second
    yield _same("a load's rate times its seconds", rate * load.load_s, tokens, _RATE_TOLERANCE)
    measured = given.loads[run.load]
    yield at_least(tokens, measured, f"tokens of a load: {tokens}, {measured} in measured runs")
    # The counter is read just before and after the load, while passes are under way. When a filler
    # gave its tokens is not known: another client's may have given all before, or after.
    most = run.concurrency * (1 + run.longest) * (4 + 1.1 * load.load_decodes)
    most += 2 * (run.concurrency - 1) * run.n_predict
    yield _most(f"tokens of a load of {load.load_decodes} passes", tokens, most)


def _output(run: Run) -> Iterator[Finding]:
    """Check the number of tokens, their ids, and the rate by the protocol's definition."""
    counts = run.numbers
    generated, ms = counts.generated, counts.decode_ms
    # The last token of a prompt is read in any case: it gives the first of the text.
    yield _most("cached tokens of a prompt", counts.cached_tokens, counts.n_prompt - 1)
    if run.protocol == Protocol.PAIRED:
        ends = run.stopped_by == Stop.EOS
        yield (_most if ends else _same)("tokens generated", generated, run.n_predict)
    if run.tokens is not None:
        yield _same("ids of generated tokens", len(run.tokens), generated)
    if run.timed_tokens:
        rounded = _PRINTED_MS / ms if run.protocol == Protocol.STUDY else 0.0
        timed = counts.tokens_per_second * ms / 1000
        yield _same("tok/s times seconds", timed, run.timed_tokens, _RATE_TOLERANCE + rounded)


def _rounds(run: Run) -> Iterator[Finding]:
    """Check that every round gives one token of the target besides those it accepts."""
    counts = run.numbers
    rounds, accepted = counts.rounds, counts.accepted
    yield _most(f"tokens drafted in {rounds} rounds", counts.drafted, run.longest * rounds)
    yield _most("drafted tokens accepted", accepted, counts.drafted)
    yield _most("the partner's drafted tokens", counts.partner_drafted, counts.drafted)
    most = min(accepted, counts.partner_drafted)
    yield _most("the partner's accepted tokens", counts.partner_accepted, most)
    given = 1 + rounds + accepted + (run.replays or 0) - (run.replays_rejected or 0)
    what = "1 + rounds + accepted + replays"
    # llama-speculative ends between rounds and counts all tokens of the last one. llama-server
    # never drafts past the tokens left to generate, so a round is cut only where the text ends.
    # The sum lacks single steps.
    check = _same if run.protocol == Protocol.STUDY else _most
    yield check(what, given, counts.generated + run.cut)
    # Where the target undoes rejected tokens, nothing is replayed: as many as the head drafts.
    undoes = run.speculative and METHODS[methods_of(run.method)[0]].rolls_back
    if undoes and run.longest == run.gamma:
        yield _most(f"replays with {run.draft}", counts.replays, 0)


def _decodes(run: Run, baseline: Run | None) -> Iterator[Finding]:
    """Check that every decode gives one token of its own, prompt and rejected replays excepted."""
    if run.protocol != Protocol.PAIRED:
        return
    decodes, due = run.numbers.decodes, run.passes_after_prompt
    of_prompt = baseline.numbers.decodes - baseline.passes_after_prompt if baseline else nan
    if baseline and run.cached_tokens != baseline.cached_tokens:
        of_prompt = nan  # they read parts of different lengths
    # As many for the prompt as in the baseline, one at least.
    least = due + (1 if isnan(of_prompt) else of_prompt)
    yield at_least(decodes, least, f"decodes: {decodes}, {least} at least")
    yield _most("decodes", decodes, due + of_prompt + run.cut)


def _by_round(run: Run) -> Iterator[Finding]:
    """Check counts by position and by draft length; a position needs all before it accepted."""
    counts = run.numbers
    if run.accepted_per_position is not None:
        yield _same("accepted by position", sum(run.accepted_per_position), counts.accepted)
        held = counts.rounds, *run.accepted_per_position
        for index, (before, after) in enumerate(pairwise(held), 1):
            yield _most(f"accepted at position {index}", after, before)
    for what in ("accepted", "drafted"):
        if (lengths := getattr(run, f"{what}_lengths")) is not None:
            yield _same(f"rounds by tokens {what}", sum(lengths), counts.rounds)
            tokens = sum(length * count for length, count in enumerate(lengths))
            yield _same(f"tokens {what} by round", tokens, getattr(counts, what))


def check_rejected_drafts(run: Run, given: Evidence) -> Finding:
    """Check that what a network drafts is accepted at all, over all runs of its target with it."""
    if given.miscounts(run):
        return MISCOUNTED
    method = BY_TYPE.get(run.method) if run.protocol == Protocol.PAIRED else None
    controlled = run.draft_model in given.settings.unrelated_drafts
    if not method or is_ngram(method) or controlled or run.forced_acceptance is not None:
        return Finding("only what a network drafts for its own target is due to be accepted")
    counts, limits = given.drafting[run.engine, run.target, run.draft], given.limits
    if counts["rounds"] < limits.least_rounds:
        return Finding(f"it drafted in fewer than {limits.least_rounds} rounds")
    why = f"{counts['accepted']} of {counts['drafted']} drafted tokens accepted with {run.draft}"
    if counts["accepted"] < (least := limits.least_accepted * counts["rounds"]):
        what = {Method.MTP: "block", Method.DRAFT: "draft model"}.get(method, "head")
        why += f": the {what} is probably broken (or of another model)"
    return at_least(counts["accepted"], least, why)


def check_agreement(run: Run, given: Evidence) -> Finding:
    """Check that a run's rounds are those that the draft model's scores of its text give."""
    if given.miscounts(run):
        return MISCOUNTED
    if not run.by_model:
        return Finding("only what a draft model proposes alone can be scored")
    alone = run.protocol == Protocol.PAIRED and run.concurrency == 1
    known = None not in (run.rounds, run.drafted, run.accepted, run.tokens)
    # Where a replay was rejected, rounding decided what was accepted.
    if not (alone and known) or run.replays_rejected:
        return Finding("its rounds are not known, or others or rounding had a part in them")
    if run.temperature > 0 or run.forced_acceptance is not None or run.p_min:
        return Finding("only greedy runs of full rounds that nothing forces follow from its scores")
    text = run.engine, run.target, run.draft_model or "", run.prompt, run.tokens or ()
    scores = given.draft_scores.get(text)
    if scores is None or scores.draft_sha256 != run.draft_sha256:
        return Finding("its draft model has not scored its text")
    tie_nats = given.limits.widest_tie(scores.moved_nats)
    outcomes: dict[Counts, int] = {}
    # Where replays were not counted, the run may have any.
    for replays in {True, False} if run.replays is None else {run.replays > 0}:
        outcomes |= possible_outcomes(scores, run.gamma, run.n_predict, replays, tie_nats)
    if not outcomes:
        return Finding("too many near ties: its draft model prefers hardly any token to the next")
    counts = {name: count for name in Counts._fields if (count := getattr(run, name)) is not None}
    off = {
        outcome: sum(abs(count - getattr(outcome, name)) for name, count in counts.items())
        for outcome in outcomes
    }
    # The nearest outcome; among equals, the one with the fewest ties.
    due = min(outcomes, key=lambda outcome: (off[outcome], outcomes[outcome]))
    source = "by the draft model's scores"
    source += f" with {counted(outcomes[due], 'near tie')} the other way" if outcomes[due] else ""
    parts = [
        equal(count, getattr(due, name), f"{count} {name}, {getattr(due, name)} {source}")
        for name, count in counts.items()
    ]
    return combined(parts, f"{run.accepted} of {run.drafted} accepted, as {source}")
