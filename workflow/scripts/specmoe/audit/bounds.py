"""The checks of time and memory bandwidth: two bounds, and two expectations.

Both bounds favour the run. The time counts rounds only, each as one token of the fastest baseline
run; the bytes are those of the weights that any single token needs. The expectations include more
and find more: they assume that a run meets the machine that its own baseline met, and that its
tokens activate experts as those of other text do, or uniformly.
"""

from collections.abc import Callable

import pandas as pd

from specmoe.audit.evidence import Evidence, Finding, Run, at_least, at_most, combined
from specmoe.audit.output import SHORTEST_TEXT
from specmoe.config.block import Protocol, Stop
from specmoe.config.methods import METHODS, Method
from specmoe.models.info import Size
from specmoe.runs.schema import DISTURBED
from specmoe.text import counted

_IDENTITY = ["run", "suite", "target", "draft", "gamma"]


def time_needed(passes: float, drafted: float, token_time: float, draft_time: float) -> float:
    """Return the least time of forward passes over the target and of drafted tokens.

    No pass is faster than one over a single token. In units of a token's time, tokens over this are
    the largest speedup.
    """
    return passes * token_time + drafted * draft_time


def tokens_per_round(rounds: float, drafted: float, requests: float = 1) -> float:
    """Return the mean tokens of a verification's forward pass, which all requests share."""
    return requests * (1 + drafted / rounds) if rounds else requests


def draft_time(run: Run, given: Evidence) -> float:
    """Return the least milliseconds of a drafted token, from runs of the draft model or its proxy.

    A proxy with more bytes is slower than the draft model, so its time is scaled by the bytes of a
    pass. One with fewer bytes is faster, and its time is used as it is. A model that was timed in
    neither way counts as taking no time. So do heads, MTP layers and n-grams, which no run times,
    and draft models with options of the engine.
    """
    draft, times, sizes = run.draft_model, given.times_of(run), given.sizes
    if not run.by_model or draft is None or run.engine_options:
        return 0.0
    if draft in times:
        return times[draft]
    proxy = given.settings.draft_proxies.get(draft)
    if proxy is None or proxy not in times or draft not in sizes or proxy not in sizes:
        return 0.0
    share = min(1.0, sizes[draft].pass_bytes(1) / sizes[proxy].pass_bytes(1))
    return times[proxy] * share


def check_draft_time(run: Run, given: Evidence) -> Finding:
    """Check that decoding took at least the time of its drafted tokens and rounds one by one.

    Requests at once share passes. The bound holds for each of them, and for all passes of their
    load together: no pass over tokens of many is faster than one over a single token.
    """
    target, times = run.target, given.times_of(run)
    if target not in times:
        return Finding(f"{target} has no baseline run to be timed by")
    token_ms, tolerated, parts = times[target], 1 - given.limits.time_tolerance, []
    took, rounds, drafted = run.decode_ms, run.rounds, run.drafted
    if run.speculative and took is not None and rounds is not None and drafted is not None:
        draft_ms = draft_time(run, given)
        needed = time_needed(rounds, drafted, token_ms, draft_ms)
        why = (
            f"{counted(rounds, 'round')} at {token_ms:.2f} ms ({target}) and"
            f" {counted(drafted, 'drafted token')} at {draft_ms:.2f} ms ({run.draft}) need"
            f" {needed:.0f} ms; decoding took {took:.0f} ms"
        )
        parts.append(at_least(took, needed * tolerated, why))
    if run.load_s is not None and run.load_decodes is not None:
        needed, took = run.load_decodes * token_ms, 1000 * run.load_s
        why = (
            f"{counted(run.load_decodes, 'pass', 'passes')} of its load at {token_ms:.2f} ms"
            f" ({target}, a single token) need {needed:.0f} ms; the load took {took:.0f} ms"
        )
        parts.append(at_least(took, needed * tolerated, why))
    reason = "time, rounds or drafted tokens are not known"
    none = Finding(reason if run.speculative else "nothing was drafted")
    return combined(parts) if parts else none


def check_bandwidth(run: Run, given: Evidence) -> Finding:
    """Check that memory can deliver what every pass reads at least: the weights for one token."""
    return _read_rate(run, given, lambda size, _: size.pass_bytes(1))


def check_baseline_time(run: Run, given: Evidence) -> Finding:
    """Check that decoding took the time of all its passes at the speed of its own baseline.

    Rounds, replays and other passes count as one token each, drafting by its own logged time. The
    draft model reads every batch of a round or replay again (`common_speculative_process` in
    llama.cpp), which counts as one drafted token.
    """
    baseline = given.baseline(run)
    if not run.speculative:
        return Finding("nothing was drafted")
    if run.protocol != Protocol.PAIRED or baseline is None:
        return Finding("it has no baseline of the same program and prompt")
    if baseline.disturbed_reason is not None:
        return Finding(f"{DISTURBED} during its baseline")
    if run.load is not None:
        return Finding("its passes and its drafting were shared with other requests")
    passes, took = run.passes_after_prompt, baseline.decode_ms
    known = None not in (run.decode_ms, run.rounds, run.draft_ms)
    if not (known and passes and took and baseline.timed_tokens):
        return Finding("time or number of passes is not known")
    assert run.decode_ms is not None and run.rounds is not None and run.draft_ms is not None
    fewest = min(run.timed_tokens or 0, baseline.timed_tokens)
    if run.stopped_by == Stop.EOS and fewest < SHORTEST_TEXT:
        return Finding(f"its text ended after fewer than {SHORTEST_TEXT} tokens")
    token_ms = took / baseline.timed_tokens
    draft_ms = run.draft_ms / run.drafted if run.drafted else 0.0
    batches = run.rounds + (run.replays or 0)
    needed = passes * token_ms + run.draft_ms + batches * draft_ms
    why = (
        f"{counted(passes, 'pass', 'passes')} at {token_ms:.2f} ms ({baseline.run}),"
        f" {run.draft_ms:.0f} ms of drafting and {counted(batches, 'batch', 'batches')} that the"
        f" draft model reads again need {needed:.0f} ms; decoding took {run.decode_ms:.0f} ms"
    )
    return at_least(run.decode_ms, needed * (1 - given.limits.time_tolerance), why)


