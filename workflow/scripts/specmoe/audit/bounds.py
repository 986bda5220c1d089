"""The checks of time and memory bandwidth: two bounds, and four expectations.

Both bounds favour the run. The time counts rounds only, each as one token of the fastest baseline
run; the bytes are those of the weights that any single token needs. They hold where the machine was
steady, and where its memory's peak is stated; elsewhere a run may meet a machine that is faster
than it was ever seen, so that the same numbers are expectations. Two more expectations include more
and find more: they assume that a run meets the machine that its own baseline met, and that its
tokens activate experts as those of other text do, or uniformly.
"""

from collections.abc import Callable
from functools import partial
from math import isnan

import pandas as pd

from specmoe.audit.evidence import Evidence, Finding, Run, at_least, at_most, combined
from specmoe.audit.output import SHORTEST_TEXT
from specmoe.config.block import Protocol, Stop
from specmoe.config.methods import METHODS, Method
from specmoe.models.info import Size
from specmoe.runs.schema import DISTURBED
from specmoe.text import counted


def draft_time(run: Run, given: Evidence) -> float:
    """Return the least milliseconds of a drafted token, from runs of the draft model or its proxy.

    A proxy with more bytes is slower than the draft model, so its time is scaled by the bytes of a
    pass. One with fewer bytes is faster, and its time is used as it is. A model that was timed in
    neither way counts as taking no time. So do heads, MTP layers and n-grams, which no run times,
    and draft models with options of the engine.
    """
    draft, sizes = run.draft_model or "", given.sizes
    if not run.by_model or run.engine_options:
        return 0.0
    proxy = given.settings.draft_proxies.get(draft, "")
    own_ms, proxy_ms = given.token_ms(run, draft), given.token_ms(run, proxy)
    if not isnan(own_ms):
        return own_ms
    if isnan(proxy_ms) or not sizes.keys() >= {draft, proxy}:
        return 0.0
    return proxy_ms * min(1.0, sizes[draft].pass_bytes(1) / sizes[proxy].pass_bytes(1))


def check_draft_time(run: Run, given: Evidence, *, steady: bool = True) -> Finding:
    """Check that decoding took at least the time of its drafted tokens and rounds one by one.

    Requests at once share passes. The bound holds for each of them, and for all passes of their
    load together: no pass over tokens of many is faster than one over a single token. Times of a
    machine that was not `steady` are an expectation: another check.
    """
    token_ms = given.token_ms(run, run.target)
    if isnan(token_ms):
        return Finding(f"{run.target} has no baseline run as short to be timed by")
    if given.steady(run) != steady:
        return Finding(f"its baselines {'differ or are few' if steady else 'are many and alike'}")
    counts, draft_ms = run.numbers, draft_time(run, given)
    work = f"{counted(counts.load_decodes, 'pass', 'passes')} of its load at {token_ms:.2f} ms"
    parts = [_long_enough(1000 * counts.load_s, counts.load_decodes * token_ms, work, given)]
    if run.speculative:
        work = f"{counted(counts.rounds, 'round')} at {token_ms:.2f} ms"
        work += f" and {counted(counts.drafted, 'drafted token')} at {draft_ms:.2f} ms"
        needed = counts.rounds * token_ms + counts.drafted * draft_ms
        parts.append(_long_enough(counts.decode_ms, needed, work, given))
    reason = "time, rounds or drafted tokens are not known"
    return combined(parts, unknown=reason if run.speculative else "nothing was drafted")


check_expected_time = partial(check_draft_time, steady=False)


def _long_enough(took: float, needed: float, work: str, given: Evidence) -> Finding:
    """Check that some work took the milliseconds that it needs, less the tolerance."""
    why = f"{work} need {needed:.0f} ms and took {took:.0f} ms"
    return at_least(took, needed * (1 - given.limits.time_tolerance), why)


def check_bandwidth(run: Run, given: Evidence, *, stated: bool = True) -> Finding:
    """Check that memory can deliver what every pass reads at least: the weights for one token.

    The most that was ever read, where no peak is `stated`, is an expectation: another check.
    """
    if (given.bandwidth is not None) != stated:
        return Finding(f"the peak of the memory's bandwidth is {'not ' * stated}stated")
    return _read_rate(run, given, lambda size, _: size.pass_bytes(1))


check_measured_bandwidth = partial(check_bandwidth, stated=False)


