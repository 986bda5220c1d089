"""The collection of runs: rows of `runs.parquet` from the records of blocks."""

import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime
from itertools import product
from operator import itemgetter
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from specmoe.campaign.asked import Asked
from specmoe.campaign.campaign import LoadedCampaign
from specmoe.config.block import NO_DRAFT, Arm, Block, PromptSource, Protocol
from specmoe.config.methods import METHODS, engine_type
from specmoe.engine.responses import (
    ACCEPTED,
    ACCEPTED_AT,
    DECODES,
    DRAFTED,
    ROUNDS,
    Verification,
    given_in_replays,
    round_counts,
    stopped_by,
    tokens_per_second,
)
from specmoe.errors import MeasurementError
from specmoe.files import named_if_damaged, read_record
from specmoe.measure.trace import common_prefix
from specmoe.records import Records, Request, first_changes, load_kept
from specmoe.runs.schema import COLUMNS, check_rows

RunRow = dict[str, Any]
_pair = itemgetter("block", "prompt")  # that a run shares with its baseline
_OF_BLOCK = ("protocol", "suite", "block", "target", "n_predict", "temperature", "repeat")


def rows_of_record(
    record: Mapping[str, Any], block: Block, made_by: Mapping[str, Any]
) -> list[RunRow]:
    """Return the rows of a block's record, linked to their baselines.

    A run's baseline is the one that was measured beside it, in its group (`groups`). The identity
    of a row is the block's; the record gives only measured values. `made_by` has the
    columns of the campaign, engine and target, and `drafts_sha256`: digests of draft files, by
    model. Raises LookupError or ValueError for a record with other runs than the block's.
    """
    runs = {run["run"]: run for run in record["runs"]}
    of_arms = {
        (group, arm["arm"]): arm
        for arm in record["arms"]
        for group in arm.get("groups", [arm.get("group", 0)])  # 2.0.0 has one
    }
    shared = {**made_by, **{name: record[name] for name in ("machine", "schedule")}}
    arms = {arm.name: arm for arm in block.arms}
    groups = record.get("groups", [[*arms]])  # the study's commands know none
    rows = []
    for group, names in enumerate(groups):
        of_group = []
        for name, source in product(names, block.prompts):
            arm = arms[name]
            run = runs.pop(block.run_id(arm, source.prompt, group))
            known = of_arms[group, name] | run | shared | _request(block, arm, source)
            known["draft_sha256"] = made_by["drafts_sha256"].get(arm.draft_model)
            known["started_at"] = datetime.fromisoformat(run["started_at"])
            known |= _read(run, block, arm)
            of_group.append({column: known.get(column) for column in COLUMNS})
        link_baselines(of_group)
        rows += of_group
    if runs:
        raise ValueError(f"it has runs that are not of its block, as {min(runs)}")
    rows.sort(key=itemgetter("order"))
    return rows


def _request(block: Block, arm: Arm, source: PromptSource) -> RunRow:
    """Return the columns of a requested run: an arm's, of a prompt."""
    paired = block.protocol == Protocol.PAIRED  # the study's tools need no seed, and stop by length
    return {
        **vars(arm),
        **vars(source),
        **{name: getattr(block, name) for name in _OF_BLOCK},
        "engine_options": shlex.join((*block.engine_args, *arm.words)),
        "concurrency": block.slots,
        "stop": block.stop if paired else None,
        "method": engine_type(*arm.methods),
        "draft": arm.setting,
        "level": block.level_of(arm, source),
        "iteration": 0,
        "seed": block.run_seed if paired else None,
    }


def link_baselines(rows: Sequence[RunRow]) -> None:
    """Give every speculative row its baseline's id, and the length of the prefix they share.

    The baseline is the run of the same block and prompt without speculation. The id is
    null in a block without one. The prefix is null where tokens are not known, and where they need
    not be equal: at a temperature above zero, with forced acceptance, and with other options.
    """
    baselines = {_pair(row): row for row in rows if row["draft"] == NO_DRAFT}
    for row in rows:
        baseline = baselines.get(_pair(row))
        if row["draft"] == NO_DRAFT or baseline is None:
            continue
        row["baseline"] = baseline["run"]
        same = row["temperature"] == 0 and row["forced_acceptance"] is None
        same = same and row["engine_options"] == baseline["engine_options"]
        if same and row["tokens"] is not None and baseline["tokens"] is not None:
            row["common_prefix"] = common_prefix(row["tokens"], baseline["tokens"])


