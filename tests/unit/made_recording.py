"""A record of a demonstration made up by hand, in which everything happens that can."""

from dataclasses import replace
from typing import Any

from specmoe.config.trace import Demonstration
from specmoe.measure.trace_record import Provenance, Recording

from ..blocks import DRAFTED, alone, compared
from .decoding_log import every_kind

WORDS = {1: " one", 2: "two", 3: "\n", 4: "\ufffd", 5: "", 6: "\x1b[31m", 7: "seven", 8: "<b>"}


def recording(**more: Any) -> Recording:
    """Return the record, with some of its fields replaced."""
    decoding = every_kind()
    block = compared(alone(n_predict=len(decoding.tokens)), sides=(DRAFTED,))
    made = Recording(
        version=3,
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
