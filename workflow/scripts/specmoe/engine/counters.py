"""The names of llama-server's counters, and the rate of an answer."""

from collections.abc import Mapping
from typing import Any

DRAFTED = "spec_decode_num_draft_tokens_total"
ACCEPTED = "spec_decode_num_accepted_tokens_total"
ROUNDS = "spec_decode_num_drafts_total"
ACCEPTED_AT = "spec_decode_num_accepted_tokens_per_pos_total/{position}"
DECODES = "n_decode_total"


def tokens_per_second(answer: Mapping[str, Any]) -> float:
    """Return the decoding rate of an answer; its first token comes from the prompt's pass."""
    rate: float = (len(answer["tokens"]) - 1) / answer["timings"]["predicted_ms"] * 1000
    return rate
