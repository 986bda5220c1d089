"""The checks of a run's counters and tokens: exact arithmetic, and equality."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from math import ceil
from typing import NamedTuple

from specmoe.audit.finding import (
    Finding,
    Run,
    at_least,
    at_most,
    combined,
    equal,
    not_applicable,
)
from specmoe.audit.repetition import longest_loop, looping, most_of_one
from specmoe.audit.ties import Gap
from specmoe.config.audit import AuditSettings
from specmoe.config.block import Protocol, Stop
from specmoe.config.methods import METHODS
from specmoe.measure.common_prefix import common_prefix
from specmoe.words import counted

# How far a printed rate may be from tokens over time; rounding of printed digits makes 0.01 %.
RATE_TOLERANCE = 0.01
_PRINTED_MS = 0.5  # llama-speculative prints whole milliseconds

# A server's times are rounded to microseconds.
_ROUNDING_MS = 0.01
# Fewer tokens may be the same by chance, or by the habit of a trained model.
SHORTEST_TEXT = 16


class Answers(NamedTuple):
    """How many prompts a target answered with the same settings, and by which texts.

    `commonest` is the least share of a text that its commonest token has.
    """

    prompts: int
    texts: int
    commonest: float


def check_accounting(run: Run, baseline: Run | None, of_load: int | None = None) -> Finding:
    """Check that the counters of a run agree with each other; see the parts for their sources.

    `of_load` are the tokens of all measured runs of its load.
    """
    parts = [
        *_load(run, of_load),
        *_output(run),
        *_rate(run),
        *_rounds(run),
        *_decodes(run, baseline),
        *_positions(run),
    ]
    return combined([*parts, *_lengths(run), *_times(run), *_rollbacks(run)], _tally(run))


def check_failed_decodes(run: Run) -> Finding:
    """Check that the engine reported no decode as failed."""
    if run.decode_failures is None:
        return not_applicable("failed decodes were not counted")
    return at_most(run.decode_failures, 0, f"{counted(run.decode_failures, 'decode')} failed")


def check_losslessness(
    run: Run, baseline: Run | None, divergence: Gap | None, settings: AuditSettings
) -> Finding:
    """Check that greedy speculation gives the baseline's tokens, near ties excepted."""
    if not run.speculative or run.temperature > 0:
        return not_applicable("only greedy runs with a draft must equal their baseline")
    if run.imposed_acceptance is not None:
        return not_applicable("its acceptance was imposed, so its text is not the target's")
    if baseline is None or run.tokens is None or baseline.tokens is None:
        return not_applicable("tokens of the run or of its baseline are not known")
    if run.tokens == baseline.tokens:
        return Finding(f"all {len(run.tokens)} tokens are the baseline's", ratio=0.0)
    prefix = _shared(run, baseline)
    leaves = f"leaves {baseline.run} after {prefix} of {len(baseline.tokens)} tokens"
    if divergence is None:
        return not_applicable(f"{leaves}; the baseline's probabilities there are not known")
    if divergence.position != prefix:
        return not_applicable(
            f"{leaves}; the baseline's probabilities are known for {divergence.position} only"
        )
    # Requests at once read a baseline's text in batches too, so its token may be the one behind.
    gap = abs(divergence.gap_nats)
    allowed = _widest_tie(run, divergence, settings)
    cause = _cause(run, divergence, allowed)
    side = "below" if divergence.gap_nats >= 0 else "above"
    return at_most(gap, allowed, f"{leaves}, for one {gap:.3g} nats {side} the baseline's: {cause}")


def _widest_tie(run: Run, divergence: Gap, settings: AuditSettings) -> float:
    """Return how wide a gap rounding may have closed, in nats.

    Rows of other requests move gaps in ways that reading one text in batches does not show: a dense
    target in Q8_0, whose batches of one text move none at all, left its baseline at 0.006 nats with
    four requests at once. So the cap alone holds there.
    """
    if run.concurrency > 1:
        return settings.tie_cap_nats
    return settings.widest_tie(divergence.moved_nats)


