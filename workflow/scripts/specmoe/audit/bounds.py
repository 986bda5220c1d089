"""The two bounds of every way of decoding: the time of its passes, and memory bandwidth.

Both favour the run. The time counts rounds alone, each as one token of the fastest run without a
draft; the bytes are those of the weights that any single token needs.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd

from specmoe.audit.finding import Finding, Run, at_least, at_most, combined, not_applicable
from specmoe.config.audit import AuditSettings
from specmoe.config.block import NO_DRAFT, WAY
from specmoe.config.methods import Method
from specmoe.config.option_words import without_concurrency
from specmoe.models.sizes import Size
from specmoe.runs.disturbed import undisturbed
from specmoe.words import counted

REQUIRED_TIME = [
    *("run", "suite", "target", "draft", "gamma"),
    *("family", "decode_ms", "required_ms", "too_fast", "too_fast_alone"),
]


@dataclass(frozen=True)
class Bandwidth:
    """How fast a machine's memory can be read, in bytes a second."""

    bytes_per_second: float
    stated: bool  # by the maker or the config, as a peak that nothing exceeds; else probed

    @classmethod
    def of(cls, machine: Mapping[str, Any]) -> "Bandwidth | None":
        """Return that of a description of a machine; None if it is not known."""
        rate = machine["memory_bandwidth_bytes_per_second"]
        probed = str(machine["memory_bandwidth_source"]).startswith("probe")
        return None if rate is None else cls(float(rate), stated=not probed)

    def most(self, settings: AuditSettings) -> float:
        """Return the highest rate that a true run can reach."""
        tolerance = 0.0 if self.stated else settings.bandwidth_tolerance
        return self.bytes_per_second * (1 + tolerance)


@dataclass(frozen=True)
class TokenTime:
    """The least time a model takes for one token, and where that comes from."""

    ms: float
    basis: str


def single_token_ms(runs: pd.DataFrame) -> dict[tuple[str, str, str], dict[str, float]]:
    """Return each model's time for a token in its fastest run alone, by `Run.timed_with`.

    A mean would be no bound: other work on the machine slows runs, so a run can be faster than the
    mean. Runs among several at once share their passes and time none; those of a load of a single
    client count for their target like any other. Runs that the machine disturbed count for nothing.
    """
    plain = undisturbed(runs[(runs["draft"] == NO_DRAFT) & (runs["concurrency"] == 1)])
    plain = plain.assign(target=plain["target"].map(without_concurrency))
    found: dict[tuple[str, str, str], dict[str, float]] = {}
    for (host, protocol, engine), members in plain.groupby(["host", *WAY]):
        times = (1000 / members["tokens_per_second"]).groupby(members["target"]).min().dropna()
        own = {str(model): float(ms) for model, ms in times.items()}
        found[str(host), str(protocol), str(engine)] = own
    return found


def draft_time(
    run: Run, times: Mapping[str, float], sizes: Mapping[str, Size], settings: AuditSettings
) -> TokenTime:
    """Return the least time of a drafted token, from runs of the draft or of its stand-in.

    Heads, blocks and tables of n-grams generate no text by themselves, so no run times them.

    A stand-in with more bytes is slower than the draft, so its time is scaled by the bytes of a
    pass. One with fewer bytes is faster, and its time is used as it is. A draft that was timed in
    neither way counts as taking no time, as does one with options of the engine: they may be its
    own, and nothing times a draft with them.
    """
    draft = run.draft_model
    if not run.by_model or draft is None:
        return TokenTime(0.0, f"{run.draft}, which was never timed")
    if run.engine_options:
        return TokenTime(0.0, f"{draft}, which was never timed with these options of the engine")
    if draft in times:
        return TokenTime(times[draft], f"{draft} without a target")
    stand_in = settings.draft_stand_ins.get(draft)
    if stand_in is None or stand_in not in times:
        return TokenTime(0.0, f"{draft}, which was never timed")
    if draft not in sizes or stand_in not in sizes:
        return TokenTime(0.0, f"{draft}, of unknown size beside its stand-in {stand_in}")
    share = min(1.0, sizes[draft].pass_bytes(1) / sizes[stand_in].pass_bytes(1))
    scaled = f" scaled by {share:.2f}, their bytes" if share < 1 else ""
    return TokenTime(times[stand_in] * share, f"{draft}, timed by {stand_in}{scaled}")


