"""JSON lines of `llama-spec-bench` of ik_llama.cpp, compact or with `--output-details`.

Read in ik_llama.cpp 8337e4cd3 (August 2026), examples/spec-bench/spec-bench.cpp. A line is an
attempt or a summary; a summary only adds up its attempts, so it gives no row, nor does an attempt
that failed. A chain of stages adds up, and has no positions of its own. The compact form names no
model.
"""

from collections.abc import Mapping
from typing import Any

from specmoe.errors import SchemaError
from specmoe.logs.row import Field, Format, shares, take

COMPACT = (
    Field("prompt", "task", str, required=True),
    Field("generated", "generated", int, required=True),
    Field("decode_ms", "decode_s", scale=1000, required=True),
    Field("tokens_per_second", "decode_tps", required=True),
)
DETAILED = (
    Field("model", "runtime.model", str, required=True),
    Field("prompt", "task_name", str, required=True),
    Field("n_prompt", "tokens.prompt", int),
    Field("prompt_ms", "timing.prompt_s", scale=1000),
    Field("generated", "tokens.generated", int, required=True),
    Field("decode_ms", "timing.decode_s", scale=1000, required=True),
    Field("tokens_per_second", "timing.decode_tps", required=True),
    Field("draft_ms", "speculative.t_draft_s", scale=1000),
)
# Of a stage; the detailed form has other names for two of them.
STAGE = (
    Field("method", "type", str, required=True),
    Field("rounds", "drafts", int),
    Field("rounds", "num_drafts", int),
    Field("drafted", "draft_tokens", int, required=True),
    Field("accepted", "accepted", int),
    Field("accepted", "accepted_tokens", int),
)


def _columns(entry: Mapping[str, Any], about: str) -> dict[str, Any] | None:
    ok = entry.get("ok", entry.get("quality", {}).get("ok"))
    if entry["row_type"] == "summary" or ok is False:
        return None
    detailed = "runtime" in entry
    found = take(entry, DETAILED if detailed else COMPACT, about)
    stages = entry.get("speculative", {}).get("stages") if detailed else entry.get("stages")
    if not isinstance(stages, list):
        raise SchemaError(f"{about}: it lacks stages; has the format changed?")
    return {"engine": "ik_llama.cpp", **found, **(_of_stages(stages, about) if stages else {})}


def _of_stages(stages: list[Any], about: str) -> dict[str, Any]:
    taken = [take(stage, STAGE, about) for stage in stages]
    names = ("rounds", "drafted", "accepted")
    rounds, drafted, accepted = (sum(stage.get(name, 0) for stage in taken) for name in names)
    found: dict[str, Any] = dict(zip(names, (rounds, drafted, accepted), strict=True))
    found["method"] = "+".join(stage["method"] for stage in taken)
    if drafted:
        found["acceptance_rate"] = accepted / drafted
    if rounds:
        found["tokens_per_round"] = 1 + accepted / rounds
    by_position = stages[0].get("accepted_by_position")
    if len(stages) == 1 and rounds and isinstance(by_position, list) and by_position:
        found["gamma"] = len(by_position)
        found["joint"] = shares([int(count) for count in by_position], rounds)
    return found


FORMAT = Format(
    "line of llama-spec-bench",
    "8337e4cd3",
    lambda entry: entry.get("row_type") in ("attempt", "summary"),
    _columns,
)
