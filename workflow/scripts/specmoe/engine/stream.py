"""The events of a streamed answer: how they are read, and how they make up the whole answer.

Source: llama.cpp, tools/server/server-context.cpp, `process_token` and `send_partial_response`. An
event has one token, and the time of the pass that gave it by the clock of the answer's `timings`. A
token that ends within a character has no event: the next one has the text of both, its own id
alone, and counts both.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from pydantic import TypeAdapter

from specmoe.engine.answers import COMPLETION, EVENT, read_answer, refuse_impossible_times
from specmoe.errors import MeasurementError

_DATA = b"data: "
_ERROR = TypeAdapter(dict[str, Any])


class Piece(NamedTuple):
    """What one event of a streamed answer says, and when it arrived."""

    tokens: list[int]  # ids; one, or none in the last event
    generated: int  # tokens so far, with those that have no event
    server_ms: float  # the server's time of them since it began with the prompt
    arrived_ms: float  # the client's time since it sent the request
    last: dict[str, Any] | None  # the whole last event: an answer without tokens


class WithheldError(MeasurementError):
    """A stream lacks the ids of some tokens; the same request without a stream gives them."""


def read_pieces(chunks: Iterable[tuple[bytes, float]], n_predict: int) -> Iterator[Piece]:
    """Read an answer from the bytes that came and the times at which they did, in ms.

    Raises ValueError for an event that is broken, goes back in time or in its count, says that the
    server failed, counts more than `n_predict` tokens, or arrived sooner than the server can have
    sent it; and for a stream that ends without its last event.
    """
    before = Piece([], 0, 0.0, 0.0, None)
    for data, arrived_ms in _events(chunks):
        piece = _read(data, arrived_ms)
        if before.last is not None:
            raise ValueError(f"an event after the last of its stream: {_words(data)}")
        least = before.generated + len(piece.tokens)
        if piece.generated < least or piece.server_ms < before.server_ms:
            raise ValueError(f"an event of its stream that goes back: {_words(data)}")
        if piece.generated > n_predict:
            raise ValueError(f"{piece.generated} tokens in its stream instead of {n_predict}")
        before = piece
        yield piece
    if before.last is None:
        raise ValueError(f"a stream that ended after {before.generated} tokens")


def whole_answer(pieces: Sequence[Piece]) -> dict[str, Any]:
    """Return the answer that all pieces of a stream make up, as it would have come unstreamed.

    What comes on top is `token_ms` with the time of every token in ms since the server began with
    the prompt, by the server's clock; and `arrived_ms` since the request was sent, by the client's.
    Tokens of one pass share a time; one that has no event came with the next.

    Raises WithheldError if the stream lacks ids, and ValueError if the last event lacks times.
    """
    last = pieces[-1].last
    assert last is not None
    answer: dict[str, Any] = last | {
        "tokens": [token for piece in pieces for token in piece.tokens],
        "token_ms": _by_token(pieces, [piece.server_ms for piece in pieces]),
        "arrived_ms": _by_token(pieces, [piece.arrived_ms for piece in pieces]),
    }
    withheld = pieces[-1].generated - len(answer["tokens"])
    if withheld:
        raise WithheldError(
            f"llama-server's stream lacks the ids of {withheld} tokens that end within a character"
        )
    read_answer(answer, COMPLETION)
    return answer


def _by_token(pieces: Sequence[Piece], times: Sequence[float]) -> list[float]:
    by_token: list[float] = []
    for piece, time in zip(pieces, times, strict=True):
        by_token += [time] * (piece.generated - len(by_token))
    return by_token


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
        arrived_ms,
        dict(event) if event["stop"] else None,
    )


def _words(data: bytes) -> str:
    return str(data[:80])[2:-1]
