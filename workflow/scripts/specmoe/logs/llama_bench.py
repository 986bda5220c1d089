"""llama-bench's rows, `-o csv`, `json` or `jsonl`: a target without a draft.

Read in llama.cpp 0c1e57098 (November 2026), tools/llama-bench/llama-bench.cpp, `get_fields`. It
drafts nothing, so its rows with `n_gen` are baselines; the others, of prompts alone, are left out.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from specmoe.logs.row import Field, Format, LogRow, take

FIELDS = (
    Field("engine", "build_commit", str),
    Field("model", "model_filename", str, required=True),
    Field("size_bytes", "model_size", int, required=True),
    Field("n_prompt", "n_depth", int),
    Field("generated", "n_gen", int, required=True),
    Field("decode_ms", "avg_ns", scale=1e-6, required=True),
    Field("tokens_per_second", "avg_ts", required=True),
)


def _rows(entry: Mapping[str, Any], place: str) -> Iterator[LogRow]:
    about = f"{place}, {FORMAT.name}, read in {FORMAT.version}"
    found = take(entry, FIELDS, about)
    # A row may time a prompt and its answer together, which is no speed of decoding.
    if found["generated"] and not take(entry, (Field("n", "n_prompt", int),), about).get("n"):
        found["engine"] = f"llama.cpp {found.get('engine', '')}".strip()
        yield LogRow(FORMAT.name, place, **found)


FORMAT = Format(
    "row of llama-bench", "0c1e57098", lambda entry: {"n_gen", "avg_ts"} & entry.keys(), _rows
)