def _cause(run: Run, divergence: Gap, allowed: float) -> str:
    seen = f"batches were seen to move gaps of {run.target} by {divergence.moved_nats:.3g}"
    if run.concurrency > 1:
        word = "a" if abs(divergence.gap_nats) <= allowed else "no"
        return f"{word} tie, as beside other requests a tie has {allowed:.3g} at most"
    if abs(divergence.gap_nats) > allowed:
        return f"no tie, as {seen} at most and a tie has {allowed:.3g} at most"
    if divergence.closed_by is not None:
        return f"a tie, as without a draft batches of {divergence.closed_by} close that gap"
    return f"a tie, as {seen}"


def check_batch_noise(divergence: Gap | None, settings: AuditSettings) -> Finding:
    """Check that the size of a batch alone moves the target's gaps no more than rounding does."""
    if divergence is None:
        return not_applicable("the target was not asked for its probabilities in batches")
    moved = divergence.moved_nats
    why = f"without a draft, batches alone move gaps of this target by {moved:.3g} nats"
    return at_most(moved, settings.tie_cap_nats, why)


def check_determinism(run: Run, reference: Run | None, repeats: int) -> Finding:
    """Check that a run has the tokens that most repeats of it have.

    `reference` is the earliest of those, `repeats` how many there are with tokens.
    """
    if run.tokens is None or reference is None or reference.tokens is None:
        return not_applicable("tokens are not known")
    if repeats < 2:
        return not_applicable("there is one repeat")
    if run.concurrency > 1:
        return not_applicable("its batches had tokens of other requests, others in every repeat")
    if run.prompts_before:
        return not_applicable("it had seen other prompts, in another order in every repeat")
    length = max(len(run.tokens), len(reference.tokens))
    if run.tokens == reference.tokens:
        return equal(length, length, f"{counted(length, 'token')} as in repeat {reference.repeat}")
    prefix = _shared(run, reference)
    why = f"leaves repeat {reference.repeat} after {prefix} of {length} tokens"
    return equal(prefix, length, why)


def check_collapsed_output(
    run: Run, baseline: Run | None, answers: Answers | None, settings: AuditSettings
) -> Finding:
    """Check that a run's text does not show a fault of weights, kernels or drafting.

    Weights or kernels that make NaN write one token again and again whatever the prompt, or one
    text for every prompt, and lose nothing to speculation: `answers` are those of its target with
    the same settings. A run that loops where its baseline does not has a fault of its own. A loop
    that the baseline writes too, or a target alone, is how the model writes: it is named, and
    breaks nothing.
    """
    if run.imposed_acceptance is not None:
        return not_applicable("its acceptance was imposed, so its text is not the target's")
    if run.tokens is None or answers is None or len(run.tokens) < SHORTEST_TEXT:
        return not_applicable(f"fewer than {SHORTEST_TEXT} tokens are known")
    most = most_of_one(run.tokens)
    why = f"its commonest token is {most} of {len(run.tokens)}"
    parts = [at_most(answers.commonest, settings.commonest_token, why)]
    if answers.prompts > 1:
        why = f"{counted(answers.texts, 'different text')} for {answers.prompts} prompts"
        parts.append(at_least(answers.texts, 2, why))
    parts += _loops(run, baseline, settings)
    return combined(parts, "; ".join(part.why for part in parts))


def check_controls(run: Run, baseline: Run | None, settings: AuditSettings) -> Finding:
    """Check runs whose outcome is known beforehand: a draft that knows all, one that knows nothing.

    A target must accept nearly all that it drafted itself and came to judge. Of an unrelated draft
    it must accept nearly nothing, and the run must be slower than its baseline, unless the machine
    was disturbed during either.
    """
    itself = _drafts_for_itself(run)
    unrelated = run.by_model and run.draft_model in settings.unrelated_drafts
    if run.imposed_acceptance is not None or not (itself or unrelated):
        return not_applicable("no control")
    if not run.drafted or run.accepted is None:
        return not_applicable("drafted or accepted tokens are not known")
    acceptance = run.accepted / run.drafted
    counted = f"{run.accepted} of {run.drafted} drafted tokens accepted ({acceptance:.1%})"
    if itself:
        share, rejected = settings.self_acceptance, _fewest_rejections(run)
        why = (
            f"{counted}, {rejected} at least rejected; the target drafts for itself, so it accepts"
            f" {share:.0%} at least of what it judges"
        )
        judged = run.accepted + rejected
        return at_least(run.accepted / judged if judged else 1.0, share, why)
    share = settings.unrelated_acceptance
    why = f"{counted}; the draft knows nothing of the target, so {share:.0%} at most are due"
    parts = [at_most(acceptance, share, why), *_slower(run, baseline)]
    return combined(parts, "; ".join(part.why for part in parts))


