"""Data that a job receives, read as the type it was written from."""

import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError

from specmoe.errors import ConfigError

T = TypeVar("T")


class JobData:
    """A dataclass that a job receives, or finds in its campaign's file."""

    def to_json(self) -> str:
        """Return it as JSON on one line."""
        return json.dumps(asdict(self))  # type: ignore[call-overload]


def parse(kind: type[T], data: str | Mapping[str, Any]) -> T:
    """Return a value of a type from JSON, or from what JSON holds; raises ConfigError."""
    adapter = TypeAdapter(kind)
    try:
        if isinstance(data, str):
            return adapter.validate_json(data)
        return adapter.validate_python(data)
    except ValidationError as error:
        raise ConfigError(f"{kind.__name__}: {first_fault(error)}") from error


def first_fault(error: ValueError) -> str:
    """Return one line for the first fault that pydantic found, or for another error."""
    if not isinstance(error, ValidationError):
        return str(error)
    fault = error.errors(include_url=False)[0]
    place = ".".join(str(key) for key in fault["loc"]) or "top level"
    return f"{place}: {fault['msg'].removeprefix('Value error, ')}"
