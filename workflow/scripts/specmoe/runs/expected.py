"""Whether a campaign's rows are the runs and passes that its configuration asks for, no others."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Set
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from itertools import product
from math import isclose, isfinite
from typing import Any

import pandas as pd

from specmoe.config.block import Arrangement, Block, Protocol, Stop
from specmoe.config.differences import differences, plain
from specmoe.config.matrix import list_blocks, list_timed_passes
from specmoe.config.methods import engine_type
from specmoe.config.schema import Config
from specmoe.errors import MeasurementError, one_line
from specmoe.runs.collect import link_baselines
from specmoe.runs.described import Described
from specmoe.runs.schema import COLUMNS
from specmoe.words import counted

_SHOWN = 3
# Nobody measured with llama.cpp before its first commit, or later than now by any clock.
_FIRST = datetime(2023, 3, 10, tzinfo=UTC)
_WRONG_CLOCK = timedelta(days=1)
_OF_PROMPT = ("n_prompt", "prompt_sha256")
# What `link_baselines` reads.
_LINKED = ("run", "block", "prompt", "pass", "draft", "temperature", "imposed_acceptance", "tokens")
_OF_LOADS = ("load_s", "load_tokens", "load_tokens_per_second", "load_decodes")


def expected_rows(
    blocks: Iterable[Block], config: Config, described: Described
) -> dict[str, dict[str, Any]]:
    """Return what the configuration and the files beside the rows say of each row, by run."""
    rows = {}
    for block in blocks:
        paired = block.protocol == Protocol.PAIRED
        fixed = block.arrangement != Arrangement.AUTO and paired
        of_block: dict[str, Any] = {
            "campaign": config.campaign.name,
            "protocol": block.protocol,
            "suite": block.suite,
            "block": block.block,
            "target": block.target_setting,
            "target_model": block.target,
            "engine_options": block.options_text,
            "concurrency": block.slots,
            "n_predict": block.n_predict,
            "temperature": block.temperature,
            "repeat": block.repeat,
            "recovered": [],
            "stop": block.stop if paired else None,
            **({"arrangement": block.arrangement} if fixed else {}),
            **(dict.fromkeys(_OF_LOADS) if block.concurrency is None else {}),
        }
        if paired and block.stop == Stop.LENGTH:
            of_block |= {"generated": block.n_predict, "stopped_by": Stop.LENGTH}
        for side in block.sides:
            draft = block.draft_model if side.speculates else None
            of_side = {
                "method": engine_type(block.method if side.speculates else None),
                "draft": block.setting(side),
                "draft_model": draft,
                **{name: value for name, value in asdict(side).items() if name in COLUMNS},
                **described.facts(config.engine_of(block.suite), block.target, draft),
            }
            for source, number in product(block.prompts, range(block.passes)):
                rows[block.run_id(side, source.prompt, number)] = (
                    of_block
                    | of_side
                    | {
                        "prompt": source.prompt,
                        "workload": source.workload,
                        "category": source.category,
                        "pass": number,
                        "seed": block.run_seed(number) if paired else None,
                    }
                    | ({"n_prompt": source.length} if source.length and paired else {})
                )
    return rows


def refuse_other_runs(
    rows: Iterable[Mapping[str, Any]],
    config: Config,
    described: Described,
    blocks: Collection[Block],
    remedy: str,
) -> None:
    """Make sure that rows are the runs of blocks of a measured campaign, by its files.

    Raises MeasurementError, which ends with `remedy`.
    """
    rows = list(rows)
    whose = f"campaign {config.campaign.name}"
    # A packed campaign has the cards of networks, and none of tables of n-grams.
    networks = {model for block in blocks for model in block.models} & {*config.measured_networks}
    _refuse({"without a card": networks - described.digests.keys()}, whose, "model", remedy)
    last = datetime.now(UTC) + _WRONG_CLOCK
    faults = {
        **_faults(rows, "run", expected_rows(blocks, config, described)),
        "without a time or its rate, or a finite one": set(_untimed(rows)),
        "of a time when nobody measured": {
            f"{row['run']}: {row['started_at']}"
            for row in rows
            if not _FIRST <= row["started_at"] <= last
        },
        "with another baseline or prefix than its tokens give": set(_wrong_baselines(rows)),
        "without the digest of a model or prompt": set(_undigested(rows)),
        "of another prompt or draft than others of its name": set(_unlike_others(rows)),
    }
    _refuse(faults, whose, "run", remedy)


def refuse_other_passes(
    frame: pd.DataFrame, config: Config, described: Described, remedy: str
) -> None:
    """Make sure that timed passes are those of a campaign, each of its model and engine.

    `frame` is that of `runs.pass_times`. Raises MeasurementError, which ends with `remedy`.
    """
    rows = [
        row | {"passes": f"{row['model']}/{row['repeat']}/{row['outputs']}/{row['width']}"}
        for row in frame.to_dict("records")
    ]
    blocks = list_blocks(config, gpu=described.gpu)
    expected: dict[str, dict[str, Any]] = {}
    for one in list_timed_passes(config, blocks):
        facts = described.facts(config.campaign.engine, one.model, None)
        asked = {"depth": one.depth, "samples": one.samples} | {
            "engine": facts["engine"],
            "model_sha256": facts.get("target_sha256"),
            "host": described.hosts,
        }
        for repeat in {block.repeat for block in blocks}:
            for outputs, width in product(one.outputs, one.widths):
                expected[f"{one.model}/{repeat}/{outputs}/{width}"] = asked
    faults = _faults(rows, "passes", expected)
    _refuse(faults, f"campaign {config.campaign.name}", "timed pass", remedy)


def _faults(
    rows: Iterable[Mapping[Any, Any]], key: str, expected: Mapping[str, Mapping[str, Any]]
) -> dict[str, Set[str]]:
    """Return the names of rows by what is wrong with them; `key` is the column of the names."""
    seen = Counter(row[key] for row in rows)
    unlike = set()
    for row in rows:
        if found := differences(row, expected.get(row[key], {})):
            unlike.add(f"{row[key]}: {found[0]}")
    return {
        "missing": expected.keys() - seen.keys(),
        "not of its configuration": seen.keys() - expected.keys(),
        "there more than once": {name for name, count in seen.items() if count > 1},
        "not as its configuration has them": unlike,
    }


def _refuse(faults: Mapping[str, Set[str]], whose: str, noun: str, remedy: str) -> None:
    """Raise MeasurementError for the first fault that something has."""
    for fault, names in faults.items():
        if names:
            named = ", ".join(sorted(names)[:_SHOWN]) + (", ..." if len(names) > _SHOWN else "")
            count = counted(len(names), noun, "timed passes" if noun == "timed pass" else None)
            raise MeasurementError(one_line(f"{whose} has {count} {fault} ({named}); {remedy}"))


def _undigested(rows: list[Mapping[str, Any]]) -> Iterator[str]:
    """Yield the runs without a digest; rows of schema version 8 have none of a prompt."""
    of_prompts = any(isinstance(row["prompt_sha256"], str) for row in rows)
    for row in rows:
        due = {
            "target_sha256": True,
            "draft_sha256": isinstance(row["draft_model"], str),
            "prompt_sha256": of_prompts and row["protocol"] == Protocol.PAIRED,
        }
        if any(needed and not isinstance(row[name], str) for name, needed in due.items()):
            yield str(row["run"])


def _unlike_others(rows: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """Yield the runs with another prompt, or table of n-grams, than the first run of its name has.

    The study's tools do not say what they read.
    """
    first: dict[tuple[str, str], dict[str, Any]] = {}
    for row in rows:
        shared: dict[tuple[str, str], tuple[str, ...]]
        shared = {("draft", row["draft_model"]): ("draft_sha256",)}
        if row["protocol"] == Protocol.PAIRED:
            shared[row["target_model"], row["prompt"]] = _OF_PROMPT
        for name, columns in shared.items():
            known = first.setdefault(name, {column: row[column] for column in columns})
            if unlike := differences(row, known):
                yield f"{row['run']}: {unlike[0]}"


def _untimed(rows: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """Yield the runs with an infinite time or rate, without one, or with one of another time."""
    for row in rows:
        values = [plain(row[name]) for name in ("prompt_ms", "decode_ms", "tokens_per_second")]
        known = [value for value in values if value is not None]
        sound = all(map(isfinite, known))
        # A single token comes with the prompt's pass, and has no rate. The study's tools may print
        # no time, and round what they print.
        generated = plain(row["generated"]) or 0
        if sound and row["protocol"] == Protocol.PAIRED and generated != 1:
            _, decode_ms, rate = values
            sound = len(known) == len(values)
            sound = sound and isclose(rate * decode_ms, 1000 * (generated - 1))
        if not sound:
            yield str(row["run"])


def _wrong_baselines(rows: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """Yield the runs with another baseline, or prefix shared with it, than their tokens give."""
    links = dict.fromkeys(["baseline", "common_prefix"])
    linked = [{name: plain(row[name]) for name in _LINKED} | links for row in rows]
    link_baselines(linked)
    for row, asked in zip(rows, linked, strict=True):
        if found := differences(row, {name: asked[name] for name in links}):
            yield f"{row['run']}: {found[0]}"
