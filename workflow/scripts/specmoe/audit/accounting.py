"""The check of a run's counters: exact arithmetic."""

from collections.abc import Iterator
from itertools import pairwise

from specmoe.audit.evidence import Evidence, check
from specmoe.audit.finding import (
    Finding,
    Level,
    Run,
    at_least,
    at_most,
    combined,
    equal,
    not_applicable,
)
from specmoe.config.block import Protocol, Stop
from specmoe.config.methods import BY_TYPE, METHODS
from specmoe.words import counted

# How far a printed rate may be from tokens over time; rounding of printed digits makes 0.01 %.
_RATE_TOLERANCE = 0.01
_PRINTED_MS = 0.5  # llama-speculative prints whole milliseconds
# A server's times are rounded to microseconds.


@check(
    "token accounting",
    Level.IMPOSSIBLE,
    "Give another number of tokens than its rounds and accepted tokens add up to.",
    "generated rounds drafted accepted decode_ms",
)
def check_accounting(run: Run, given: Evidence) -> Finding:
    """Check that the counters of a run agree with each other."""
    parts = [
        *_load(run, given.loads.get(run.load or "")),
        *_output(run),
        *_rate(run),
        *_rounds(run),
        *_decodes(run, given.baseline(run)),
        *_positions(run),
        *_lengths(run),
        *_rollbacks(run),
    ]
    if not parts:
        return not_applicable("no counter that could be checked is known")
    return combined(parts, _tally(run))


def _load(run: Run, of_load: int | None) -> Iterator[Finding]:
    """Check that a run and its neighbours fit the load that they were a part of.

    `of_load` are the tokens of all measured runs of the load.
    """
    seconds, tokens, rate = run.load_s, run.load_tokens, run.load_tokens_per_second
    if seconds is None or tokens is None or rate is None:
        return
    own_s = ((run.prompt_ms or 0) + (run.decode_ms or 0)) / 1000
    yield at_most(own_s, seconds, f"it took {own_s:.2f} s, its whole load {seconds:.2f} s")
    why = f"a load at {rate:.2f} tok/s for {seconds:.2f} s has {rate * seconds:.1f} tokens"
    yield equal(rate * seconds, tokens, f"{why}, not {tokens}", _RATE_TOLERANCE)
    if of_load is not None:
        why = f"{tokens} tokens in its load, {of_load} of them in measured runs"
        yield at_least(tokens, of_load, why)
    if run.load_decodes is not None:
        # The counter is read just before the load begins and just after it ends, beside passes
        # under way.
        most = run.concurrency * (1 + run.gamma) * (4 + 1.1 * run.load_decodes)
        why = (
            f"{tokens} tokens from {run.load_decodes} passes of {run.concurrency} requests, which"
            f" give {1 + run.gamma} at most to each"
        )
        yield at_most(tokens, most, why)


def _output(run: Run) -> Iterator[Finding]:
    """Check that all was generated that was asked for, and that every token's id is there."""
    if run.generated is None:
        return
    if run.protocol == Protocol.PAIRED:
        why = f"{run.generated} tokens generated, {run.n_predict} asked for"
        if run.stopped_by == Stop.EOS:
            yield at_most(run.generated, run.n_predict, f"{why} at most")
        else:
            yield equal(run.generated, run.n_predict, why)
    if run.tokens is not None:
        why = f"{len(run.tokens)} token ids for {run.generated} tokens generated"
        yield equal(len(run.tokens), run.generated, why)


def _rate(run: Run) -> Iterator[Finding]:
    """Check that the rate is tokens over time, by the protocol's own definition of both."""
    tokens, rate, ms = run.timed_tokens, run.tokens_per_second, run.decode_ms
    if not tokens or rate is None or ms is None:
        return
    found = rate * ms / 1000
    why = f"{rate:.2f} tok/s over {ms:.0f} ms are {found:.1f} tokens, not {tokens}"
    rounded = _PRINTED_MS / ms if run.protocol == Protocol.PUBLISHED and ms else 0.0
    yield equal(found, tokens, why, _RATE_TOLERANCE + rounded)


