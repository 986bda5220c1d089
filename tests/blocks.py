"""Small blocks that several tests measure, and the provenance of their records."""

from dataclasses import replace
from typing import Any

from specmoe.config.block import Block, PromptSource, Side
from specmoe.config.methods import Method

PROVENANCE = {
    "engine": "e",
    "engine_commit": "c",
    "backend": "cpu",
    "target_sha256": "t",
    "draft_sha256": "d",
}
# The columns of a row of a run that had its server, and the machine, for itself.
NO_LOAD = {
    "concurrency": 1,
    **dict.fromkeys(["load_s", "load_tokens", "load_tokens_per_second", "load_decodes"]),
    "taken_away": None,
    "prompt_sha256": "e" * 64,
}
ALONE = Side()
DRAFTED = Side(4, p_min=0.0, n_min=0)


def alone(**more: Any) -> Block:
    """Return a block of a target alone; its prompts are a text and a passage of exact length."""
    block = Block(
        block="",
        suite="A",
        target="target",
        methods=(),
        draft="none",
        draft_model=None,
        repeat=0,
        sides=(ALONE,),
        prompts=(PromptSource("code", "code.txt"), PromptSource("passage-32", "passage.txt", 32)),
        passes=1,
        n_predict=32,
        temperature=0.0,
        seed=42,
        warmups=0,
        warmup_tokens=8,
        order_seed=1,
        context=512,
        threads=1,
        gpu_layers=0,
        gate={"retries": 0},  # a busy machine must not change how many requests a test sees
    )
    return _named(replace(block, **more))


def compared(of: Block | None = None, **more: Any) -> Block:
    """Return a block with the same prompts and a draft: the target alone beside γ = 4."""
    given = {"suite": "B", "methods": (Method.DRAFT,), "draft": "draft", "draft_model": "draft"}
    return _named(replace(of or alone(), **given | {"sides": (ALONE, DRAFTED)} | more))


def _named(block: Block) -> Block:
    return replace(block, block=f"{block.suite}/{block.target}/{block.draft}/r{block.repeat}")
