"""vLLM's benchmark of a server, `vllm bench serve --save-result` (or `--append-result`).

Read in vLLM 009e6d4a1 (2026), vllm/benchmarks/serve.py. The acceptance rate is in percent; the
rates by position are accepted tokens there over drafts, so of all tokens before too, and give the
histogram of accepted lengths. A request's speed is that of its tokens after the first.
"""

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

from specmoe.errors import SchemaError
from specmoe.logs.row import Field, Format, take

FIELDS = (
    Field("model", "model_id", str, required=True),
    Field("concurrency", "max_concurrency", int),
    Field("generated", "total_output_tokens", int, required=True),
    Field("n_prompt", "total_input_tokens", int),
    Field("prompt_ms", "mean_ttft_ms"),
    Field("acceptance_rate", "spec_decode_acceptance_rate", scale=0.01),
    Field("tokens_per_round", "spec_decode_acceptance_length"),
    Field("rounds", "spec_decode_num_drafts", int),
    Field("drafted", "spec_decode_draft_tokens", int),
    Field("accepted", "spec_decode_accepted_tokens", int),
)
_TOKEN = (Field("token_ms", "mean_tpot_ms", required=True),)
_POSITIONS = "spec_decode_per_position_acceptance_rates"


def _columns(entry: Mapping[str, Any], about: str) -> dict[str, Any]:
    found = take(entry, FIELDS, about)
    token_ms = take(entry, _TOKEN, about)["token_ms"]
    found |= {"engine": "vLLM", "tokens_per_second": 1000 / token_ms if token_ms else None}
    if (joint := entry.get(_POSITIONS)) and found.get("rounds"):
        found |= _of_positions(joint, found["rounds"], about)
    return found


def _of_positions(joint: Any, rounds: int, about: str) -> dict[str, Any]:
    known = isinstance(joint, list) and all(isinstance(share, int | float) for share in joint)
    if not known or any(not 0 <= share <= 1 for share in joint):
        raise SchemaError(f"{about}: {_POSITIONS} are no shares; has the format changed?")
    reached = [rounds, *(round(share * rounds) for share in joint), 0]
    lengths = tuple(before - after for before, after in pairwise(reached))
    return {"joint": tuple(joint), "gamma": len(joint), "accepted_lengths": lengths}


FORMAT = Format(
    "result of vllm bench serve",
    "009e6d4a1",
    lambda entry: (
        {"mean_tpot_ms", "request_throughput"} <= entry.keys() or "spec_decode_num_drafts" in entry
    ),
    _columns,
)
