"""From the records of blocks to the rows of `runs.parquet`."""

import math
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from specmoe.config.block import NO_DRAFT
from specmoe.engine.counters import (
    ACCEPTED,
    ACCEPTED_AT,
    DECODES,
    DRAFTED,
    ROUNDS,
    tokens_per_second,
)
from specmoe.engine.server_log import Verification, count_rejected_replays, count_replays
from specmoe.errors import MeasurementError
from specmoe.measure.common_prefix import common_prefix

Row = dict[str, Any]


def rows_of_record(record: Mapping[str, Any], campaign: str) -> list[Row]:
    """Return the rows of one block of protocol `paired`, not yet linked to their baselines."""
    return [_row(record, run, campaign) for run in record["runs"]]


def refuse_mixed_hosts(rows: Iterable[Row]) -> None:
    """Raise MeasurementError if rows of one campaign were measured on more than one machine."""
    blocks = {row["host"]: row["block"] for row in rows}
    if len(blocks) > 1:
        named = ", ".join(f"{host} (for one {block})" for host, block in sorted(blocks.items()))
        raise MeasurementError(
            f"this campaign has rows of {len(blocks)} machines: {named}; a campaign is one machine:"
            " give each its own campaign.name, or measure the blocks of one again"
        )


def link_baselines(rows: list[Row], baseline_suites: Mapping[str, str]) -> None:
    """Give every speculative row its baseline's id, and the length of the prefix they share.

    `baseline_suites` maps a suite to the one that holds its runs without a draft. The baseline of
    a row has the same target, temperature, prompt and repeat. A row whose baseline was not measured
    stays null, and so does the prefix where the tokens of one of them are not known, or were not
    to be the same.
    """
    baselines = {_same(row["suite"], row): row for row in rows if row["draft"] == NO_DRAFT}
    for row in rows:
        if row["draft"] == NO_DRAFT:
            continue
        baseline = baselines.get(_same(baseline_suites.get(row["suite"]), row))
        if baseline is not None:
            row["baseline"] = baseline["run"]
            same = row["temperature"] == 0 and row["imposed_acceptance"] is None
            if same and row["tokens"] is not None and baseline["tokens"] is not None:
                row["common_prefix"] = common_prefix(row["tokens"], baseline["tokens"])


def _same(suite: str | None, row: Row) -> tuple[Any, ...]:
    return suite, *(row[key] for key in ("target", "temperature", "prompt", "repeat"))


def _row(record: Mapping[str, Any], run: Mapping[str, Any], campaign: str) -> Row:
    block, provenance = record["block"], record["provenance"]
    timings, metrics = run["answer"]["timings"], run["metrics"]
    speculative = block["draft"] != NO_DRAFT
    trace = [Verification(*verification) for verification in run.get("verifications", [])]
    return {
        "campaign": campaign,
        "protocol": record["protocol"],
        **{
            key: block[key]
            for key in (
                "suite",
                "block",
                "target",
                "method",
                "draft",
                "gamma",
                "n_predict",
                "temperature",
                "seed",
                "repeat",
            )
        },
        **{key: run[key] for key in ("run", "prompt", "order", "load_average", "decode_failures")},
        "n_prompt": timings["prompt_n"],
        "prompt_ms": timings["prompt_ms"],
        "decode_ms": timings["predicted_ms"],
        "tokens_per_second": tokens_per_second(run["answer"]),
        "generated": len(run["answer"]["tokens"]),
        "imposed_acceptance": block["imposed_acceptance"],
        "draft_ms": run["draft_ms"] if speculative else None,
        "rounds": _count(metrics, ROUNDS) if speculative else None,
        "drafted": _count(metrics, DRAFTED) if speculative else None,
        "accepted": _count(metrics, ACCEPTED) if speculative else None,
        "accepted_per_position": [
            _count(metrics, ACCEPTED_AT.format(position=position))
            for position in range(block["gamma"])
        ]
        if speculative
        else None,
        "replays": count_replays(trace) if speculative else None,
        "replays_rejected": count_rejected_replays(trace) if speculative else None,
        "decodes": _count(metrics, DECODES),
        "tokens": run["answer"]["tokens"],
        "baseline": None,
        "common_prefix": None,
        "recovered": [],
        "peak_rss_bytes": record["peak_rss_bytes"],
        "started_at": datetime.fromisoformat(run["started_at"]),
        "host": record["host"],
        **{
            key: provenance[key]
            for key in ("engine", "engine_commit", "backend", "target_sha256", "draft_sha256")
        },
        "status": "ok",
        "error": None,
    }


def _count(metrics: Mapping[str, float], name: str) -> int:
    # A counter that never moved is not among the server's answers.
    value = metrics.get(name, 0.0)
    if not math.isclose(value, round(value)):
        raise ValueError(f"counter {name} is {value}")
    return round(value)
