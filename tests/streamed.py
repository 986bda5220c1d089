"""A streamed answer as llama-server writes it."""

import json
from collections.abc import Iterable
from typing import Any


def event(tokens: list[int], generated: int, *, stop: bool = False, **more: Any) -> dict[str, Any]:
    """Return an event: tokens, and how many there are so far."""
    return {"tokens": tokens, "tokens_predicted": generated, "stop": stop, **more}


def streamed(events: Iterable[Any]) -> bytes:
    """Return events as server-sent events."""
    return b"".join(b"data: %b\n\n" % json.dumps(one).encode() for one in events)
