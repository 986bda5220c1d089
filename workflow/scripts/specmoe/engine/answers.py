"""What llama-server answers, checked where it comes in: a broken answer is no measurement."""

import math
from collections.abc import Mapping
from typing import Annotated, Any, NotRequired, TypeVar

from prometheus_client.parser import text_string_to_metric_families
from pydantic import Field, TypeAdapter, ValidationError, with_config
from typing_extensions import TypedDict

from specmoe.config.block import Stop
from specmoe.config.parse import first_fault

# The names of counters, see `read_counters`.
DRAFTED = "spec_decode_num_draft_tokens_total"
ACCEPTED = "spec_decode_num_accepted_tokens_total"
ROUNDS = "spec_decode_num_drafts_total"
ACCEPTED_AT = "spec_decode_num_accepted_tokens_per_pos_total/{position}"
DECODES = "n_decode_total"
PROCESSING = "requests_processing"

T = TypeVar("T")
Count = Annotated[int, Field(ge=0)]
Milliseconds = Annotated[float, Field(ge=0, allow_inf_nan=False)]
# A server's own times are rounded to microseconds.
_ROUNDING_MS = 0.01
# An answer has more than what we read of it.
_answer = with_config(strict=True, extra="allow")


@_answer
class StreamedTimings(TypedDict):
    """How long the server says that a request took until the tokens of an event were there."""

    prompt_ms: Milliseconds
    predicted_ms: Milliseconds


@_answer
class Timings(TypedDict):
    """How long the server says that a request took."""

    prompt_n: Count
    prompt_ms: Milliseconds
    predicted_ms: Annotated[Milliseconds, Field(gt=0)]


@_answer
class Completion(TypedDict):
    """The answer of `/completion`."""

    tokens: list[Count]
    timings: Timings
    stop_type: NotRequired[str]


@_answer
class Event(TypedDict):
    """One event of a streamed answer of `/completion`; with `stop` the last, without tokens."""

    tokens: list[Count]
    tokens_predicted: Count
    stop: bool
    timings: StreamedTimings


@_answer
class Slot(TypedDict):
    """One of the answer of `/slots`."""

    n_ctx: Count
    speculative: bool


@_answer
class Tokenized(TypedDict):
    """The answer of `/tokenize`."""

    tokens: list[Count]


@_answer
class Detokenized(TypedDict):
    """The answer of `/detokenize`."""

    content: str


@_answer
class Templated(TypedDict):
    """The answer of `/apply-template`."""

    prompt: str


@_answer
class Properties(TypedDict):
    """The answer of `/props`."""

    build_info: NotRequired[str]


COMPLETION = TypeAdapter(Completion)
EVENT = TypeAdapter(Event)
TOKENIZED = TypeAdapter(Tokenized)
DETOKENIZED = TypeAdapter(Detokenized)
TEMPLATED = TypeAdapter(Templated)
SLOTS: TypeAdapter[list[Slot]] = TypeAdapter(Annotated[list[Slot], Field(min_length=1)])
PROPERTIES = TypeAdapter(Properties)


def read_answer(answer: bytes | Mapping[str, Any], kind: TypeAdapter[T]) -> T:
    """Return an answer, from JSON or from what JSON holds, with all that it has.

    Raises ValueError in words if it is not of the kind.
    """
    try:
        if isinstance(answer, bytes):
            return kind.validate_json(answer)
        return kind.validate_python(answer)
    except ValidationError as error:
        if isinstance(answer, bytes) and error.errors()[0]["type"] == "json_invalid":
            raise ValueError(f"what is no JSON ({str(answer[:40])[2:-1]}...)") from error
        raise ValueError(first_fault(error)) from error


def refuse_impossible_times(answer: Completion | Event, wall_ms: float) -> None:
    """Raise ValueError if a request took the server longer than it took us to be answered."""
    times = answer["timings"]
    both = times["prompt_ms"] + times["predicted_ms"]
    if both > wall_ms + _ROUNDING_MS:
        raise ValueError(
            f"prompt_ms + predicted_ms are {both:.1f}, and the whole request took {wall_ms:.1f} ms"
        )


def read_counters(text: str) -> dict[str, float]:
    """Return the counters of `/metrics` by name, without the `llamacpp:` prefix.

    Counters per draft position are named `..._per_pos_total/0`, `/1` and so on. Raises ValueError
    if they are not counters.
    """
    counters = {
        "/".join([sample.name.removeprefix("llamacpp:"), *sample.labels.values()]): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }
    for name, value in counters.items():
        if not math.isfinite(value):
            raise ValueError(f"{name} is {value}")
    return counters


def tokens_per_second(answer: Mapping[str, Any]) -> float | None:
    """Return the decoding rate of an answer, or None if it is a single token.

    The first token comes from the prompt's pass.
    """
    after_first = len(answer["tokens"]) - 1
    rate: float = after_first / answer["timings"]["predicted_ms"] * 1000
    return rate if after_first else None


def stopped_by(answer: Mapping[str, Any]) -> Stop:
    """Return why an answer has no further token: the target ended its text, or it was enough."""
    return Stop.EOS if answer.get("stop_type") == "eos" else Stop.LENGTH
