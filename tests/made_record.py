"""A small campaign's record, with what rows are made of; made without an engine."""

import hashlib
import json
from pathlib import Path
from typing import Any

import yaml

from specmoe.config.block import Block
from specmoe.config.load import load
from specmoe.config.matrix import list_blocks
from specmoe.measure.block import turns_of

from .conftest import ROOT, merge
from .small_campaign import tiny_campaign


def small_block(study: dict[str, Any]) -> Block:
    """Return the small campaign's comparison, given the default configuration, which it changes."""
    config = load(merge(study, tiny_campaign(Path("bin"))), ROOT)
    [block] = (one for one in list_blocks(config, gpu=False) if one.speculates)
    return block


def made_record(block: Block) -> dict[str, Any]:
    """Return the record of a block of the paired protocol, as JSON has it."""
    arms = [
        {"arm": arm.name, "groups": [number], "peak_rss_bytes": 50_000_000}
        for number, group in enumerate(block.groups)
        for arm in group
    ]
    turns = turns_of(block, together=True)
    runs = [_run(block, turn, order) for order, turn in enumerate(turns)]
    record = {"schedule": "interleaved", "machine": "0123456789ab", "arms": arms, "runs": runs}
    record["groups"] = [[arm.name for arm in group] for group in block.groups]
    made: dict[str, Any] = json.loads(json.dumps(record))
    return made


def _run(block: Block, turn: Any, order: int) -> dict[str, Any]:
    [source] = turn.sources
    generated, prompt = block.n_predict, [*range(source.length or 14)]
    known = yaml.safe_load(Path(__file__).with_name("made_run.yaml").read_text())
    run = known["any"] | {
        "run": block.run_id(turn.arm, source.prompt, turn.group),
        "arm": turn.arm.name,
        "order": order,
        "seed": block.run_seed,
        "started_at": f"2026-11-25T16:34:{31 + order}.490949+00:00",
        "prompt_sha256": hashlib.sha256(json.dumps(prompt).encode()).hexdigest(),
        "answer": {
            "tokens": [*range(generated)],
            "timings": {"prompt_n": len(prompt), "prompt_ms": 8.5, "predicted_ms": 13.8},
            "stop_type": "limit",
        },
        "metrics": {"n_decode_total": generated, "spec_decode_num_drafts_total": 0},
    }
    return run | known["speculative"] if turn.arm.speculates else run
