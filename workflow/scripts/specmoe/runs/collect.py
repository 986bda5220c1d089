"""From the records of blocks to the rows of `runs.parquet`, and which table is of which request."""

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from datetime import datetime
from itertools import product
from operator import itemgetter
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from specmoe.config.block import NO_DRAFT, Block, PromptSource, Protocol, Side
from specmoe.config.methods import engine_type
from specmoe.engine.answers import (
    ACCEPTED,
    ACCEPTED_AT,
    DECODES,
    DRAFTED,
    ROUNDS,
    Verification,
    accepted_lengths,
    count_rejected_replays,
    count_replays,
    drafted_lengths,
    stopped_by,
    tokens_per_second,
    tried_per_position,
)
from specmoe.errors import MeasurementError
from specmoe.files import named_if_damaged, read_record
from specmoe.measure.trace import common_prefix
from specmoe.plan.campaign import LoadedCampaign
from specmoe.plan.gate import Gate
from specmoe.records import Request, digest_of, first_changes, is_known, load
from specmoe.runs.schema import COLUMNS, check_rows

RunRow = dict[str, Any]
_ASKED = b"specmoe_asked"  # in a table's metadata: what each block was asked, as digests
_compared = itemgetter("block", "prompt", "pass")  # what a run and its baseline have in common


def rows_of_record(
    record: Mapping[str, Any], block: Block, made_by: Mapping[str, Any]
) -> list[RunRow]:
    """Return the rows of a block's record, linked to their baselines.

    Where memory did not hold all sides, a run's baseline is that of its own group (`groups`).

    A row's identity is that of the block which is asked for. `made_by` has the columns of the
    campaign, engine and target, and `drafts_sha256`: the digests of files that draft, by model.
    From the record comes only what was measured. Raises ValueError for a record with other runs
    than the block's.
    """
    runs = {run["run"]: run for run in record["runs"]}
    of_sides = {(side.get("group", 0), side["side"]): side for side in record["sides"]}
    shared = {**made_by, **_of_block(block)}
    shared |= {name: record[name] for name in ("host", "arrangement")}
    sides = {side.name: side for side in block.sides}
    groups = record.get("groups", [[*sides]])  # the study's commands know none
    if lacking := [name for name in sides if not any(name in group for group in groups)]:
        raise ValueError(f"it lacks side {lacking[0]}")
    rows = []
    for group, names in enumerate(groups):
        of_group = []
        for name, source, number in product(names, block.prompts, range(block.passes)):
            side = sides[name]
            run_id = block.run_id(side, source.prompt, number, group)
            if run_id not in runs:
                raise ValueError(f"it lacks run {run_id}")
            run = runs.pop(run_id)
            asked = _of_run(block, side, source, number)
            asked["draft_sha256"] = made_by["drafts_sha256"].get(side.draft_model)
            known = of_sides[group, name] | run | shared | asked | _read(run, block, side)
            of_group.append({column: known.get(column) for column in COLUMNS})
        link_baselines(of_group)
        rows += of_group
    if runs:
        raise ValueError(f"it has runs that are not of its block, as {min(runs)}")
    rows.sort(key=itemgetter("order"))
    return rows


def _of_block(block: Block) -> RunRow:
    """Return the columns that all rows of a block share."""
    return {
        "protocol": block.protocol,
        "suite": block.suite,
        "block": block.block,
        "target": block.target,
        "engine_options": block.options_text,
        "concurrency": block.slots,
        "n_predict": block.n_predict,
        "temperature": block.temperature,
        "repeat": block.repeat,
        "stop": block.stop if block.protocol == Protocol.PAIRED else None,
        "recovered": [],
    }


def _of_run(block: Block, side: Side, source: PromptSource, number: int) -> RunRow:
    """Return the columns that tell the runs of a block apart."""
    return {
        **asdict(side),
        "method": engine_type(side.method),
        "draft": side.setting,
        "level": block.level_of(side, source),
        "prompt": source.prompt,
        "workload": source.workload,
        "category": source.category,
        "pass": number,
        # The study's tools need none.
        "seed": block.run_seed(number) if block.protocol == Protocol.PAIRED else None,
    }


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


