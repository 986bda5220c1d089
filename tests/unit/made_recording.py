"""A record of a demonstration made up by hand, in which everything happens that can."""

from dataclasses import replace
from typing import Any

from specmoe.measure.trace import Recording, Round

WORDS = {1: " one", 2: "two", 3: "\n", 4: "\ufffd", 5: "", 6: "\x1b[31m", 7: "seven", 8: "<b>"}


def recording(**more: Any) -> Recording:
    """Return the record, with some of its fields replaced."""
    made = Recording(
        version=5,
        target="MoE Q4",
        draft="0.8B",
        synthetic=True,
        gamma=4,
        prompt_tokens=3,
        prompt_text="Say  <script>alert(1)</script>\n\x1b[2J now",
        first=7,
        rounds=(
            Round((1, 2, 3, 4), 4, 5),  # all accepted
            Round((1, 2, 3, 8), 2, 6),  # two accepted
            Round((1, 2), 0, 8),  # none accepted
            Round((), 0, 7),  # nothing drafted: there is no room
        ),
        token_texts=WORDS,
    )
    return replace(made, **more)
