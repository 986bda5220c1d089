"""The files of named entries that the claims and the ways of drafting are, and the bibliography."""

import re
from pathlib import Path
from typing import TypeVar

import yaml
from pydantic import BaseModel, TypeAdapter, ValidationError

from specmoe.config.base import Name, describe_fault
from specmoe.errors import ConfigError, one_line

T = TypeVar("T", bound=BaseModel)
_ENTRY = re.compile(r"^@\w+\{([^,\s]+),\n(.*?)^\}", re.MULTILINE | re.DOTALL)
_FIELD = re.compile(r"^\s*(\w+)\s*=\s*(?:\{(.*)\}|(\w+)),?$", re.MULTILINE)


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


def read_references(path: Path) -> dict[str, str]:
    """Return the works of a BibTeX file by key, as a text names them: `Cai et al. 2024`.

    Entries have one field a line, as in `paper/references.bib`. Raises ConfigError for an entry
    without author or year.
    """
    works = {}
    for key, body in _ENTRY.findall(path.read_text(encoding="utf-8")):
        fields = {name: braced or bare for name, braced, bare in _FIELD.findall(body)}
        for needed in ("author", "year"):
            if needed not in fields:
                raise ConfigError(f"{path}: {key} has no {needed}")
        first, *others = map(_surname, fields["author"].split(" and "))
        names = f"{first} et al." if len(others) > 1 else " and ".join([first, *others])
        works[key] = f"{names} {fields['year']}"
    return works


def _surname(author: str) -> str:
    """Return an author's surname, or the whole name of an organisation, which stands in braces."""
    name = author if author.startswith("{") else author.split(",")[0]
    return re.sub(r"[{}]", "", name).strip()