def _loops(run: Run, baseline: Run | None, settings: AuditSettings) -> Iterator[Finding]:
    """Check that a run loops no more than its baseline; where neither has a fault, name the loop.

    Yields nothing for a text without a loop.
    """
    assert run.tokens is not None
    loop = longest_loop(run.tokens)
    if loop is None:
        return
    why = (
        f"{loop.length} of {len(run.tokens)} tokens, from token {loop.start + 1} on, repeat a"
        f" sequence of {loop.period}"
    )
    if not run.speculative:
        yield not_applicable(f"{why}: the model writes so by itself")
    elif baseline is None or baseline.tokens is None:
        yield not_applicable(f"{why}; whether its baseline loops is not known")
    else:
        others = looping(baseline.tokens)
        excess, allowed = looping(run.tokens) - others, settings.looping_excess
        cause = f"in {run.baseline}, {others:.0%} of the text loops"
        own = "" if excess > allowed else ", so the model writes so by itself"
        yield at_most(excess, allowed, f"{why}; {cause}{own}")


def _load(run: Run, of_load: int | None) -> Iterator[Finding]:
    """Check that a run and its neighbours fit the load that they were a part of."""
    seconds, tokens, rate = run.load_s, run.load_tokens, run.load_tokens_per_second
    if seconds is None or tokens is None or rate is None:
        return
    own_s = ((run.prompt_ms or 0) + (run.decode_ms or 0)) / 1000
    yield at_most(own_s, seconds, f"it took {own_s:.2f} s, its whole load {seconds:.2f} s")
    why = f"a load at {rate:.2f} tok/s for {seconds:.2f} s has {rate * seconds:.1f} tokens"
    found = equal(rate * seconds, tokens, f"{why}, not {tokens}")
    assert found.ratio is not None
    yield replace(found, ratio=found.ratio / (1 + RATE_TOLERANCE))
    if of_load is not None:
        why = f"{tokens} tokens in its load, {of_load} of them in measured runs"
        yield at_least(tokens, of_load, why)
    if run.load_decodes is not None:
        most = run.concurrency * (1 + run.longest) * _passes_near(run.load_decodes)
        why = (
            f"{tokens} tokens from {run.load_decodes} passes of {run.concurrency} requests, which"
            f" give {1 + run.longest} at most to each"
        )
        yield at_most(tokens, most, why)


def _passes_near(counted: int) -> float:
    """Return the most passes whose tokens may have come while so many were counted.

    The counter is read just before the load begins and just after it ends, beside passes under way.
    """
    return 4 + 1.1 * counted


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
    counted = rate * ms / 1000
    why = f"{rate:.2f} tok/s over {ms:.0f} ms are {counted:.1f} tokens, not {tokens}"
    found = equal(counted, tokens, why)
    assert found.ratio is not None
    rounded = _PRINTED_MS / ms if run.protocol == Protocol.PUBLISHED and ms else 0.0
    yield replace(found, ratio=found.ratio / (1 + RATE_TOLERANCE + rounded))


def _rounds(run: Run) -> Iterator[Finding]:
    """Check that every round gives one token of the target besides those it accepts."""
    rounds, drafted, accepted = run.rounds, run.drafted, run.accepted
    if rounds is not None and drafted is not None:
        most = run.longest * rounds
        of_rounds = f"{counted(rounds, 'round')} of at most {run.longest}"
        why = f"{counted(drafted, 'token')} drafted in {of_rounds}"
        yield at_most(drafted, most, why)
    if drafted is not None and accepted is not None:
        yield at_most(
            accepted, drafted, f"{counted(accepted, 'token')} accepted of {drafted} drafted"
        )
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
    prompt = _prompt_decodes(baseline) if baseline else None
    if prompt is None:
        yield at_least(run.decodes, due + 1, f"{why} and one at least for it")
    else:
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
        total = sum(positions)
        why = f"{counted(total, 'token')} accepted by position, {run.accepted} in all"
        yield equal(total, run.accepted, why)
    for index, (before, after) in enumerate(pairwise(positions), 1):
        tokens = f"{counted(after, 'token')} accepted"
        why = f"{tokens} at position {index + 1}, {before} at position {index}"
        yield at_most(after, before, why)
    if positions and run.rounds is not None:
        tokens = f"{counted(positions[0], 'token')} accepted"
        why = f"{tokens} at position 1 in {counted(run.rounds, 'round')}"
        yield at_most(positions[0], run.rounds, why)