def check_baseline_time(run: Run, given: Evidence) -> Finding:
    """Check that decoding took the time of all its passes at the speed of its own baseline.

    Rounds, replays and other passes count as one token each, drafting by its own logged time. The
    draft model reads every batch of a round or replay again (`common_speculative_process` in
    llama.cpp), which counts as one drafted token.
    """
    baseline = given.baseline(run)
    if not run.speculative:
        return Finding("nothing was drafted")
    if run.protocol != Protocol.PAIRED or run.load_s is not None or baseline is None:
        return Finding("no baseline of its program, options and prompt had the server for itself")
    if baseline.disturbed_reason is not None:
        return Finding(f"{DISTURBED} during its baseline")
    tokens, written = run.timed_tokens or 0, baseline.timed_tokens or 0
    if not written or (run.stopped_by == Stop.EOS and min(tokens, written) < SHORTEST_TEXT):
        return Finding(f"its text ended after fewer than {SHORTEST_TEXT} tokens")
    counts, passes = run.numbers, run.passes_after_prompt
    token_ms = baseline.numbers.decode_ms / written
    draft_ms = counts.draft_ms / run.drafted if run.drafted else 0.0
    batches = counts.rounds + (run.replays or 0)
    work = (
        f"{counted(passes, 'pass', 'passes')} at {token_ms:.2f} ms ({baseline.run}),"
        f" {counts.draft_ms:.0f} ms of drafting and {counted(batches, 'batch', 'batches')} that the"
        " draft model reads again"
    )
    needed = passes * token_ms + counts.draft_ms + batches * draft_ms
    timed = _long_enough(counts.decode_ms, needed, work, given)
    return combined([timed], unknown="time or number of passes is not known")


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
    most, limits = given.most_read(run), given.limits
    if most is None:
        return Finding("the machine's memory bandwidth is not known")
    if run.target not in given.sizes:
        return Finding(f"the size of {run.target} is not known")
    target = given.sizes[run.target]
    if target.file_bytes <= limits.cache_bytes:
        return Finding(f"{run.target} fits in a cache and may be read from it")
    passes = run.passes_after_prompt if run.speculative else run.timed_tokens
    if not passes or isnan(passes) or not run.decode_ms:
        return Finding("time or number of passes is not known")
    rounds, drafted = run.rounds or 0, run.drafted or 0
    # Those of all requests share a verification's pass.
    n_tokens = run.concurrency * (1 + drafted / max(rounds, 1))
    read = rounds * round_bytes(target, n_tokens) + max(passes - rounds, 0) * target.pass_bytes(1)
    rate = (read + drafted * _draft_bytes(run, given)) / run.decode_ms * 1000
    why = (
        f"{counted(passes, 'pass', 'passes')} of {read / passes / 1e9:.2f} GB ({run.target},"
        f" {n_tokens:.1f} tokens a round) and {counted(drafted, 'drafted token')} in"
        f" {run.decode_ms / 1000:.2f} s read {rate / 1e9:.0f} GB/s; memory gives"
        f" {most / 1e9:.0f} at most"
    )
    if given.bandwidth is None:
        why += f", {limits.bandwidth_tolerance:.0%} more than anything else read"
    return at_most(rate, most, why)


def _draft_bytes(run: Run, given: Evidence) -> float:
    """Return the bytes that a drafted token reads, 0 where a cache may hold them.

    They are not known of heads, which draft several tokens in one pass, and of n-grams.
    """
    draft, read, held = given.sizes.get(run.draft_model or ""), 0.0, 0
    if run.by_model and draft is not None:
        read, held = draft.pass_bytes(1), draft.file_bytes
    elif run.method == METHODS[Method.MTP].engine and run.draft_model is None:
        read = held = given.sizes[run.target].mtp_bytes or 0
    return read if held > given.limits.cache_bytes else 0.0


def required_time(given: Evidence) -> pd.DataFrame:
    """Return the table `required_time` of the analysis: what each speculative run's passes need."""
    tolerated, rows = 1 - given.limits.time_tolerance, []
    for run in given.runs.values():
        took, alone = run.decode_ms, run.numbers.rounds * given.token_ms(run, run.target)
        needed = alone + run.numbers.drafted * draft_time(run, given)
        if not run.speculative or took is None or isnan(needed):
            continue
        moe = run.target in given.sizes and given.sizes[run.target].experts > 0
        too_fast = took < needed * tolerated, took < alone * tolerated
        readers = run, run.changed(draft_model=None)
        read = [check_bandwidth(reader, given).ratio > 1 for reader in readers]
        rows.append(("moe" if moe else "dense", took, needed, *too_fast, *read))
    columns = ["family", "decode_ms", "required_ms", "too_fast", "too_fast_alone"]
    columns += ["reads_too_fast", "reads_too_fast_alone"]
    return pd.DataFrame(rows, columns=columns)
