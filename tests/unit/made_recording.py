"""A record of a demonstration made up by hand, in which everything happens that can."""

from dataclasses import replace
from typing import Any

from specmoe.config.block import Side
from specmoe.config.methods import Method
from specmoe.config.trace import Demonstration
from specmoe.measure.trace_record import Provenance, Recording

from ..blocks import DRAFTED, alone, compared
from .decoding_log import Decoding, every_kind

WORDS = {1: " one", 2: "two", 3: "\n", 4: "\ufffd", 5: "", 6: "\x1b[31m", 7: "seven", 8: "<b>"}


def recording(**more: Any) -> Recording:
    """Return the record, with some of its fields replaced."""
    decoding = every_kind()
    block = compared(alone(n_predict=len(decoding.tokens)), sides=(DRAFTED,))
    made = Recording(
        version=4,
        demonstration=Demonstration(
            block=replace(block, prompts=block.prompts[:1]),
            target_label="MoE Q4",
            draft_label="0.8B",
            prompt_label="Code",
            synthetic=True,
        ),
        provenance=Provenance(
            engine="current-cpu",
            engine_commit="c",
            backend="cpu",
            host="h",
            target_sha256="t",
            draft_sha256="d",
        ),
        command=("llama-server", "--model", "m.gguf"),
        prompt_tokens=3,
        prompt_text="Say  <script>alert(1)</script>\n\x1b[2J now",
        tokens=tuple(decoding.tokens),
        text="seven one\x1b[31m",
        rounds=tuple(decoding.rounds),
        plain_tokens=tuple(decoding.tokens),
        token_texts={token: WORDS.get(token, f"t{token}") for token in range(12)},
    )
    return replace(made, **more)


def of_decoding(decoding: Decoding, *methods: Method, side: Side = DRAFTED) -> Recording:
    """Return the record of a decoding by methods that load no file."""
    made = recording()
    block = replace(made.demonstration.block, methods=methods, draft_model=None, sides=(side,))
    return replace(
        made,
        demonstration=replace(made.demonstration, block=block, draft_label=None),
        tokens=tuple(decoding.tokens),
        plain_tokens=tuple(decoding.tokens),
        rounds=tuple(decoding.rounds),
        token_texts={token: f"t{token}" for token in range(20)},
    )


def chain() -> Recording:
    """Return the record of a chain: MTP drafts where an n-gram method finds nothing, or nobody."""
    decoding = Decoding()
    for token in (1, 2):
        decoding.step(token)
    decoding.round([3, 4], [(1, 5)], Method.MTP)
    decoding.round([6, 7, 8], [(3, 9)], Method.NGRAM_MOD)
    decoding.step(10)
    side = Side(4, ngram_gamma=8, p_min=0.5, n_min=0, n_match=3)
    return of_decoding(decoding, Method.NGRAM_MOD, Method.MTP, side=side)


def nothing_drafted() -> Recording:
    """Return the record of a method that found nothing to draft."""
    decoding = Decoding()
    for token in (1, 2, 3):
        decoding.step(token)
    return of_decoding(decoding, Method.NGRAM_SIMPLE, side=Side(4, n_match=3))