def _read(run: Mapping[str, Any], block: Block, arm: Arm) -> RunRow:
    """Return the measured columns of a run, from its server or the study's tool.

    A tool prints neither tokens nor rounds.
    """
    if block.protocol == Protocol.STUDY:
        reading: RunRow = run["reading"]
        # Less than a millisecond is printed as 0.000 s.
        return reading | {name: reading[name] or None for name in ("prompt_ms", "decode_ms")}
    metrics = Counter(run.get("metrics", {}))  # the server leaves out one that never moved
    answer, of_load = run["answer"], block.concurrency is not None
    timings = answer["timings"]
    cached = timings["cache_n"] if block.by_turns else None
    read: RunRow = {
        "n_prompt": timings["prompt_n"] + (cached or 0),
        "cached_tokens": cached,
        "prompt_ms": timings["prompt_ms"],
        "decode_ms": timings["predicted_ms"],
        "tokens_per_second": tokens_per_second(answer),
        "generated": len(answer["tokens"]),
        "tokens": answer["tokens"],
        "decodes": None if of_load else round(metrics[DECODES]),
        "stopped_by": stopped_by(answer),
    }
    if not arm.speculates:
        return read
    trace = [Verification(*verification) for verification in run.get("verifications", [])]
    counts = round_counts(trace, arm.longest)
    lengths = counts["accepted_lengths"]
    at = [ACCEPTED_AT.format(position=position) for position in range(arm.longest)]
    if of_load:
        # The server's counters are of all requests that it served at once. What was drafted and
        # accepted is in the answer, if anything was, and the rounds are in the log.
        metrics = Counter({name: sum(lengths[place + 1 :]) for place, name in enumerate(at)})
        metrics[ROUNDS], metrics[DRAFTED] = sum(lengths), timings.get("draft_n", 0)
        metrics[ACCEPTED] = timings.get("draft_n_accepted", 0)
    read |= {
        "rounds": round(metrics[ROUNDS]),
        "drafted": round(metrics[DRAFTED]),
        "accepted": round(metrics[ACCEPTED]),
        "accepted_per_position": [round(metrics[name]) for name in at],
    }
    if arm.partner and (by_type := run.get("drafted_by")):
        drafted, accepted = by_type[engine_type(arm.partner)]
        # What a head drafts is never restored, so what replays added is the partner's.
        replayed = given_in_replays(trace)
        known = not replayed or METHODS[arm.methods[0]].rolls_back
        read["partner_drafted"] = drafted
        read["partner_accepted"] = accepted - replayed if known else None
    return read | counts


def collect_runs(campaign: LoadedCampaign, suite: str | None, out: Path) -> None:
    """Write the runs of a campaign's records, or of one suite's.

    Raises DamagedFileError, and MeasurementError for records of another configuration, or of
    several machines where one is to measure.
    """
    asked = Asked(campaign)
    by_block = {
        name: rows_of_block(asked, name)
        for name in asked.progress.measured_blocks
        if suite in (None, campaign.block(name).suite)
    }
    rows = [row for of_block in by_block.values() for row in of_block]
    try:
        table = check_rows(rows)
    except ValueError:
        # A check takes as long for the rows of one record as for all.
        for name, of_block in by_block.items():
            with named_if_damaged(asked.records.link(f"blocks/{name}")):
                check_rows(of_block)
        raise
    machines = {row["machine"]: row["block"] for row in rows}
    if campaign.config.campaign.machines == "one" and len(machines) > 1:
        named = ", ".join(f"{machine} (as {block})" for machine, block in sorted(machines.items()))
        raise MeasurementError(
            f"this campaign has rows of {len(machines)} machines: {named}; give each its own"
            " campaign.name, measure the blocks of one again, or set campaign.machines"
        )
    pq.write_table(table, out)


def rows_of_block(asked: Asked, name: str) -> list[RunRow]:
    """Return the rows of a block's record. Raises as `collect_runs` does."""
    request, record = measured_as_asked(asked.records, f"blocks/{name}", asked.block(name))
    block = asked.progress.remaining(name)
    assert block is not None
    description = asked.places.engine_file(asked.campaign.engine_of_block(name))
    with named_if_damaged(description):
        engine = read_record(description)
        made_by = {
            "campaign": asked.campaign.config.campaign.name,
            "engine": engine["id"],
            "engine_commit": engine["commit"],
            "backend": engine["backend"],
            "target_sha256": request["target_sha256"],
            "drafts_sha256": request["drafts_sha256"],
        }
    with named_if_damaged(asked.records.link(f"blocks/{name}")):
        return rows_of_record(record, block, made_by)


def measured_as_asked(
    records: Records, name: str, asked: Request
) -> tuple[Request, dict[str, Any]]:
    """Return the request of a record and its measurement.

    Raises MeasurementError if the request is another one than today's.
    """
    file = records.link(name)
    request, measured = load_kept(file)
    if changed := first_changes(request, asked):
        raise MeasurementError(
            f"{file} was measured with another configuration ({changed}); run snakemake again,"
            " which measures what is asked for now"
        )
    return request, measured
