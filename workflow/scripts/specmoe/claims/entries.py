"""The file of named entries that the claims are."""

from pathlib import Path
from typing import TypeVar

import yaml
from pydantic import BaseModel, TypeAdapter, ValidationError

from specmoe.config.base import Name, describe_fault
from specmoe.errors import ConfigError, one_line

T = TypeVar("T", bound=BaseModel)


def read_entries(path: Path, kind: type[T]) -> dict[str, T]:
    """Return the entries of a YAML file by name; raises ConfigError for the first fault."""
    try:
        data = yaml.safe_load(path.read_text(encoding="utf-8"))
        return TypeAdapter(dict[Name, kind]).validate_python(data)  # type: ignore[valid-type]
    except yaml.YAMLError as error:
        raise ConfigError(f"{path}: {one_line(error)}") from error
    except ValidationError as error:
        raise ConfigError(f"{path}: {fault_of(error)}") from error


def fault_of(error: ValidationError, *place: str) -> str:
    """Return one line for the first fault in the entry at `place`."""
    fault = error.errors(include_url=False)[0]
    return describe_fault(fault, [*place, *map(str, fault["loc"])])
