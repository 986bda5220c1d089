"""The fields of records and columns of packed rows that are believed, each under its reason.

All are measured: nothing that was asked for says what they must be. Their types and bounds are
checked, and the audit compares them with one another and with what the machine can do.
"""

OF_RECORDS = {
    "what the engine wrote, and how long that took": (
        "runs[].answer.tokens runs[].answer.tokens[]"
        " runs[].answer.timings.prompt_ms runs[].answer.timings.predicted_ms runs[].draft_ms"
    ),
    "what its counters and its log say of a run": (
        "runs[].metrics runs[].metrics.n_decode_total runs[].decode_failures"
        " runs[].verifications runs[].verifications[] runs[].verifications[][] "
    )
    + " ".join(
        f"runs[].metrics.spec_decode_num_{counter}"
        for counter in (
            *("drafts_total", "draft_tokens_total", "accepted_tokens_total"),
            *(f"accepted_tokens_per_pos_total/{at}" for at in range(4)),
        )
    ),
    "what was seen of the machine meanwhile": (
        "runs[].measured_again runs[].taken_away runs[].load_average runs[].steal_share"
        " runs[].wait_share runs[].others_share runs[].involuntary_switches runs[].cpu_share"
        " runs[].gpu_clock_mhz runs[].gpu_throttled runs[].thermal_pressure"
    ),
    "what a side's process took": "sides[].start_ms sides[].warm_up_ms sides[].peak_rss_bytes",
}

# The time of decoding is not among them, as the rate that follows from it is beside it.
OF_ROWS = {
    "what the engine wrote, and how long that took": "tokens prompt_ms draft_ms",
    "what its counters and its log say of a run": (
        "rounds drafted accepted accepted_per_position tried_per_position accepted_lengths"
        " drafted_lengths replays replays_rejected"
        " decodes decode_failures"
    ),
    "what was seen of the machine meanwhile": (
        "measured_again taken_away load_average steal_share wait_share others_share"
        " involuntary_switches cpu_share gpu_clock_mhz gpu_throttled thermal_pressure"
    ),
    "what a side's process took": "start_ms warm_up_ms peak_rss_bytes",
    "the place in the block, on which no number depends": "order",
}


def _by_field(groups: dict[str, str]) -> dict[str, str]:
    return {name: reason for reason, names in groups.items() for name in names.split()}


FREE = _by_field(OF_RECORDS)
FREE_COLUMNS = _by_field(OF_ROWS)
