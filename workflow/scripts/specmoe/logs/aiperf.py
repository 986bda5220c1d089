"""AIPerf's summary, `profile_export_aiperf.json`.

Read in ai-dynamo/aiperf 896729cf and 1849cd1b (2026): export_models.py and spec_decode_metrics.py.
Metrics are objects with `unit` and `avg`; rates are in percent. The pooled histogram counts
verification steps by accepted tokens. All are means over the requests of a load.
"""

from collections.abc import Mapping
from typing import Any

from specmoe.errors import SchemaError
from specmoe.logs.row import Field, Format, from_lengths, lengths_of, take

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
UNITS = {"output_token_throughput_per_user": "tokens/sec/user", "time_to_first_token": "ms"}
_HISTOGRAM = "pooled_spec_decode_acceptance_histogram"


def _columns(entry: Mapping[str, Any], about: str) -> dict[str, Any]:
    for metric, unit in UNITS.items():
        said = entry[metric].get("unit") if isinstance(entry.get(metric), Mapping) else unit
        if said != unit:
            raise SchemaError(f"{about}: {metric} is in {said!r}, not {unit!r}")
    found = take(entry, FIELDS, about)
    if not found:
        raise SchemaError(f"{about}: it has none of the metrics that are read; has it changed?")
    if histogram := entry.get(_HISTOGRAM):
        found = from_lengths(lengths_of(histogram, 0, f"{about}: {_HISTOGRAM}")) | found
    return found


FORMAT = Format("export of AIPerf", "896729cf", lambda entry: "aiperf_version" in entry, _columns)
