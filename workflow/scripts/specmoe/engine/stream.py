"""The events of a streamed answer, as a steady load reads them.

Source: llama.cpp, tools/server/server-context.cpp, `process_token` and `send_partial_response`. An
event has one token, and the time of the pass that gave it by the clock of the answer's `timings`. A
token that ends within a character has no event: the next one has the text of both, its own id
alone, and counts both.
"""

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from pydantic import TypeAdapter

from specmoe.engine.answers import EVENT, read_answer, refuse_impossible_times

_DATA = b"data: "
_ERROR = TypeAdapter(dict[str, Any])


class Piece(NamedTuple):
    """What one event of a streamed answer says."""

    tokens: list[int]  # ids; one, or none in the last event
    generated: int  # tokens so far, with those that have no event
    server_ms: float  # the server's time of them since it began with the prompt
    last: bool  # whether the answer ends with it


def read_pieces(chunks: Iterable[tuple[bytes, float]], n_predict: int) -> Iterator[Piece]:
    """Read an answer from the bytes that came and the times at which they did, in ms.

    Raises ValueError for an event that is broken, goes back in time or in its count, says that the
    server failed, counts more than `n_predict` tokens, or arrived sooner than the server can have
    sent it; and for a stream that ends without its last event.
    """
    before = Piece([], 0, 0.0, last=False)
    for data, arrived_ms in _events(chunks):
        piece = _read(data, arrived_ms)
        if before.last:
            raise ValueError(f"an event after the last of its stream: {_words(data)}")
        least = before.generated + len(piece.tokens)
        if piece.generated < least or piece.server_ms < before.server_ms:
            raise ValueError(f"an event of its stream that goes back: {_words(data)}")
        if piece.generated > n_predict:
            raise ValueError(f"{piece.generated} tokens in its stream instead of {n_predict}")
        before = piece
        yield piece
    if not before.last:
        raise ValueError(f"a stream that ended after {before.generated} tokens")


def _events(chunks: Iterable[tuple[bytes, float]]) -> Iterator[tuple[bytes, float]]:
    """Return the data of each event, and the time at which its end came."""
    rest = b""
    for chunk, at in chunks:
        *lines, rest = (rest + chunk).split(b"\n")
        for line in lines:
            line = line.rstrip(b"\r")
            if line.startswith(_DATA):
                yield line.removeprefix(_DATA), at
            # An empty line ends an event; a colon alone keeps the connection alive.
            elif line.strip(b":"):
                raise ValueError(f"what is no event of a stream: {_words(line)}")


def _read(data: bytes, arrived_ms: float) -> Piece:
    if data.startswith(b'{"error"'):
        raise ValueError(f"an error in its stream: {read_answer(data, _ERROR)['error']}")
    event = read_answer(data, EVENT)
    timings = event["timings"]
    refuse_impossible_times(event, arrived_ms)
    return Piece(
        event["tokens"],
        event["tokens_predicted"],
        round(timings["prompt_ms"] + timings["predicted_ms"], 3),  # as exact as its parts
        last=event["stop"],
    )


def _words(data: bytes) -> str:
    return str(data[:80])[2:-1]
