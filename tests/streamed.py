"""A streamed answer as llama-server writes it."""

import json
from collections.abc import Iterable
from typing import Any


def event(
    tokens: list[int], generated: int, predicted_ms: float, *, stop: bool = False, **more: Any
) -> dict[str, Any]:
    """Return an event: tokens, how many there are so far, and the time that they took."""
    return {
        "tokens": tokens,
        "tokens_predicted": generated,
        "stop": stop,
        "timings": {"prompt_n": 3, "prompt_ms": 1.5, "predicted_ms": predicted_ms},
        **more,
    }


def streamed(events: Iterable[Any]) -> bytes:
    """Return events as server-sent events."""
    return b"".join(b"data: %b\n\n" % json.dumps(one).encode() for one in events)
