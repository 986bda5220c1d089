"""Loading the configuration: every fault is a readable line, with its place and the remedy.

The Snakefile loads it before it defines any rule, so a wrong name never reaches the DAG. Checks
come in groups: where one finds faults, the later ones would stumble over them.
"""

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import reduce
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError

from specmoe.config import checks
from specmoe.config.base import describe_fault
from specmoe.config.checks import stop_at
from specmoe.config.expand import FilesSay, expand, nothing_said
from specmoe.config.matrix import (
    choose_demonstration,
)
from specmoe.config.schema import Config
from specmoe.config.synthetic_recipe import Recipe
from specmoe.errors import ConfigError, listed, nearest, one_line
from specmoe.files import json_of

CATALOGS = ("engines", "models", "prompts", "suites", "config")


class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    """A reader of YAML that refuses a key given twice: others take the last value in silence."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        lines: dict[str, int] = {}
        for key, _ in node.value:
            line = key.start_mark.line + 1
            if first := lines.get(str(key.value)):
                raise ValueError(f"the key {key.value!r} is in line {first} and again in {line}")
            lines[str(key.value)] = line
        found: dict[Any, Any] = super().construct_mapping(node, deep)
        return found


def read_mapping(path: Path) -> dict[str, Any]:
    """Return what a file of YAML or JSON holds; raises ConfigError, also if a key comes twice."""
    try:
        text = path.read_text(encoding="utf-8-sig")
        # Safe: it is a safe loader's child.
        found = json_of(text) if path.suffix == ".json" else yaml.load(text, _Loader)  # noqa: S506
    except OSError as error:
        raise ConfigError(f"config: {path} cannot be read ({error.strerror})") from error
    except (ValueError, RecursionError, yaml.YAMLError) as error:
        raise ConfigError(f"config: {path}: {one_line(error)}") from error
    if not isinstance(found, dict):
        raise ConfigError(f"config: {path}: it has no keys at top level")
    return found


def overlaid(root: Path, given: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the catalogs of the workflow, whose folder is `root`, with an overlay upon them."""
    catalogs = [read_mapping(root / f"config/{catalog}.yaml") for catalog in CATALOGS]
    return reduce(_laid_over, [*catalogs, given])


def _laid_over(below: Mapping[str, Any], above: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a mapping with another one upon it, key by key, as snakemake merges them.

    Only where both have a section: aliases in each other would make a mapping without an end.
    """
    merged = dict(below)
    for key, value in above.items():
        own = below.get(key)
        sections = isinstance(own, Mapping) and isinstance(value, Mapping)
        merged[key] = _laid_over(own or {}, value) if sections else value
    return merged


# Where pydantic adds the branch of a tagged union to the place of a fault.
_TAG_DEPTH = {"engines": 2, "model_sets": 3, "workloads": 2}
# What it adds where a value may be of several types.
_UNION_BRANCHES = ("list[", "literal[")


def load(
    data: Mapping[str, Any],
    root: Path,
    files_say: Callable[[Config], FilesSay] = lambda _: nothing_said,
) -> Config:
    """Return the checked configuration, with every suite's methods by name.

    `data` is the merged mapping that Snakemake read; prompt files and shipped models are relative
    to `root`, the workflow's folder; `files_say` returns what model files say of drafting. Raises
    ConfigError with a line for each fault: its place and the remedy.
    """
    try:
        config = Config.model_validate(data, context={"root": root})
    except ValidationError as error:
        raise ConfigError(listed([*_lines_of_schema(error)])) from error
    stop_at(checks.names(config))
    stop_at(checks.members(config), checks.files(config, root))
    config = expand(config, root, files_say(config))
    stop_at(checks.length(config))
    stop_at(*(checks.suite(config, name) for name in config.selected_suites))
    stop_at(checks.repeats_and_left_out(config))
    if config.trace.model_fields_set:
        choose_demonstration(config, gpu=False)
    return config


def _lines_of_schema(error: ValidationError) -> Iterator[str]:
    """Yield a line for each value that the schema refuses.

    A value of several types has a fault for each of them: the one that got deepest says most.
    """
    faults = [(tuple(keys_of(fault["loc"])), fault) for fault in error.errors(include_url=False)]
    told = {place[:depth] for place, _ in faults for depth in range(len(place))}
    for place, fault in faults:
        if place in told:
            continue
        told.add(place)
        keys = [str(key) for key in place]
        if fault["type"] == "unexpected_keyword_argument":
            key = keys.pop()
            known = [field.name for field in dataclasses.fields(Recipe)]
            yield f"config: {'.'.join(keys)}: unknown key {key!r}; {nearest(key, known)}"
        else:
            yield f"config: {describe_fault(fault, keys)}"


def keys_of(place: Sequence[int | str]) -> list[int | str]:
    """Return the keys on the way to the place of a fault, without the branches of unions."""
    tag = _TAG_DEPTH.get(str(place[0])) if place else None
    return [
        part
        for depth, part in enumerate(place)
        if depth != tag and not str(part).startswith(_UNION_BRANCHES)
    ]