def _read(run: Mapping[str, Any], block: Block, side: Side) -> RunRow:
    """Return what was read of a run: from its server, or from what the study's tool printed."""
    started_at = datetime.fromisoformat(run["started_at"])
    paired = block.protocol == Protocol.PAIRED
    read = _read_from_server(run, block, side) if paired else _read_from_output(run)
    return {"started_at": started_at, **read}


def _read_from_server(run: Mapping[str, Any], block: Block, side: Side) -> RunRow:
    answer = run["answer"]
    metrics = run.get("metrics", {})
    timings = answer["timings"]
    of_load = block.concurrency is not None
    read = {
        "n_prompt": timings["prompt_n"],
        "prompt_ms": timings["prompt_ms"],
        "decode_ms": timings["predicted_ms"],
        "tokens_per_second": tokens_per_second(answer),
        "generated": len(answer["tokens"]),
        "tokens": answer["tokens"],
        "decodes": None if of_load else _count(metrics, DECODES),
        "stopped_by": stopped_by(answer),
    }
    if not side.speculates:
        return read
    longest = side.gamma
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
    """Return what the study's tools print; it has neither tokens nor rounds."""
    reading = run["reading"]
    return {
        **reading,
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


def collect_runs(campaign: LoadedCampaign, suite: str | None, out: Path) -> None:
    """Write the runs of a campaign's records, or of one suite's.

    Raises DamagedFileError and MeasurementError for records that are not what is asked for.
    """
    gate = Gate(campaign)
    by_block: dict[str, list[RunRow]] = {}
    asked: dict[str, str] = {}
    for name, block in campaign.blocks.items():
        if suite in (None, block.suite):
            request, by_block[name] = rows_of_block(gate, name)
            asked[name] = digest_of(request)
    rows = [row for own in by_block.values() for row in own]
    if campaign.config.campaign.hosts == "one":
        refuse_mixed_hosts(rows)
    try:
        table = check_rows(rows)
    except ValueError:
        # A check takes as long for the rows of one record as for all.
        for name, own in by_block.items():
            with named_if_damaged(gate.records.link(f"blocks/{name}")):
                check_rows(own)
        raise
    metadata = {**table.schema.metadata, _ASKED: json.dumps(asked)}
    pq.write_table(table.replace_schema_metadata(metadata), out)


def rows_of_block(gate: Gate, name: str) -> tuple[Request, list[RunRow]]:
    """Return what a block was asked, and its rows. Raises as `collect_runs` does."""
    request, record = measured_as_asked(gate, f"blocks/{name}", gate.block(name))
    block = gate.campaign.asked(name)
    assert block is not None
    with named_if_damaged(gate.records.link(f"blocks/{name}")):
        made_by = _made_by(gate.campaign, name, request)
        return request, rows_of_record(record, block, made_by)


def measured_as_asked(gate: Gate, name: str, asked: Request) -> tuple[Request, dict[str, Any]]:
    """Return what a job was asked and what it measured, if that is what is asked for now.

    Raises MeasurementError if it is something else.
    """
    file = gate.records.link(name)
    found, measured = load(file)
    if changed := first_changes(found, asked):
        raise MeasurementError(
            f"{file} was measured with another configuration ({changed}); run snakemake again,"
            " which measures what is asked for now"
        )
    return found, measured


def refuse_other_table(campaign: LoadedCampaign, runs: Path) -> None:
    """Raise MeasurementError if a table of runs is of other blocks than those that are asked for.

    Snakemake may have been told to leave it as it is.
    """
    metadata = pq.read_schema(runs).metadata or {}
    collected = json.loads(metadata.get(_ASKED, b"{}"))
    gate = Gate(campaign)
    for name in campaign.blocks:
        request = gate.block(name)
        if is_known(request) and collected.get(name) != digest_of(request):
            raise MeasurementError(
                f"{runs} has other runs of block {name} than are asked for now; run"
                " `snakemake runs` without options that keep old files"
            )


def _made_by(campaign: LoadedCampaign, block: str, request: Request) -> RunRow:
    """Return the columns of a row that name the campaign, its engine and its models."""
    description = campaign.engine_file(campaign.engine_of_block(block))
    with named_if_damaged(description):
        engine = read_record(description)
        return {
            "campaign": campaign.config.campaign.name,
            "engine": engine["id"],
            "engine_commit": engine["commit"],
            "backend": engine["backend"],
            "target_sha256": request["target_sha256"],
            "drafts_sha256": request["drafts_sha256"],
        }
