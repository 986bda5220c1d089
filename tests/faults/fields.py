"""Every field of what JSON holds, and what can be done to each: dropped, nulled, changed, doubled.

A field is named by its keys, `runs[].answer.timings.prompt_ms`; of a list's members the last one
of those with the most fields stands for all.
"""

from collections.abc import Callable, Iterator
from copy import deepcopy
from datetime import datetime
from typing import Any

Path = tuple[str | int, ...]


def fields_of(value: Any, path: Path = ()) -> Iterator[Path]:
    """Yield the paths of a value's fields, those of whole lists and mappings too."""
    if path:
        yield path
    if isinstance(value, dict):
        for key in value:
            yield from fields_of(value[key], (*path, key))
    elif isinstance(value, list) and value:
        whole = max(range(len(value)), key=lambda at: (len([*fields_of(value[at])]), at))
        yield from fields_of(value[whole], (*path, whole))


def name_of(path: Path) -> str:
    """Return a path in words."""
    return "".join("[]" if isinstance(key, int) else f".{key}" for key in path).removeprefix(".")


_OF_NULL = (1, 0.5, "x", True, [1], ["x"])
_OTHERS: dict[type, Callable[[Any], list[Any]]] = {
    type(None): lambda _: list(_OF_NULL),
    bool: lambda value: [not value],
    int: lambda value: [value + 1, -value - 1, 2**62],
    float: lambda value: [value * 1.5 + 0.25],
    datetime: lambda value: [value.replace(year=9999), value.replace(year=1970)],
    str: lambda value: [f"{value}x", "", f"9999{value[4:]}", value.partition("+")[0]],
    dict: lambda value: [{**value, "more": 1}, {}],
    list: lambda value: [value[::-1], [*value, 1], [*value, "x"], []],
}


def others_of(value: Any) -> list[Any]:
    """Return other values in place of one, of its type; of null, of any type."""
    return [other for other in _OTHERS[type(value)](value) if other != value]


def deeds(value: Any, path: Path) -> Iterator[Any]:
    """Yield copies of a value with the field of a path dropped, nulled, changed and doubled."""

    def inside(other: Any) -> Any:
        for key in path[:-1]:
            other = other[key]
        return other

    dropped = deepcopy(value)
    del inside(dropped)[path[-1]]
    yield dropped
    for member in [None, *others_of(inside(value)[path[-1]])]:
        changed = deepcopy(value)
        inside(changed)[path[-1]] = member
        yield changed
    if isinstance(inside(value), list):
        doubled = deepcopy(value)
        inside(doubled).append(deepcopy(inside(doubled)[path[-1]]))
        yield doubled


def unlike_fields(sound: Any, other: Any, path: Path = ()) -> Iterator[str]:
    """Yield the names of the fields in which two values differ, as deep as they can be told."""
    if isinstance(sound, dict) and isinstance(other, dict):
        for key in sound.keys() | other.keys():
            if key not in sound or key not in other:
                yield name_of((*path, key))
            else:
                yield from unlike_fields(sound[key], other[key], (*path, key))
    elif isinstance(sound, list) and isinstance(other, list) and len(sound) == len(other):
        for at, (one, its) in enumerate(zip(sound, other, strict=True)):
            yield from unlike_fields(one, its, (*path, at))
    elif type(sound) is not type(other) or sound != other:
        yield name_of(path)
