"""In what a measurement differs from what is asked for now: the one comparison of the two.

A record and a packed row say what identifies them. That is compared here, and
nothing else is believed of them: neither their place nor what snakemake remembers.
"""

import json
from collections.abc import Mapping, Sequence, Set
from typing import Any, NamedTuple

from pydantic import TypeAdapter

from specmoe.config.block import Block

NAMED = 5

_BLOCK = TypeAdapter(Block)


class Difference(NamedTuple):
    """A fact with another value than the one that is asked for."""

    name: str
    found: object
    asked: object

    def __str__(self) -> str:
        """Return it in words."""
        allowed = sorted(self.asked) if isinstance(self.asked, Set) else [self.asked]
        asked = " or ".join(map(_shown, allowed[:NAMED])) or "described"
        return f"{self.name} is {_shown(self.found)}, not {asked}"


def differences(found: Mapping[str, object], asked: Mapping[str, object]) -> list[Difference]:
    """Return the facts that are asked for and are not there, or have another value.

    A set that is asked for holds the values that are allowed.
    """
    unlike = []
    for name, wanted in asked.items():
        value = found.get(name)
        if isinstance(value, str | int) and value == wanted:
            continue  # most of them
        value = plain(value)
        if value not in wanted if isinstance(wanted, Set) else value != plain(wanted):
            unlike.append(Difference(name, value, wanted))
    return unlike


def block_changes(recorded: Mapping[str, Any], block: Block) -> list[str]:
    """Return how a block as its record has it differs from the one that is asked for, in words.

    A release that did not know a key measured as its default says, and by its own gate. Raises
    ValueError for what is no block.
    """
    before = _BLOCK.validate_python({"gate": block.gate, **recorded})
    parts = []
    for name, old, new in differences(*(json.loads(one.to_json()) for one in (before, block))):
        if name == "prompts":
            prompts = ({one.prompt: one for one in its.prompts} for its in (before, block))
            parts += _change_of("prompt", *prompts)
        elif name == "sides":
            sides = ({one.name: one for one in its.sides} for its in (before, block))
            parts += _change_of("side", *sides)
        else:
            parts.append(f"{name}: {old} before, {new} now")
    return parts


def plain(value: Any) -> Any:
    """Return a value as JSON has it: null for NaN and NA, a list for a tuple or an array."""
    if hasattr(value, "tolist"):  # numpy's, without importing it
        value = value.tolist()
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [plain(one) for one in value]
    # NaN differs from itself, and pandas' NA compares as neither.
    return value if isinstance(value, Mapping) or (value == value) is True else None


def _shown(value: object) -> str:
    """Return a value as text; of a digest the first digits, which tell files apart."""
    text = str(value)
    return text[:12] if len(text) == 64 and text.isalnum() else text


def _change_of(what: str, old: Mapping[str, object], new: Mapping[str, object]) -> list[str]:
    """Return a change for each name, but of many names only the first ones and a count."""
    changes = {
        "added": [name for name in new if name not in old],
        "left out": [name for name in old if name not in new],
        "changed": [name for name in new if name in old and old[name] != new[name]],
    }
    listed = []
    for change, names in changes.items():
        listed += [f"{what} {change}: {name}" for name in names[:NAMED]]
        listed += [f"and {len(names) - NAMED} more"] if len(names) > NAMED else []
    return listed or [f"{what}s in another order"]
