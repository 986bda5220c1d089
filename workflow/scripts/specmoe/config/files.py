"""The files of the configuration: catalogs, and what a user lays over them."""

from collections.abc import Mapping
from functools import reduce
from pathlib import Path
from typing import Any

import yaml

from specmoe.errors import ConfigError, one_line
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
