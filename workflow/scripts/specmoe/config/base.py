"""The types that all sections of the configuration share, and data that a job receives."""

import os.path
import reprlib
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Annotated, Any, ClassVar, TypeVar

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ByteSize,
    ConfigDict,
    Field,
    PlainSerializer,
    StringConstraints,
    ValidationError,
    ValidationInfo,
    WithJsonSchema,
    model_validator,
)
from pydantic_core import ErrorDetails, PydanticCustomError

from specmoe.errors import nearest, one_line
from specmoe.files import at_home
from specmoe.yaml_files import read_yaml


@cache
def resource(name: str) -> dict[str, Any]:
    """Return the data of `resources/<name>.yaml`."""
    return dict(read_yaml(Path(__file__).parents[4] / f"resources/{name}.yaml"))


# Names become file names and command-line words: they hold nothing that a shell, a path or LaTeX
# reads as its own.
NAME = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$"
Name = Annotated[str, StringConstraints(pattern=NAME)]
Digest = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
REPOSITORY = r"^[^/\s]+/[^/\s]+$"
LONGEST_DRAFT = 1024
"""The largest γ. Each position has a count in every row, so a wild one would fill the memory."""
DraftLength = Annotated[int, Field(gt=0, le=LONGEST_DRAFT)]
# More repeats or passes are a slip of the hand: their jobs alone would take days to list.
Times = Annotated[int, Field(gt=0, le=1000)]
Share = Annotated[float, Field(ge=0, lt=1)]
# Of memory, with its unit; a number alone is of GiB.
Size = Annotated[
    ByteSize,
    BeforeValidator(lambda given: f"{given}GiB" if str(given)[-1:].isdigit() else given),
    PlainSerializer(lambda size: f"{size}B", when_used="json"),
    WithJsonSchema({"anyOf": [{"type": "string"}, {"type": "number", "exclusiveMinimum": 0}]}),
]
_PATH = r"^[^\x00]*$"  # what the system can be asked for
# A file or folder of the user: `~` is the home folder, in what is recorded too, and relative paths
# start where snakemake is called.
UserPath = Annotated[
    str,
    StringConstraints(min_length=1, pattern=_PATH),
    AfterValidator(os.path.expanduser),
    PlainSerializer(at_home, when_used="json"),
]


def _check_braces(path: str) -> str:
    # A job whose input cannot be named is left out in silence where its output is there.
    if {"{", "}"} & set(path):
        raise ValueError(f"{path!r} has braces, by which snakemake names wildcards; rename it")
    return path


# One that is an input of a rule.
InputPath = Annotated[UserPath, AfterValidator(_check_braces)]


def _check_there(path: str, info: ValidationInfo) -> str:
    # Jobs, which have no root, are given what was checked.
    if info.context and not (info.context["root"] / path).is_file():
        raise ValueError(f"no file {path!r} in the workflow's folder")
    return path


TextPath = Annotated[InputPath, AfterValidator(_check_there)]


def _check_distinct(values: list[Any]) -> list[Any]:
    if len(set(values)) < len(values):
        raise ValueError("a value is named twice")
    return values


_T = TypeVar("_T")
Distinct = Annotated[list[_T], AfterValidator(_check_distinct)]
"""A list whose values differ."""

# What pydantic says in words of Python, or by a pattern.
_WORDS = {
    **dict.fromkeys(
        ["model_type", "dataclass_type", "dict_type", "model_attributes_type"],
        "give keys and values, as in {{key: value}}",
    ),
    "missing": "this key is missing; give it",
    "list_type": "give a list, as in [{input}]",
    "string_type": "give a text, in quotes if YAML reads it otherwise, as it does on and off",
    "union_tag_not_found": "the key {discriminator} is missing",
    "union_tag_invalid": "unknown {discriminator} {tag!r}; known: {expected_tags}",
    _PATH: "give a path without the character of code 0",
    NAME: "give a letter or digit, and then letters, digits, '.', '_' and '-', 100 in all",
    r"^[A-Z0-9_]+$": "give a type as llama-quantize names it, as Q4_K_M",
    REPOSITORY: "give an owner and a name, as in owner/name",
    r"\.gguf$": "give a file whose name ends in .gguf",
}

# The errors whose message, or lack of a value, makes what was given needless to repeat.
_SAY_IT = ("value_error", "missing", "union_tag_invalid", "unknown_key")


class Strict(BaseModel):
    """A section of the configuration; it refuses unknown keys and names the nearest known one."""

    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        allow_inf_nan=False,
        use_attribute_docstrings=True,  # for the reference
        serialize_by_alias=True,  # jobs read what is written
    )

    further_keys: ClassVar[Iterable[str]] = ()  # that may stand beside its own

    @model_validator(mode="before")
    @classmethod
    def _refuse_unknown_keys(cls, data: Any) -> Any:
        if isinstance(data, Mapping):
            known = [field.alias or name for name, field in cls.model_fields.items()]
            for key in data:
                if key not in known:
                    hint = nearest(str(key), [*known, *cls.further_keys])
                    former = resource("former_names")["keys"]
                    if key in former:
                        new = former[key]
                        hint = f"it is `{new}` now" if new else "it is gone, leave it out"
                    said = {"shown": repr(key), "hint": hint}
                    raise PydanticCustomError("unknown_key", "unknown key {shown}; {hint}", said)
        return data


def describe_error(reason: ErrorDetails, keys: Sequence[str]) -> str:
    """Return one line on an error that pydantic found at the place `keys`."""
    # A key may be any text, and the line stays one.
    place = one_line(".".join(keys)) or "top level"
    facts = {"input": reprlib.repr(reason["input"])} | reason.get("ctx", {})
    words = _WORDS.get(facts.get("pattern", reason["type"]), "").format_map(facts)
    message = words or one_line(reason["msg"].removeprefix("Value error, "))
    shown = f" (got {reprlib.repr(reason['input'])})" if reason["type"] not in _SAY_IT else ""
    return f"{place}: {message}{shown}"


def first_error(error: ValueError) -> str:
    """Return one line for the first error that pydantic found, or for another error."""
    if not isinstance(error, ValidationError):
        return str(error)
    reason = error.errors(include_url=False)[0]
    return describe_error(reason, [str(key) for key in reason["loc"]])
