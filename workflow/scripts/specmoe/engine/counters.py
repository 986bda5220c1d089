"""The names of llama-server's counters, and the rate of an answer."""

from collections.abc import Mapping
from typing import Any

from specmoe.config.block import Stop

DRAFTED = "spec_decode_num_draft_tokens_total"
ACCEPTED = "spec_decode_num_accepted_tokens_total"
ROUNDS = "spec_decode_num_drafts_total"
ACCEPTED_AT = "spec_decode_num_accepted_tokens_per_pos_total/{position}"
DECODES = "n_decode_total"
PROCESSING = "requests_processing"


def tokens_per_second(answer: Mapping[str, Any]) -> float | None:
    """Return the decoding rate of an answer, or None if it is a single token.

    The first token comes from the prompt's pass.
    """
    if len(answer["tokens"]) == 1:
        return None
    rate: float = (len(answer["tokens"]) - 1) / answer["timings"]["predicted_ms"] * 1000
    return rate


def stopped_by(answer: Mapping[str, Any]) -> Stop:
    """Return why an answer has no further token: the target ended its text, or it was enough."""
    return Stop.EOS if answer.get("stop_type") == "eos" else Stop.LENGTH
