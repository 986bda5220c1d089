"""Small blocks that several tests measure, and the rows of their records."""

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from specmoe.config.block import Arm, Block, PromptSource, level_id
from specmoe.config.engines import Backend
from specmoe.config.methods import Method
from specmoe.engine.job import Job
from specmoe.measure.block import measure_arms
from specmoe.runs.collect import rows_of_record
from specmoe.runs.schema import COLUMNS

MADE_BY = {
    "campaign": "tiny",
    "engine": "built-cpu-01234567",
    "engine_commit": "unknown",
    "backend": "cpu",
    "target_sha256": "a" * 64,
    "drafts_sha256": dict.fromkeys(["draft", "moe"], "b" * 64),
}
ALONE = Arm()


def drafted(gamma: int = 4, share: float | None = None, **more: Any) -> Arm:
    """Return an arm with a draft model, or with another method; `share`: of forced acceptance."""
    given = {"method": Method.DRAFT, "draft": "draft", "draft_model": "draft"}
    return Arm(gamma, share, **given | more)


DRAFTED = drafted(p_min=0.0)


def alone(**more: Any) -> Block:
    """Return a block of a baseline; its prompts are a text and a passage of exact length."""
    block = Block(
        block="",
        comparison="",
        suite="A",
        target="target",
        repeat=0,
        arms=(ALONE,),
        prompts=(PromptSource("code", "code.txt"), PromptSource("passage-32", "passage.txt", 32)),
        n_predict=32,
        temperature=0.0,
        seed=42,
        warmups=0,
        warmup_tokens=8,
        order_seed=1,
        context=512,
        threads=1,
        gpu_layers=0,
        reruns=None,  # a busy machine must not change how many requests a test sees
    )
    return changed(block, **more)


def compared(of: Block | None = None, **more: Any) -> Block:
    """Return a block with the same prompts and a draft model: the baseline beside γ = 4."""
    return changed(of or alone(), **{"suite": "B", "arms": (ALONE, DRAFTED)} | more)


def changed(block: Block, **more: Any) -> Block:
    """Return a block with other fields, and the name that it then has."""
    block = replace(block, **more)
    level = f"/{level_id(block.level)}" if block.level else ""
    comparison = f"{block.suite}/{block.target}{level}"
    return replace(block, comparison=comparison, block=f"{comparison}/r{block.repeat}")


def row(target: str, draft: str = "none", **columns: Any) -> dict[str, Any]:
    """Return a row of a greedy run on its own; columns that nobody gives are null."""
    drafts = draft != "none"
    where = {"target": target, "campaign": "by_hand", "machine": "abc"}
    where |= {"protocol": "paired", "engine": "current-cpu", "backend": "cpu", "engine_options": ""}
    drafter = {"method": "draft-simple" if drafts else "none", "draft": draft, "gamma": 0}
    drafter |= {"draft_model": draft if drafts else None}
    run = {"concurrency": 1, "prompt_sha256": "e" * 64, "temperature": 0.0, "iteration": 0}
    run |= {"stop": "length", "stopped_by": "length", "decode_failures": 0}
    return dict.fromkeys(COLUMNS) | where | drafter | run | columns


def job_of(folder: Path, kind: type[Job] = Job, **more: Any) -> Job:
    """Return the job of measuring a target with a draft model; all files are in a folder."""
    models = {"target": folder / "t.gguf", "drafts": {"draft": folder / "d.gguf"}}
    files = {"root": folder, "binaries": folder, "server_log": folder / "r0.server.log"}
    machine = {"time_limit_s": 120, "backend": Backend.CPU, "usable_memory": 100 * 10**9}
    return kind(**models | files | machine | more)


def measured(block: Block, job: Job) -> dict[str, Any]:
    """Measure a block; returns its record, with the block for `rows`."""
    return measure_arms(block, job) | {"asked": block}


def rows(record: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the rows of a measured block's record, which is a file of JSON by then."""
    found = {key: value for key, value in record.items() if key != "asked"}
    return rows_of_record(json.loads(json.dumps(found)), record["asked"], MADE_BY)