def check_expected_experts(run: Run, given: Evidence) -> Finding:
    """Check that memory can deliver the experts that a round's tokens are expected to activate.

    Where the target's passes were timed, so many experts were counted in passes of that size.
    Elsewhere routing is taken as independent and uniform, which activates the most.
    """
    if run.target in given.sizes and not given.sizes[run.target].experts:
        return Finding(f"{run.target} has no experts")
    if not run.speculative:
        return Finding("nothing was drafted, so every pass has one token")
    return _read_rate(run, given, Size.pass_bytes)


def _read_rate(run: Run, given: Evidence, round_bytes: Callable[[Size, float], float]) -> Finding:
    """Check that the passes read their weights no faster than memory delivers them.

    `round_bytes` returns what a verification over a mean number of tokens reads. Other passes count
    as those of a single token. Those of a request are read within its own time, whoever shares
    them.
    """
    bandwidth, limits = given.bandwidth, given.limits
    if bandwidth is None:
        return Finding("the machine's memory bandwidth is not known")
    if run.target not in given.sizes:
        return Finding(f"the size of {run.target} is not known")
    target = given.sizes[run.target]
    if target.file_bytes <= limits.cache_bytes:
        return Finding(f"{run.target} fits in a cache and may be read from it")
    passes = run.passes_after_prompt if run.speculative else run.timed_tokens
    if not passes or not run.decode_ms:
        return Finding("time or number of passes is not known")
    rounds, drafted = run.rounds or 0, run.drafted or 0
    n_tokens = tokens_per_round(rounds, drafted, run.concurrency)
    read = rounds * round_bytes(target, n_tokens) + max(passes - rounds, 0) * target.pass_bytes(1)
    of_draft, and_draft = _draft_bytes(run, given)
    rate = (read + of_draft) / run.decode_ms * 1000
    why = (
        f"{counted(passes, 'pass', 'passes')} of {read / passes / 1e9:.2f} GB ({run.target},"
        f" {n_tokens:.1f} tokens a round){and_draft} in {run.decode_ms / 1000:.2f} s read"
        f" {rate / 1e9:.0f} GB/s; memory gives {bandwidth / 1e9:.0f} at most"
    )
    return at_most(rate, bandwidth, why)


def _draft_bytes(run: Run, given: Evidence) -> tuple[float, str]:
    """Return the bytes that drafting reads, and the words for them.

    They are not known of heads, which draft several tokens in one pass, and of n-grams.
    """
    if not run.speculative or run.drafted is None:
        return 0.0, ""
    draft, mtp_bytes = given.sizes.get(run.draft_model or ""), given.sizes[run.target].mtp_bytes
    own_layer = run.method == METHODS[Method.MTP].engine and run.draft_model is None
    if run.by_model and draft is not None:
        each, whole = draft.pass_bytes(1), float(draft.file_bytes)
    elif own_layer and mtp_bytes is not None:
        each = whole = mtp_bytes
    else:
        return 0.0, f", {run.draft} of unknown size left out,"
    if whole <= given.limits.cache_bytes:
        return 0.0, f", {run.draft} left out as it fits in the cache,"
    return run.drafted * each, f" and {run.drafted} of {each / 1e9:.2f} GB ({run.draft})"


def required_time(given: Evidence) -> pd.DataFrame:
    """Return the decode time of each speculative run, and the time that its own passes need.

    Columns: run, suite, target, draft, gamma, family (`moe` or `dense`; unknown counts as dense),
    decode_ms, required_ms (rounds and drafted tokens at their single-token times, no tolerance),
    too_fast: whether it took less than that by more than the tolerance; too_fast_alone: whether it
    did even if drafting took no time.
    """
    tolerated = 1 - given.limits.time_tolerance
    rows = []
    for run in given.runs.values():
        took, token_ms = run.decode_ms, given.times_of(run).get(run.target)
        if not run.speculative or token_ms is None or took is None:
            continue
        if run.rounds is None or run.drafted is None:
            continue
        needed, alone = (
            time_needed(run.rounds, run.drafted, token_ms, ms)
            for ms in (draft_time(run, given), 0.0)
        )
        moe = run.target in given.sizes and given.sizes[run.target].experts > 0
        too_fast = took < needed * tolerated, took < alone * tolerated
        identity = (getattr(run, column) for column in _IDENTITY)
        rows.append((*identity, "moe" if moe else "dense", took, needed, *too_fast))
    found = ["family", "decode_ms", "required_ms", "too_fast", "too_fast_alone"]
    return pd.DataFrame(rows, columns=[*_IDENTITY, *found])