def check_draft_time(
    run: Run, times: Mapping[str, float], sizes: Mapping[str, Size], settings: AuditSettings
) -> Finding:
    """Check that decoding took at least the time of its drafted tokens and rounds one by one.

    Requests at once share passes. But no pass over tokens of many is faster than one over a single
    token, so the bound holds for each of them, and for all passes of their load together.
    """
    target = run.timed_as
    if target not in times:
        return not_applicable(f"{target} has no run without a draft to be timed by")
    parts = [*_own_time(run, times, sizes, settings), *_load_time(run, times, settings)]
    if parts:
        return combined(parts, "; ".join(part.why for part in parts))
    known = "time, rounds or drafted tokens are not known"
    return not_applicable(known if run.speculative else "nothing was drafted")


def _own_time(
    run: Run, times: Mapping[str, float], sizes: Mapping[str, Size], settings: AuditSettings
) -> Iterator[Finding]:
    draft = draft_time(run, times, sizes, settings)
    needed = _needed_ms(run, times[run.timed_as], draft.ms)
    if not run.speculative or needed is None or run.decode_ms is None:
        return
    rounds = counted(run.rounds or 0, "round")
    why = (
        f"{rounds} at {times[run.timed_as]:.2f} ms ({run.timed_as} alone) and"
        f" {counted(run.drafted or 0, 'drafted token')} at {draft.ms:.2f} ms ({draft.basis}) need"
        f" {needed:.0f} ms; decoding took {run.decode_ms:.0f} ms"
    )
    yield at_least(run.decode_ms, needed * (1 - settings.time_tolerance), why)


def _load_time(run: Run, times: Mapping[str, float], settings: AuditSettings) -> Iterator[Finding]:
    if run.load_s is None or run.load_decodes is None:
        return
    needed = run.load_decodes * times[run.timed_as]
    why = (
        f"{counted(run.load_decodes, 'pass', 'passes')} of its load at {times[run.timed_as]:.2f} ms"
        f" ({run.timed_as} alone, a single token) need {needed:.0f} ms; the load took"
        f" {1000 * run.load_s:.0f} ms"
    )
    yield at_least(1000 * run.load_s, needed * (1 - settings.time_tolerance), why)


def check_bandwidth(
    run: Run, sizes: Mapping[str, Size], bandwidth: Bandwidth | None, settings: AuditSettings
) -> Finding:
    """Check that memory can deliver what every pass reads at least: the weights for one token.

    Of the experts of a mixture those are the ones that a single token visits.
    """
    return check_read_rate(run, sizes, bandwidth, settings, lambda size, _: size.pass_bytes(1))


def check_read_rate(
    run: Run,
    sizes: Mapping[str, Size],
    bandwidth: Bandwidth | None,
    settings: AuditSettings,
    round_bytes: Callable[[Size, float], float],
) -> Finding:
    """Check that the passes read their weights no faster than memory delivers them.

    `round_bytes` returns what a round's pass of a mean width in tokens reads. Replays and passes
    without a draft count as those of a single token. The passes of one request are read within its
    own time, whoever shares them.
    """
    if bandwidth is None:
        return not_applicable("the machine's memory bandwidth is not known")
    if run.target_model not in sizes:
        return not_applicable(f"the size of {run.target_model} is not known")
    target = sizes[run.target_model]
    if target.file_bytes <= settings.cache_bytes:
        return not_applicable(
            f"{run.target_model} has {_megabytes(target.file_bytes)} and may be read from a cache"
            f" of {_megabytes(settings.cache_bytes)} instead of memory"
        )
    passes = run.passes_after_prompt if run.speculative else run.timed_tokens
    if not passes or not run.decode_ms:
        return not_applicable("time or number of passes is not known")
    rounds, drafted = run.rounds or 0, run.drafted or 0
    # A pass has tokens of all requests at once.
    width = run.concurrency * (1 + drafted / rounds if rounds else 1.0)
    read = rounds * round_bytes(target, width) + max(passes - rounds, 0) * target.pass_bytes(1)
    of_draft, and_draft = _draft_bytes(run, target, sizes, settings)
    rate = (read + of_draft) / run.decode_ms * 1000
    at_once = f" of {run.concurrency} requests" if run.concurrency > 1 else ""
    why = (
        f"{counted(passes, 'pass', 'passes')} of {read / passes / 1e9:.2f} GB ({run.target},"
        f" {width:.1f} tokens a round{at_once}){and_draft} in"
        f" {run.decode_ms / 1000:.2f} s read {rate / 1e9:.0f} GB/s;"
        f" memory gives {bandwidth.bytes_per_second / 1e9:.0f} GB/s"
    )
    return at_most(rate, bandwidth.most(settings), why)


