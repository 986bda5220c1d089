"""AIPerf's summary, `profile_export_aiperf.json`.

Read in ai-dynamo/aiperf 896729cf and 1849cd1b (2026): export_models.py and spec_decode_metrics.py.
Metrics are objects with `unit` and `avg`; rates are in percent. The pooled histogram counts
verification steps by accepted tokens. All are means over the requests of a load.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from specmoe.errors import SchemaError
from specmoe.logs.row import Field, Format, LogRow, from_lengths, take

FIELDS = (
    Field("tokens_per_second", "output_token_throughput_per_user.avg"),
    Field("prompt_ms", "time_to_first_token.avg"),
    Field("generated", "output_sequence_length.avg", int),
    Field("n_prompt", "input_sequence_length.avg", int),
    Field("rounds", "total_spec_decode_steps.avg", int),
    Field("drafted", "total_draft_tokens.avg", int),
    Field("accepted", "total_accepted_draft_tokens.avg", int),
    Field("acceptance_rate", "spec_decode_overall_draft_acceptance_rate.avg", scale=0.01),
    Field("tokens_per_round", "spec_decode_token_weighted_acceptance_length.avg"),
)
# A unit that changes would be read wrongly in silence.
UNITS = {
    "output_token_throughput_per_user": "tokens/sec/user",
    "time_to_first_token": "ms",
}
_HISTOGRAM = "pooled_spec_decode_acceptance_histogram"


def _rows(entry: Mapping[str, Any], place: str) -> Iterator[LogRow]:
    about = f"{place}, {FORMAT.name}, read in {FORMAT.version}"
    for metric, unit in UNITS.items():
        said = entry[metric].get("unit") if isinstance(entry.get(metric), Mapping) else unit
        if said != unit:
            raise SchemaError(f"{about}: {metric} is in {said!r}, not {unit!r}")
    found = take(entry, FIELDS, about)
    if not found:
        raise SchemaError(f"{about}: it has none of the metrics that are read; has it changed?")
    if histogram := entry.get(_HISTOGRAM):
        found = from_lengths(_lengths(histogram, about)) | found
    yield LogRow(FORMAT.name, place, **found)


def _lengths(histogram: Any, about: str) -> list[int]:
    try:
        counts = {int(length): int(count) for length, count in dict(histogram).items()}
    except (TypeError, ValueError):
        counts = {-1: 0}
    if min(counts) < 0 or max(counts) > 1024 or not sum(counts.values()):
        raise SchemaError(f"{about}: {_HISTOGRAM} has no counts by length; has the format changed?")
    return [counts.get(length, 0) for length in range(max(counts) + 1)]


FORMAT = Format("export of AIPerf", "896729cf", lambda entry: "aiperf_version" in entry, _rows)
