"""The checks of what a run usually takes, beside the bounds that no true run can break.

They find more of what is too fast, as they leave less out. But they rest on expectations: that a
run meets the machine that its own baseline met, and that its tokens choose their experts as those
of other text do, or evenly.
"""

from collections.abc import Mapping

from specmoe.audit.bounds import Bandwidth, check_read_rate
from specmoe.audit.counters import SHORTEST_TEXT
from specmoe.audit.finding import Finding, Run, at_least, not_applicable
from specmoe.config.audit import AuditSettings
from specmoe.config.block import Protocol, Stop
from specmoe.models.sizes import Size
from specmoe.runs.disturbed import DISTURBED
from specmoe.words import counted


def check_baseline_time(run: Run, baseline: Run | None, settings: AuditSettings) -> Finding:
    """Check that decoding took the time of all its passes at the speed of its own baseline.

    Rounds, replays and passes without a draft count as one token each, drafting by its own logged
    time. The draft reads every batch of a round or replay again (`common_speculative_process` in
    llama.cpp), which counts as one drafted token.
    """
    if not run.speculative:
        return not_applicable("nothing was drafted")
    if run.protocol != Protocol.PAIRED or baseline is None:
        return not_applicable("it has no baseline of the same program and prompt")
    if baseline.disturbed:
        return not_applicable(f"{DISTURBED} during its baseline")
    if run.load is not None:
        return not_applicable("its passes and its drafting were shared with other requests")
    passes, took = run.passes_after_prompt, baseline.decode_ms
    if not passes or not took or not baseline.timed_tokens or run.decode_ms is None:
        return not_applicable("time or number of passes is not known")
    if run.rounds is None or run.draft_ms is None:
        return not_applicable("its rounds or its time for drafting were not counted")
    fewest = min(run.timed_tokens or 0, baseline.timed_tokens)
    if run.stopped_by == Stop.EOS and fewest < SHORTEST_TEXT:
        return not_applicable(f"its text ended after fewer than {SHORTEST_TEXT} tokens")
    step = took / baseline.timed_tokens
    each = run.draft_ms / run.drafted if run.drafted else 0.0
    again = run.rounds + (run.replays or 0)
    needed = passes * step + run.draft_ms + again * each
    why = (
        f"{counted(passes, 'pass', 'passes')} at {step:.2f} ms ({baseline.run}),"
        f" {run.draft_ms:.0f} ms of drafting and {counted(again, 'batch', 'batches')} that the"
        f" draft reads again, at {each:.2f} ms, need {needed:.0f} ms; decoding took"
        f" {run.decode_ms:.0f} ms"
    )
    return at_least(run.decode_ms, needed * (1 - settings.time_tolerance), why)


def check_expected_experts(
    run: Run, sizes: Mapping[str, Size], bandwidth: Bandwidth | None, settings: AuditSettings
) -> Finding:
    """Check that memory can deliver the experts that a round's tokens are expected to visit.

    Where the target's passes were timed, passes of that width were seen to visit so many. Elsewhere
    tokens are taken to choose independently and evenly, which visits the most: trained routers are
    uneven, and neighbouring tokens alike.
    """
    if run.target_model in sizes and not sizes[run.target_model].experts:
        return not_applicable(f"{run.target_model} has no experts")
    if not run.speculative:
        return not_applicable("nothing was drafted, so every pass has one token")
    return check_read_rate(run, sizes, bandwidth, settings, Size.pass_bytes)
