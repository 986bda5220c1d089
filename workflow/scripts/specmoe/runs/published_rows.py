"""From the records of blocks of protocol `published` to the rows of `runs.parquet`."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from specmoe.runs.schema import COLUMNS


def rows_of_published_record(record: Mapping[str, Any], campaign: str) -> list[dict[str, Any]]:
    """Return the rows of one block, not yet linked to their baselines.

    Tokens and rounds are null, since the study's tools print neither, and so is the seed, which its
    commands do not give.
    """
    return [_row(record, run, campaign) for run in record["runs"]]


def _row(record: Mapping[str, Any], run: Mapping[str, Any], campaign: str) -> dict[str, Any]:
    reading = run["reading"]
    known = {
        **record["block"],
        **record["provenance"],
        **run,
        **reading,
        "campaign": campaign,
        "protocol": record["protocol"],
        "seed": None,
        "host": record["host"],
        "peak_rss_bytes": record["peak_rss_bytes"],
        "started_at": datetime.fromisoformat(run["started_at"]),
        # Less than a millisecond is printed as 0.000 s.
        "prompt_ms": reading["prompt_ms"] or None,
        "decode_ms": reading["decode_ms"] or None,
        "recovered": [],
        "status": "ok",
    }
    return {name: known.get(name) for name in COLUMNS}