def _lengths(run: Run) -> Iterator[Finding]:
    """Check that counts by length of draft, and by type of a chain, add up to the totals."""
    for what, lengths, total in (
        ("accepted", run.accepted_lengths, run.accepted),
        ("drafted", run.drafted_lengths, run.drafted),
    ):
        if lengths is None or total is None or run.rounds is None:
            continue
        rounds = sum(lengths)
        yield equal(
            rounds, run.rounds, f"{counted(rounds, 'round')} by tokens {what}, {run.rounds} in all"
        )
        tokens = sum(length * count for length, count in enumerate(lengths))
        yield equal(tokens, total, f"{counted(tokens, 'token')} {what} by round, {total} in all")
    if run.drafted_by_type is not None and run.drafted is not None:
        tokens = sum(run.drafted_by_type)
        yield equal(
            tokens, run.drafted, f"{counted(tokens, 'token')} drafted by type, {run.drafted} in all"
        )


def _times(run: Run) -> Iterator[Finding]:
    """Check that every token has a time, none before an earlier one's, the last at the end."""
    times = run.token_ms
    if times is None or run.prompt_ms is None or run.decode_ms is None:
        return
    yield equal(
        len(times), run.generated or 0, f"{counted(len(times), 'time')} of {run.generated} tokens"
    )
    back = max((before - after for before, after in pairwise(times)), default=0.0)
    yield at_most(back, 0, f"a token is there {back:.3f} ms before the one it follows")
    if times:
        end = run.prompt_ms + run.decode_ms
        off = abs(times[-1] - end)
        why = f"the last token is there after {times[-1]:.3f} ms, the answer ended after {end:.3f}"
        yield at_most(off, _ROUNDING_MS, why)


def _rollbacks(run: Run) -> Iterator[Finding]:
    """Check that a method under which targets undo rejected tokens replayed nothing."""
    undone = all(METHODS[method].rolls_back for method in run.methods)
    if run.speculative and undone and run.replays is not None:
        yield at_most(
            run.replays, 0, f"{counted(run.replays, 'replay')}, where {run.draft} needs none"
        )


def _slower(run: Run, baseline: Run | None) -> Iterator[Finding]:
    if baseline is None or baseline.tokens_per_second is None or run.tokens_per_second is None:
        return
    if baseline.disturbed or run.disturbed:
        return
    why = f"{run.tokens_per_second:.2f} tok/s, {baseline.tokens_per_second:.2f} without a draft"
    yield at_most(run.tokens_per_second, baseline.tokens_per_second, why)


def _prompt_decodes(baseline: Run) -> int | None:
    due = baseline.passes_after_prompt
    return None if baseline.decodes is None or due is None else baseline.decodes - due


def _drafts_for_itself(run: Run) -> bool:
    same_file = run.target_sha256 is not None and run.target_sha256 == run.draft_sha256
    return run.by_model and (run.draft_model == run.target_model or same_file)


def _fewest_rejections(run: Run) -> int:
    """Return the fewest rounds whose draft can have had a token rejected.

    A round ends at its first rejected token, and the target judges none after it. So one near tie
    early in a long draft leaves many drafted tokens unused, and is one disagreement all the same.
    """
    assert run.drafted is not None
    assert run.accepted is not None
    fewest = ceil((run.drafted - run.accepted) / max(run.longest, 1))
    drafted, accepted = run.drafted_lengths, run.accepted_lengths
    if drafted is None or accepted is None:
        return fewest
    whole = sum(map(min, zip(drafted, accepted, strict=False)))
    return max(fewest, sum(drafted) - whole)


def _shared(run: Run, other: Run) -> int:
    return common_prefix(list(run.tokens or ()), list(other.tokens or ()))


def _tally(run: Run) -> str:
    if run.rounds is None:
        return f"{counted(_known(run.generated), 'token')}; nothing was drafted"
    return (
        f"{counted(_known(run.generated), 'token')} from {counted(run.rounds, 'round')} with"
        f" {_known(run.drafted)} drafted and {_known(run.accepted)} accepted"
    )


def _known(count: int | None) -> str:
    return "an unknown number of" if count is None else str(count)
