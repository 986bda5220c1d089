"""From the records of blocks to the rows of `runs.parquet`."""

import math
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from operator import itemgetter
from pathlib import Path
from typing import Any

import pyarrow

from specmoe.config.base import LONGEST_DRAFT
from specmoe.config.block import NO_DRAFT, Block, Protocol, Stop
from specmoe.config.methods import NO_METHOD, engine_type
from specmoe.config.option_words import options_text, target_setting
from specmoe.engine.answers import (
    ACCEPTED,
    ACCEPTED_AT,
    DECODES,
    DRAFTED,
    ROUNDS,
    stopped_by,
    tokens_per_second,
)
from specmoe.engine.server_log import (
    Verification,
    accepted_lengths,
    count_rejected_replays,
    count_replays,
    drafted_lengths,
    tried_per_position,
)
from specmoe.errors import MeasurementError
from specmoe.files import named_if_damaged, read_record
from specmoe.measure.common_prefix import common_prefix
from specmoe.runs.record_changes import record_changes, refuse_changed
from specmoe.runs.schema import COLUMNS, check_rows

RunRow = dict[str, Any]
_compared = itemgetter("block", "prompt", "pass")  # what a run and its baseline have in common


def rows_of_record(record: Mapping[str, Any], campaign: str) -> list[RunRow]:
    """Return the rows of one block, linked to their baselines."""
    sides = {side["side"]: side for side in record["sides"]}
    rows = [_row(record, sides[run["side"]], run, campaign) for run in record["runs"]]
    link_baselines(rows)
    return rows


def collect_records(
    records: Mapping[Path, Block], campaign: str
) -> tuple[list[RunRow], pyarrow.Table]:
    """Return the rows of all blocks, and the same as a checked table.

    `records` has the blocks that are asked for by the files that hold them. Raises DamagedFileError
    for a record without proper rows, MeasurementError for runs that are in several records, or a
    record of another block.
    """
    by_record: dict[Path, list[RunRow]] = {}
    changes: dict[Path, list[str]] = {}
    for record, block in records.items():
        with named_if_damaged(record):
            read = read_record(record)
            by_record[record] = rows_of_record(read, campaign)
            changes[record] = record_changes(read, block)
    rows = [row for its in by_record.values() for row in its]
    try:
        table = check_rows(rows)
    except (TypeError, ValueError) as error:
        _name_record(by_record, error)
        raise
    refuse_changed({record: its for record, its in changes.items() if its})
    return rows, table


def _name_record(by_record: Mapping[Path, list[RunRow]], error: Exception) -> None:
    """Raise the error of the record whose rows are at fault, if one is by itself, or of two."""
    # Checks take as long for the rows of one record as for all, so they are told apart here.
    for record, its in by_record.items():
        with named_if_damaged(record):
            check_rows(its)
    holding: dict[str, Path] = {}
    for record, its in by_record.items():
        for row in its:
            if (other := holding.setdefault(row["run"], record)) != record:
                raise MeasurementError(
                    f"{other} and {record} hold the same runs ({row['run']}); delete both and"
                    " run snakemake again"
                ) from error


def refuse_mixed_hosts(rows: Iterable[RunRow]) -> None:
    """Raise MeasurementError if rows of one campaign were measured on more than one machine."""
    blocks = {row["host"]: row["block"] for row in rows}
    if len(blocks) > 1:
        named = ", ".join(f"{host} (for one {block})" for host, block in sorted(blocks.items()))
        raise MeasurementError(
            f"this campaign has rows of {len(blocks)} machines: {named}; give each its own"
            " campaign.name, measure the blocks of one again, or set campaign.hosts"
        )


def link_baselines(rows: Iterable[RunRow]) -> None:
    """Give every speculative row its baseline's id, and the length of the prefix they share.

    The baseline of a row is the run of its block without a draft, of the same prompt and pass. The
    id stays null in a block without one. The prefix stays null where tokens are not known, and
    where they need not be the same: at a temperature above zero, and with imposed acceptance.
    """
    rows = list(rows)
    baselines = {_compared(row): row for row in rows if row["draft"] == NO_DRAFT}
    for row in rows:
        baseline = baselines.get(_compared(row))
        if row["draft"] == NO_DRAFT or baseline is None:
            continue
        row["baseline"] = baseline["run"]
        same = row["temperature"] == 0 and row["imposed_acceptance"] is None
        if same and row["tokens"] is not None and baseline["tokens"] is not None:
            row["common_prefix"] = common_prefix(row["tokens"], baseline["tokens"])


