"""llama-server's answers: JSON with `timings`, as `/completion` and `/v1/chat/completions` give it.

Read in llama.cpp 0c1e57098 (November 2026), tools/server/server-common.cpp,
`server_slot_stats::to_json`. `draft_n` is there where something was drafted. Rounds are not in it.
The first token belongs to the prompt's time, as in this project's rows.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from specmoe.logs.row import Field, Format, LogRow, take

FIELDS = (
    Field("model", "model", str),
    Field("n_prompt", "timings.prompt_n", int, required=True),
    Field("prompt_ms", "timings.prompt_ms", required=True),
    Field("generated", "timings.predicted_n", int, required=True),
    Field("decode_ms", "timings.predicted_ms", required=True),
    Field("tokens_per_second", "timings.predicted_per_second", required=True),
    Field("drafted", "timings.draft_n", int),
    Field("accepted", "timings.draft_n_accepted", int),
)


def _rows(entry: Mapping[str, Any], place: str) -> Iterator[LogRow]:
    found = take(entry, FIELDS, f"{place}, {FORMAT.name}, read in {FORMAT.version}")
    drafted, accepted = found.get("drafted"), found.get("accepted")
    if drafted and accepted is not None:
        found["acceptance_rate"] = accepted / drafted
    yield LogRow(FORMAT.name, place, engine="llama.cpp", **found)


FORMAT = Format("answer of llama-server", "0c1e57098", lambda entry: "timings" in entry, _rows)
