"""The checks of a run's output: failed decodes, losslessness, repeats, collapse, and controls.

Loops are found in token ids alone. A refrain, a table or a list repeats n-grams and is no loop, as
each of its turns brings something new.
"""

from collections import Counter
from functools import lru_cache
from math import ceil, isnan

import numpy as np

from specmoe.audit.evidence import Evidence, Finding, Run, at_least, at_most, combined, equal
from specmoe.measure.trace import common_prefix
from specmoe.text import counted

# Fewer tokens may be the same by chance, or by the habit of a trained model.
SHORTEST_TEXT = 16
_FORCED = "its acceptance was forced, so its text is not the target's"
# Of 24 looping texts of a small chat model, 7 have periods of 33 to 81.
LONGEST_PERIOD = 128  # tokens
# Of 27 000 pieces of code, tables, poems and lists, 8 in 10 000 have a tenth of their text in
# stretches of so many turns, and 35 in 10 000 in those of one turn fewer.
_LEAST_TURNS = 3
_LEAST_TOKENS = 16


def check_failed_decodes(run: Run, _: Evidence) -> Finding:
    """Check that the engine reported no decode as failed."""
    if run.decode_failures is None:
        return Finding("failed decodes were not counted")
    return at_most(run.decode_failures, 0, f"{counted(run.decode_failures, 'decode')} failed")


def check_losslessness(run: Run, given: Evidence) -> Finding:
    """Check that greedy speculation gives the baseline's tokens, near ties excepted."""
    baseline, divergence = given.baseline(run), given.divergences.get(run.run)
    if not run.speculative or run.temperature > 0:
        return Finding("only greedy speculative runs must equal their baseline")
    if run.forced_acceptance is not None:
        return Finding(_FORCED)
    if baseline is None or run.tokens is None or baseline.tokens is None:
        return Finding("tokens of the run, or of a baseline with its options, are not known")
    if run.prompt_sha256 != baseline.prompt_sha256:
        return Finding(f"{baseline.run} had another prompt, by its digest", judged=False)
    if run.tokens == baseline.tokens:
        return Finding(f"all {len(run.tokens)} tokens are the baseline's", ratio=0.0)
    prefix = common_prefix(run.tokens, baseline.tokens)
    leaves = f"leaves {baseline.run} after {prefix} of {len(baseline.tokens)} tokens"
    if divergence is None or divergence.position != prefix:
        return Finding(f"{leaves}; the baseline's probabilities there are not known", judged=False)
    # Rows of other requests move gaps in ways that batches of one text do not show: a dense target
    # in Q8_0, of which these move none, left its baseline at 0.006 nats with four requests at once.
    # So the cap alone holds there. The baseline's text is read in batches too, so its token may be
    # the one behind.
    gap, limits, (_, _, moved, places) = abs(divergence.gap_nats), given.limits, divergence
    widest = limits.tie_cap_nats if run.concurrency > 1 else limits.widest_tie(moved, places)
    why = f"batches move {counted(places, 'gap')} by {moved:.3g} nats, ties have {widest:.3g}"
    return at_most(gap, widest, f"{leaves}, for a token {gap:.3g} nats from its own; {why} at most")


def check_unjudged_text(run: Run, given: Evidence) -> Finding:
    """Check that somebody judged where a run leaves its baseline.

    The workflow judges all such places. Tokens that somebody changed in all repeats alike are equal
    to each other, and lead to places that were not judged.
    """
    finding = check_losslessness(run, given)
    unknown = finding.judged and isnan(finding.ratio)
    return finding if unknown else at_most(float(not finding.judged), 0, finding.why)


def check_batch_noise(run: Run, given: Evidence) -> Finding:
    """Check that the size of a batch alone moves the target's gaps no more than rounding does."""
    divergence = given.divergences.get(run.run)
    if divergence is None:
        return Finding("the target's probabilities in batches were not measured")
    moved = divergence.moved_nats
    why = f"in the baseline, batches alone move gaps of this target by {moved:.3g} nats"
    return at_most(moved, given.limits.tie_cap_nats, why)


def check_determinism(run: Run, given: Evidence) -> Finding:
    """Check that a run has the tokens that most repeats of it have; among equals, the earliest."""
    repeats = given.repeats.get(run.repeated, [])
    if run.tokens is None:
        return Finding("tokens are not known")
    if len(repeats) < 2:
        return Finding("there is one repeat")
    if len({prompt for prompt, _ in repeats}) > 1:
        return Finding("the prompt differs between repeats, by its digest", judged=False)
    if run.concurrency > 1:
        return Finding("its batches had tokens of other requests, others in every repeat")
    # Among equally common texts, `most_common` returns the first one seen.
    [(tokens, _)] = Counter(text for _, text in repeats).most_common(1)
    prefix, length = common_prefix(run.tokens, tokens), max(len(run.tokens), len(tokens))
    return equal(prefix, length, f"{prefix} of {length} tokens are those of most repeats")


