"""`acceptance_rate.json` and `timing.json` of specdec_bench, in NVIDIA's Model-Optimizer.

Read in NVIDIA/Model-Optimizer 037a9f69 (2026), examples/specdec_bench/specdec_bench/metrics. Each
file is a list with an entry a run. The histogram counts steps by all their tokens, the target's own
included, so a length of 1 accepted nothing; the pass over the prompt and the last, perhaps cut,
step are among them. Numbers of `timing.json` are text. The files of one run are in one folder, and
entries at the same place of both lists belong together.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from specmoe.errors import SchemaError
from specmoe.logs.row import Field, Format, LogRow, from_lengths, lengths_of, take

ACCEPTANCE = (Field("tokens_per_round", "Average_AL", required=True),)
TIMING = (
    Field("tokens_per_second", "Request Generation Tokens Per Second.mean", required=True),
    Field("prompt_ms", "TTFT Time.mean", scale=1000),
    Field("generated", "Number of Output Tokens.mean", int),
)
_HISTOGRAM = "Acceptance_Length_Histogram"


def _columns(entry: Mapping[str, Any], about: str) -> dict[str, Any]:
    if "Output TPS" in entry:
        return take(entry, TIMING, about)
    # Steps by all their tokens, of which one is the target's own.
    lengths = lengths_of(entry.get(_HISTOGRAM), 1, f"{about}: {_HISTOGRAM}")
    return take(entry, ACCEPTANCE, about) | from_lengths(lengths)


def with_timing(rows: Sequence[LogRow], file: Path) -> list[LogRow]:
    """Return rows of `acceptance_rate.json` with the speeds of the file beside it, if it is there.

    Raises SchemaError if that has another number of entries.
    """
    beside = file.with_name("timing.json")
    if not beside.is_file() or any(row.tokens_per_second for row in rows):
        return list(rows)
    try:
        timings = list(json.loads(beside.read_text(encoding="utf-8")))
    except (ValueError, TypeError, RecursionError) as error:
        raise SchemaError(f"{beside}: it is no whole list of JSON; was the file cut?") from error
    if len(timings) != len(rows):
        raise SchemaError(f"{beside}: it has {len(timings)} entries, and {file.name} {len(rows)}")
    found = (take(timing, TIMING, FORMAT.about(str(beside))) for timing in timings)
    return [replace(row, **timing) for row, timing in zip(rows, found, strict=True)]


FORMAT = Format(
    "entry of specdec_bench",
    "037a9f69",
    lambda entry: bool({_HISTOGRAM, "Average_AL", "Output TPS"} & entry.keys()),
    _columns,
)
