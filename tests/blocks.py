"""Small blocks that several tests measure, and the provenance of their records."""

from dataclasses import replace
from typing import Any

from specmoe.config.block import Block, Method, PromptSource

PROVENANCE = {
    "engine": "e",
    "engine_commit": "c",
    "backend": "cpu",
    "target_sha256": "t",
    "draft_sha256": "d",
}


def baseline(**more: Any) -> Block:
    """Return a block without a draft; its prompts are a text and a passage of exact length."""
    block = Block(
        block="",
        suite="P",
        target="target",
        method=Method.NONE,
        draft="none",
        gamma=0,
        repeat=0,
        prompts=(PromptSource("code", "code.txt"), PromptSource("passage-32", "passage.txt", 32)),
        n_predict=32,
        temperature=0.0,
        seed=42,
        warmups=0,
        context=512,
        threads=1,
        gpu_layers=0,
    )
    return _named(replace(block, **more))


def speculative(of: Block, **more: Any) -> Block:
    """Return a block with the same runs and a draft."""
    given = {"method": Method.DRAFT, "draft": "draft", "gamma": 4} | more
    return _named(replace(of, **given))


def _named(block: Block) -> Block:
    name = f"{block.suite}/{block.target}/{block.draft}/g{block.gamma}/r{block.repeat}"
    return replace(block, block=name)