def check_collapsed_output(run: Run, given: Evidence) -> Finding:
    """Check that a run's text does not show a fault of weights, kernels or drafting.

    Weights or kernels that make NaN write one token again and again, or one text for every prompt,
    and are lossless. A run that loops where its baseline does not has a fault of its own. A loop
    that the baseline has too is how the model writes.
    """
    if run.forced_acceptance is not None:
        return Finding(_FORCED)
    if run.tokens is None or len(run.tokens) < SHORTEST_TEXT:
        return Finding(f"fewer than {SHORTEST_TEXT} tokens are known")
    prompts, texts = map(set, zip(*given.outputs[run.setting], strict=True))
    why = f"its commonest token is {most_of_one(run.tokens)} of {len(run.tokens)}"
    least = min(most_of_one(text) / len(text) for text in texts)
    parts = [at_most(least, given.limits.commonest_token, why)]
    if len(prompts) > 1:
        why = f"{counted(len(texts), 'different text')} for {len(prompts)} prompts"
        parts.append(at_least(len(texts), 2, why))
    baseline = given.baseline(run)
    if baseline is not None and baseline.tokens is not None:
        loops, others = looping(run.tokens), looping(baseline.tokens)
        why = f"{loops:.0%} of its text loops, {others:.0%} of its baseline's"
        parts.append(at_most(loops - others, given.limits.looping_excess, why))
    return combined(parts)


def check_controls(run: Run, given: Evidence) -> Finding:
    """Check the controls, whose outcome is known beforehand.

    A target must accept nearly all of its own drafted tokens that it judges. Of an unrelated draft
    model it must accept nearly nothing, unless its text loops, which any model continues. The run
    must be slower than the fastest baseline, unless the machine was disturbed during it or its own.
    """
    same_file = run.target_sha256 is not None and run.target_sha256 == run.draft_sha256
    is_self = run.by_model and (run.draft_model == run.target or same_file)
    unrelated = run.by_model and run.draft_model in given.settings.unrelated_drafts
    if run.forced_acceptance is not None or not (is_self or unrelated):
        return Finding("no control")
    if not run.drafted or run.accepted is None:
        return Finding("drafted or accepted tokens are not known")
    acceptance = run.accepted / run.drafted
    of_drafted = f"{run.accepted} of {run.drafted} drafted tokens accepted ({acceptance:.1%})"
    if is_self:
        share, rejected = given.limits.self_acceptance, _fewest_rejections(run)
        why = f"{of_drafted}, {rejected} at least rejected; of its own it accepts {share:.0%}"
        judged = run.accepted + rejected
        return at_least(run.accepted / judged if judged else 1.0, share, why)
    share = given.limits.unrelated_acceptance
    why = f"{of_drafted}; the models are unrelated, so {share:.0%} at most are due"
    parts, baseline = [], given.baseline(run)
    if looping(run.tokens or ()) <= given.limits.looping_share:
        parts.append(at_most(acceptance, share, why))
    if baseline is not None and baseline.disturbed_reason is run.disturbed_reason is None:
        rate, plain = run.numbers.tokens_per_second, 1000 / given.token_ms(run, run.target)
        parts.append(at_most(rate, plain, f"{rate:.2f} tok/s, {plain:.2f} in the fastest baseline"))
    return combined(parts, unknown="its text loops, and no baseline is there to compare with")


def _fewest_rejections(run: Run) -> int:
    """Return the fewest rounds that can have had a token rejected.

    A round ends at its first rejected token, so one early near tie leaves many tokens unjudged, and
    is one disagreement all the same.
    """
    fewest: int = ceil((run.numbers.drafted - run.numbers.accepted) / max(run.gamma, 1))
    drafted, accepted = run.drafted_lengths, run.accepted_lengths
    if drafted is None or accepted is None:
        return fewest
    whole = sum(map(min, zip(drafted, accepted, strict=False)))
    return max(fewest, sum(drafted) - whole)


@lru_cache(maxsize=1024)
def most_of_one(tokens: tuple[int, ...]) -> int:
    """Return how often a text has its commonest token."""
    return max(Counter(tokens).values())


@lru_cache(maxsize=1024)  # the repeats of a run write one text, and so does its baseline
def looping(tokens: tuple[int, ...]) -> float:
    """Return the share of a text in loops, stretches of three turns and 16 tokens at least."""
    text, inside = np.asarray(tokens), np.zeros(len(tokens), dtype=bool)
    for period in range(1, min(LONGEST_PERIOD, len(text) // _LEAST_TURNS) + 1):
        same = (text[period:] == text[:-period]).astype(np.int8)
        edges = np.flatnonzero(np.diff(same, prepend=0, append=0))
        for start, end in zip(edges[::2], edges[1::2] + period, strict=True):
            if end - start >= max(_LEAST_TURNS * period, _LEAST_TOKENS):
                inside[start:end] = True
    return float(inside.mean()) if tokens else 0.0