def _row(
    record: Mapping[str, Any], side: Mapping[str, Any], run: Mapping[str, Any], campaign: str
) -> RunRow:
    block = record["block"]
    alone = {"draft": NO_DRAFT, "method": NO_METHOD, "draft_model": None, "draft_sha256": None}
    drafting = {"draft": side["setting"], "method": engine_type(block["method"])}
    paired = record["protocol"] == Protocol.PAIRED
    started_at = datetime.fromisoformat(run["started_at"])
    if started_at.tzinfo is None:
        raise ValueError(f"time {run['started_at']} has no zone")
    known = {
        **block,
        **record["provenance"],
        **side,
        **run,
        **(drafting if side["gamma"] else alone),
        **_verifying(block),
        "campaign": campaign,
        "protocol": record["protocol"],
        "host": record["host"],
        "arrangement": record["arrangement"],
        "started_at": started_at,
        "recovered": [],
        **(_read_from_server(block, side, run) if paired else _read_from_output(run)),
    }
    return {name: known.get(name) for name in COLUMNS}


def _verifying(block: Mapping[str, Any]) -> RunRow:
    """Return what verifies in a block, as its record has it; earlier releases had no options."""
    return {
        "target": target_setting(block["target"], block.get("options_id", "")),
        "target_model": block["target"],
        "concurrency": block.get("concurrency") or 1,
        "engine_options": options_text(block.get("engine_args", ())),
    }


def _read_from_server(
    block: Mapping[str, Any], side: Mapping[str, Any], run: Mapping[str, Any]
) -> RunRow:
    answer = run["answer"]
    metrics = run.get("metrics", {})
    timings = answer["timings"]
    of_load = block.get("concurrency") is not None
    read = {
        "n_prompt": timings["prompt_n"],
        "prompt_ms": timings["prompt_ms"],
        "decode_ms": timings["predicted_ms"],
        "tokens_per_second": tokens_per_second(answer),
        "generated": len(answer["tokens"]),
        "tokens": answer["tokens"],
        "decodes": None if of_load else _count(metrics, DECODES),
        "stop": block.get("stop", Stop.LENGTH),  # a record of before always went on
        "stopped_by": stopped_by(answer),
    }
    if not side["gamma"]:
        return read
    longest = side["gamma"]
    if longest > LONGEST_DRAFT:
        raise ValueError(f"drafts of {longest} tokens")
    trace = [Verification(*verification) for verification in run.get("verifications", [])]
    counted = _of_answer(timings, trace, longest) if of_load else _of_server(metrics, longest)
    return read | {
        **counted,
        "tried_per_position": tried_per_position(trace, longest),
        "accepted_lengths": accepted_lengths(trace, longest),
        "drafted_lengths": drafted_lengths(trace, longest),
        "replays": count_replays(trace),
        "replays_rejected": count_rejected_replays(trace),
    }


def _of_server(metrics: Mapping[str, float], longest: int) -> RunRow:
    """Return what a server's counters say of the only request that it served."""
    names = {"rounds": ROUNDS, "drafted": DRAFTED, "accepted": ACCEPTED}
    positions = [ACCEPTED_AT.format(position=position) for position in range(longest)]
    return {key: _count(metrics, name) for key, name in names.items()} | {
        "accepted_per_position": [_count(metrics, name) for name in positions]
    }


def _of_answer(timings: Mapping[str, Any], trace: Sequence[Verification], longest: int) -> RunRow:
    """Return what is known of one of several requests that a server served at once.

    Its counters are of all of them. What was drafted and accepted is in the answer, if anything
    was, and the rounds are in the log.
    """
    lengths = accepted_lengths(trace, longest)
    return {
        "rounds": sum(lengths),
        "drafted": timings.get("draft_n", 0),
        "accepted": timings.get("draft_n_accepted", 0),
        "accepted_per_position": [sum(lengths[position + 1 :]) for position in range(longest)],
    }


def _read_from_output(run: Mapping[str, Any]) -> RunRow:
    """Return what the study's tools print; it has neither tokens nor rounds, and needs no seed."""
    reading = run["reading"]
    return {
        **reading,
        "seed": None,
        "stop": None,
        # Less than a millisecond is printed as 0.000 s.
        "prompt_ms": reading["prompt_ms"] or None,
        "decode_ms": reading["decode_ms"] or None,
    }


def _count(metrics: Mapping[str, float], name: str) -> int:
    # The server leaves out a counter that never moved.
    value = metrics.get(name, 0.0)
    if not math.isclose(value, round(value)):
        raise ValueError(f"counter {name} is {value}")
    return round(value)
