"""What llama-server answers, checked where it comes in: a broken answer is no measurement."""

import json
import math
from typing import Annotated, Any

from prometheus_client.parser import text_string_to_metric_families
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from specmoe.config.parse import first_fault

Count = Annotated[int, Field(ge=0)]
Milliseconds = Annotated[float, Field(ge=0, allow_inf_nan=False)]
# A server's own times are rounded to microseconds.
_ROUNDING_MS = 0.01


class _Answer(BaseModel):
    """What we read of an answer; it may have more."""

    model_config = ConfigDict(strict=True, extra="ignore")


class Tokenized(_Answer):
    """The answer of `/tokenize`."""

    tokens: list[Count]


class Detokenized(_Answer):
    """The answer of `/detokenize`."""

    content: str


class Timings(_Answer):
    """How long the server says that a request took."""

    prompt_n: Count
    prompt_ms: Milliseconds
    predicted_ms: Annotated[Milliseconds, Field(gt=0)]


class StreamedTimings(_Answer):
    """How long the server says that a request took until the tokens of an event were there."""

    prompt_ms: Milliseconds
    predicted_ms: Milliseconds


class Completion(_Answer):
    """The answer of `/completion`."""

    tokens: list[Count]
    timings: Timings
    stop_type: str = ""


class Event(_Answer):
    """One event of a streamed answer of `/completion`; with `stop` the last, without tokens."""

    tokens: list[Count]
    tokens_predicted: Count
    stop: bool
    timings: StreamedTimings


class Templated(_Answer):
    """The answer of `/apply-template`."""

    prompt: str


class Slot(_Answer):
    """One of the answer of `/slots`."""

    n_ctx: Count
    speculative: bool


class Properties(_Answer):
    """The answer of `/props`."""

    build_info: str = "unknown"


TOKENIZED = TypeAdapter(Tokenized)
DETOKENIZED = TypeAdapter(Detokenized)
COMPLETION = TypeAdapter(Completion)
EVENT = TypeAdapter(Event)
TEMPLATED = TypeAdapter(Templated)
SLOTS = TypeAdapter(Annotated[list[Slot], Field(min_length=1)])
PROPERTIES = TypeAdapter(Properties)


def read_answer(body: bytes, kind: TypeAdapter[Any]) -> Any:
    """Return what JSON holds, if it is of a kind; raises ValueError in words if it is not."""
    try:
        answer = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"what is no JSON ({str(body[:40])[2:-1]}...)") from error
    return check(answer, kind)


def check(answer: Any, kind: TypeAdapter[Any]) -> Any:
    """Return an answer that is of a kind; raises ValueError in words if it is not."""
    try:
        kind.validate_python(answer)
    except ValidationError as error:
        raise ValueError(first_fault(error)) from error
    return answer


def refuse_impossible_times(answer: dict[str, Any], wall_ms: float) -> None:
    """Raise ValueError if a request took the server longer than it took us to be answered."""
    times = answer["timings"]
    told = times["prompt_ms"] + times["predicted_ms"]
    if told > wall_ms + _ROUNDING_MS:
        raise ValueError(
            f"prompt_ms + predicted_ms are {told:.1f}, and the whole request took {wall_ms:.1f} ms"
        )


def read_counters(text: str) -> dict[str, float]:
    """Return the counters of `/metrics` by name, without the `llamacpp:` prefix.

    Counters per draft position are named `..._per_pos_total/0`, `/1` and so on. Raises ValueError
    if they are not counters.
    """
    families = list(text_string_to_metric_families(text))
    counters = {
        "/".join([sample.name.removeprefix("llamacpp:"), *sample.labels.values()]): sample.value
        for family in families
        for sample in family.samples
    }
    for name, value in counters.items():
        if not math.isfinite(value):
            raise ValueError(f"{name} is {value}")
    return counters