def required_time(
    runs: pd.DataFrame, sizes: Mapping[str, Size], settings: AuditSettings
) -> pd.DataFrame:
    """Return, for each row with a draft, its decode time and the time its own passes need.

    Columns: run, suite, target, draft, gamma, family (`moe` or `dense`; unknown counts as dense),
    decode_ms, required_ms (rounds and drafted tokens at their single-token times, no tolerance),
    too_fast: whether it took less than that by more than the tolerance; too_fast_alone: whether it
    did even if drafting took no time.
    """
    times_of = single_token_ms(runs)
    rows = []
    for run in map(Run.of, runs.to_dict("records")):
        times = times_of.get(run.timed_with, {})
        if not run.speculative or run.timed_as not in times:
            continue
        draft = draft_time(run, times, sizes, settings)
        needed = _needed_ms(run, times[run.timed_as], draft.ms)
        moe = run.target_model in sizes and sizes[run.target_model].experts > 0
        identity = (run.run, run.suite, run.target, run.draft, run.gamma)
        alone = _needed_ms(run, times[run.timed_as], 0.0)
        too_fast = [
            run.decode_ms is not None
            and ms is not None
            and run.decode_ms < ms * (1 - settings.time_tolerance)
            for ms in (needed, alone)
        ]
        rows.append((*identity, "moe" if moe else "dense", run.decode_ms, needed, *too_fast))
    times_known = ["decode_ms", "required_ms"]
    return pd.DataFrame(rows, columns=REQUIRED_TIME).dropna(subset=times_known, ignore_index=True)


def _needed_ms(run: Run, target_ms: float, draft_ms: float) -> float | None:
    if run.rounds is None or run.drafted is None:
        return None
    return run.rounds * target_ms + run.drafted * draft_ms


def _draft_bytes(
    run: Run, target: Size, sizes: Mapping[str, Size], settings: AuditSettings
) -> tuple[float, str]:
    """Return the bytes that drafting reads, and what to say of them."""
    if not run.speculative or run.drafted is None:
        return 0.0, ""
    known = _bytes_of_drafted_token(run, target, sizes)
    if known is None:
        return 0.0, f", {run.draft} of unknown size left out,"
    each, whole = known
    if whole <= settings.cache_bytes:
        return 0.0, f", {run.draft} left out as it fits in the cache,"
    return run.drafted * each, f" and {run.drafted} of {each / 1e9:.2f} GB ({run.draft})"


def _bytes_of_drafted_token(
    run: Run, target: Size, sizes: Mapping[str, Size]
) -> tuple[float, float] | None:
    """Return the bytes that a drafted token reads, and those that a cache would have to hold.

    None where they are not known: of heads, which draft several tokens in one pass, and of n-grams.
    """
    if run.by_model and run.draft_model is not None and run.draft_model in sizes:
        draft = sizes[run.draft_model]
        return draft.pass_bytes(1), draft.file_bytes
    by_own_block = run.methods == (Method.MTP,) and run.draft_model is None
    if by_own_block and target.mtp_bytes is not None:
        return target.mtp_bytes, target.mtp_bytes
    return None


def _megabytes(count: float) -> str:
    return f"{count / 1e6:.0f} MB"
