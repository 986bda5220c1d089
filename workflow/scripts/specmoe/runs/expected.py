"""Whether a campaign's rows are the runs that its configuration asks for, all and no others."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import product
from math import isfinite
from typing import Any

import pandas as pd

from specmoe.config.backend import Backend
from specmoe.config.block import NO_DRAFT, Block, Protocol
from specmoe.config.matrix import list_blocks
from specmoe.config.methods import engine_types
from specmoe.config.schema import Config
from specmoe.errors import MeasurementError
from specmoe.words import counted

_SHOWN = 3


def expected_rows(blocks: Iterable[Block]) -> dict[str, dict[str, Any]]:
    """Return what the configuration says of the rows of blocks, by run."""
    rows = {}
    for block in blocks:
        for side, source, number in product(block.sides, block.prompts, range(block.passes)):
            rows[block.run_id(side, source.prompt, number)] = {
                "protocol": block.protocol,
                "suite": block.suite,
                "block": block.block,
                "target": block.target_setting,
                "target_model": block.target,
                "engine_options": block.options_text,
                "concurrency": block.slots,
                "method": engine_types(block.methods if side.speculates else ()),
                "draft": block.setting(side),
                "draft_model": block.draft_model if side.speculates else None,
                "gamma": side.gamma,
                "imposed_acceptance": side.imposed_acceptance,
                "imposed_profile": side.imposed_profile,
                "prompt": source.prompt,
                "n_predict": block.n_predict,
                "temperature": block.temperature,
                "repeat": block.repeat,
                "pass": number,
                "workload": source.workload,
                "category": source.category,
                "stop": block.stop if block.protocol == Protocol.PAIRED else None,
            }
    return rows


def refuse_other_runs(
    rows: Iterable[Mapping[str, Any]], config: Config, suites: Iterable[str], remedy: str
) -> None:
    """Make sure that rows are the runs of suites of a measured campaign, and each model one file.

    Raises MeasurementError, which ends with `remedy`.
    """
    rows = list(rows)
    gpu = any(row["backend"] != Backend.CPU for row in rows)
    blocks = list_blocks(config, gpu=gpu)
    expected = expected_rows(block for block in blocks if block.suite in set(suites))
    seen = Counter(row["run"] for row in rows)
    faults = {
        "missing": expected.keys() - seen.keys(),
        "not of its configuration": seen.keys() - expected.keys(),
        "there more than once": {run for run, count in seen.items() if count > 1},
        "not as its configuration has them": set(_unlike(rows, expected)),
        "without a time or rate, or a finite one": set(_untimed(rows)),
        "with a baseline of another prompt or block": set(_wrong_baselines(rows)),
    }
    for fault, runs in faults.items():
        if runs:
            named = ", ".join(sorted(runs)[:_SHOWN]) + (", ..." if len(runs) > _SHOWN else "")
            raise MeasurementError(
                f"campaign {config.campaign.name} has {counted(len(runs), 'run')} {fault}"
                f" ({named}); {remedy}"
            )
    _refuse_mixed_weights(rows, remedy)


def _unlike(
    rows: Iterable[Mapping[str, Any]], expected: Mapping[str, Mapping[str, Any]]
) -> Iterator[str]:
    """Yield the rows with another value than expected, with its name."""
    for row in rows:
        for name, value in expected.get(row["run"], {}).items():
            known = None if pd.isna(row[name]) else row[name]
            if known != value:
                yield f"{row['run']}: {name} is {known}, not {value}"
                break


def _untimed(rows: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """Yield the runs with an infinite time or rate, or without one that the server always gives."""
    for row in rows:
        values = [row[name] for name in ("prompt_ms", "decode_ms", "tokens_per_second")]
        known = [value for value in values if not pd.isna(value)]
        # A single token comes with the prompt's pass, and has no rate. The study's tools may print
        # no time.
        all_due = row["protocol"] == Protocol.PAIRED and row["generated"] != 1
        if (all_due and len(known) < len(values)) or not all(map(isfinite, known)):
            yield str(row["run"])


def _wrong_baselines(rows: list[Mapping[str, Any]]) -> Iterator[str]:
    """Yield the runs whose baseline is not the run without a draft of their block and prompt."""
    by_run = {row["run"]: row for row in rows}
    for row in rows:
        if isinstance(row["baseline"], str):
            baseline = by_run.get(row["baseline"], {})
            same = all(baseline.get(key) == row[key] for key in ("block", "prompt", "pass"))
            if not same or baseline.get("draft") != NO_DRAFT:
                yield str(row["run"])


def _refuse_mixed_weights(rows: Iterable[Mapping[str, Any]], remedy: str) -> None:
    """Refuse models whose rows name several digests; raises MeasurementError."""
    digests: dict[str, dict[str, str]] = {}
    for row in rows:
        for model, digest in (("target_model", "target_sha256"), ("draft", "draft_sha256")):
            if isinstance(row[digest], str):
                digests.setdefault(row[model], {}).setdefault(row[digest], row["block"])
    for model, blocks in digests.items():
        if len(blocks) > 1:
            named = ", ".join(f"{digest[:12]} in {block}" for digest, block in blocks.items())
            raise MeasurementError(
                f"model {model} is {len(blocks)} different files in this campaign ({named});"
                f" {remedy}"
            )
