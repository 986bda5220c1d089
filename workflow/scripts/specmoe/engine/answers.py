"""What llama-server answers, read where it comes in, so that what an answer lacks is named."""

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from prometheus_client.parser import text_string_to_metric_families

from specmoe.config.block import Stop

# The names of counters, see `read_counters`.
DRAFTED = "spec_decode_num_draft_tokens_total"
ACCEPTED = "spec_decode_num_accepted_tokens_total"
ROUNDS = "spec_decode_num_drafts_total"
ACCEPTED_AT = "spec_decode_num_accepted_tokens_per_pos_total/{position}"
DECODES = "n_decode_total"
PROCESSING = "requests_processing"

# What we read of an answer of `/completion`, and of an event of a streamed one.
COMPLETION = ("tokens", "timings.prompt_n", "timings.prompt_ms", "timings.predicted_ms")
EVENT = ("tokens", "tokens_predicted", "stop")

_DATA = b"data: "
_SHOWN = 80  # bytes of an answer that lacks something


def read_answer(answer: bytes, *needed: str) -> Any:
    """Return an answer from JSON, with all that it has.

    Raises ValueError in words if it lacks a field, named by its keys; of a list, the first has it.
    """
    try:
        read = json.loads(answer)
    except ValueError as error:
        raise ValueError(f"what is no JSON: {_words(answer)}") from error
    for name in needed:
        inside = read[0] if isinstance(read, list) and read else read
        for key in name.split("."):
            if not isinstance(inside, dict) or inside.get(key) is None:
                raise ValueError(f"what has no {name}: {_words(answer)}")
            inside = inside[key]
    return read


def read_events(chunks: Iterable[bytes]) -> Iterator[dict[str, Any]]:
    """Read the events of a streamed answer from the bytes that came.

    An event has the ids of its `tokens`, one or none, and with `tokens_predicted` how many there
    are so far. A token that ends within a character has no event, and the next one counts both
    (llama.cpp, tools/server/server-context.cpp, `process_token` and `send_partial_response`).

    Raises ValueError for an event that says that the server failed, and for a stream that ends
    without its last event, which has `stop`.
    """
    rest, stop = b"", False
    for chunk in chunks:
        *lines, rest = (rest + chunk).split(b"\n")
        for line in lines:
            if not line.startswith(_DATA):
                continue  # the end of an event, or a sign of life
            data = line.removeprefix(_DATA)
            if data.startswith(b'{"error"'):
                raise ValueError(f"an error in its stream: {_words(data)}")
            event = read_answer(data, *EVENT)
            stop = event["stop"]
            yield event
    if not stop:
        raise ValueError("a stream without its last event")


def _words(answer: bytes) -> str:
    return str(answer[:_SHOWN])[2:-1]


def read_counters(text: str) -> dict[str, float]:
    """Return the counters of `/metrics` by name, without the `llamacpp:` prefix.

    Counters per draft position are named `..._per_pos_total/0`, `/1` and so on. Raises ValueError
    if they are not counters.
    """
    return {
        "/".join([sample.name.removeprefix("llamacpp:"), *sample.labels.values()]): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def tokens_per_second(answer: Mapping[str, Any]) -> float | None:
    """Return the decoding rate of an answer, or None if it is a single token.

    The first token comes from the prompt's pass.
    """
    after_first = len(answer["tokens"]) - 1
    return after_first / answer["timings"]["predicted_ms"] * 1000 if after_first else None


def stopped_by(answer: Mapping[str, Any]) -> Stop:
    """Return why an answer has no further token: the target ended its text, or it was enough."""
    return Stop.EOS if answer.get("stop_type") == "eos" else Stop.LENGTH