def _rounds(run: Run) -> Iterator[Finding]:
    """Check that every round gives one token of the target besides those it accepts."""
    rounds, drafted, accepted = run.rounds, run.drafted, run.accepted
    if rounds is not None and drafted is not None:
        why = f"{counted(drafted, 'token')} drafted in {counted(rounds, 'round')} of at most"
        yield at_most(drafted, run.gamma * rounds, f"{why} {run.gamma}")
    if drafted is not None and accepted is not None:
        why = f"{counted(accepted, 'token')} accepted of {drafted} drafted"
        yield at_most(accepted, drafted, why)
    if rounds is None or accepted is None or run.generated is None:
        return
    replays = (run.replays or 0) - (run.replays_rejected or 0)
    given = 1 + rounds + accepted + replays
    more = f" + {counted(replays, 'replay')}" if replays else ""
    of_rounds = f"{counted(rounds, 'round')} + {accepted} accepted{more}"
    why = f"1 + {of_rounds} = {counted(given, 'token')}, {run.generated} exist"
    if run.protocol == Protocol.PUBLISHED:
        # llama-speculative ends between rounds and counts all tokens of the last one.
        yield equal(given, run.generated, why)
    else:
        # llama-server never drafts past the tokens left to generate, so a round is cut only where
        # the text ends; what is missing are steps without a draft.
        yield at_most(given, run.generated + run.cut, why)


def _decodes(run: Run, baseline: Run | None) -> Iterator[Finding]:
    """Check that every decode gives one token of its own, prompt and rejected replays excepted."""
    due = run.passes_after_prompt
    if run.protocol != Protocol.PAIRED or run.decodes is None or due is None:
        return
    why = f"{run.decodes} decodes, of which {due} are due after the prompt"
    alone = baseline.passes_after_prompt if baseline else None
    if baseline is None or baseline.decodes is None or alone is None:
        yield at_least(run.decodes, due + 1, f"{why} and one at least for it")
        return
    prompt = baseline.decodes - alone
    why = f"{why} and {prompt} for it as in {run.baseline}"
    if run.cut:
        yield at_least(run.decodes, due + prompt, why)
        yield at_most(run.decodes, due + prompt + run.cut, why)
    else:
        yield equal(run.decodes, due + prompt, why)


def _positions(run: Run) -> Iterator[Finding]:
    """Check that a token is accepted only after all before it in its draft were."""
    positions = run.accepted_per_position
    if positions is None:
        return
    if run.accepted is not None:
        yield _adds_up(sum(positions), run.accepted, "token", "accepted by position")
    for index, (before, after) in enumerate(pairwise(positions), 1):
        tokens = f"{counted(after, 'token')} accepted"
        why = f"{tokens} at position {index + 1}, {before} at position {index}"
        yield at_most(after, before, why)
    if positions and run.rounds is not None:
        why = f"{counted(positions[0], 'token')} accepted at position 1 in"
        yield at_most(positions[0], run.rounds, f"{why} {counted(run.rounds, 'round')}")


def _lengths(run: Run) -> Iterator[Finding]:
    """Check that counts by length of draft add up to the totals."""
    for what, lengths, total in (
        ("accepted", run.accepted_lengths, run.accepted),
        ("drafted", run.drafted_lengths, run.drafted),
    ):
        if lengths is None or total is None or run.rounds is None:
            continue
        yield _adds_up(sum(lengths), run.rounds, "round", f"by tokens {what}")
        tokens = sum(length * count for length, count in enumerate(lengths))
        yield _adds_up(tokens, total, "token", f"{what} by round")


def _adds_up(total: int, whole: int, noun: str, how: str) -> Finding:
    return equal(total, whole, f"{counted(total, noun)} {how}, {whole} in all")


def _rollbacks(run: Run) -> Iterator[Finding]:
    """Check that a method under which targets undo rejected tokens replayed nothing."""
    if run.speculative and METHODS[BY_TYPE[run.method]].rolls_back and run.replays is not None:
        why = f"{counted(run.replays, 'replay')}, where {run.draft} needs none"
        yield at_most(run.replays, 0, why)


def _tally(run: Run) -> str:
    generated, drafted, accepted = (
        "an unknown number of" if count is None else str(count)
        for count in (run.generated, run.drafted, run.accepted)
    )
    if run.rounds is None:
        return f"{counted(generated, 'token')}; nothing was drafted"
    return (
        f"{counted(generated, 'token')} from {counted(run.rounds, 'round')} with {drafted} drafted"
        f" and {accepted} accepted"
    )
