"""What keeps snakemake from reading a configuration file, in one line.

Snakemake's own words name neither the file nor the place in it.
"""

import json
from collections.abc import Iterator
from pathlib import Path

import yaml

from specmoe.errors import nearest, one_line

SUFFIXES = (".yaml", ".yml", ".json")


def fault_of(file: Path) -> str:
    """Return why a configuration file cannot be read; empty if it can."""
    if file.is_dir():
        return f"{file} is a folder, not a configuration file"
    if not file.exists():
        beside = file.parent.glob("*") if file.parent.is_dir() else Path("config").glob("*")
        known = [str(one) for one in beside if one.suffix in SUFFIXES]
        return f"no file {file}; {nearest(str(file), known)}"
    try:
        text = file.read_text(encoding="utf-8")
    except OSError as error:
        return f"{file} cannot be read ({error.strerror})"
    except UnicodeDecodeError as error:
        return f"{file} is no text in UTF-8 (byte {error.start})"
    return _fault_of_text(text, file)


def _fault_of_text(text: str, file: Path) -> str:
    try:
        json.loads(text)  # with tabs, JSON is no YAML
    except ValueError:
        try:
            node = yaml.compose(text, Loader=yaml.SafeLoader)
        except yaml.MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            line = f", line {mark.line + 1}, column {mark.column + 1}" if mark else ""
            return f"{file}{line}: not valid YAML: {one_line(error.problem or error.context)}"
        except yaml.YAMLError as error:
            return f"{file}: not valid YAML: {one_line(error)}"
        if not isinstance(node, yaml.MappingNode):
            return f"{file} has no keys at its top level"
    return ""


def key_twice(file: Path) -> str:
    """Return where a configuration file has a key twice; empty if nowhere. YAML takes the last."""
    text = file.read_text(encoding="utf-8").replace("\t", " ")  # with tabs, JSON is no YAML
    for key in _second_keys(yaml.compose(text, Loader=yaml.CSafeLoader)):
        return f"{file}, line {key.start_mark.line + 1}: the key {key.value!r} is here twice"
    return ""


def _second_keys(node: yaml.Node | None) -> Iterator[yaml.Node]:
    if isinstance(node, yaml.MappingNode):
        found = set()
        for key, value in node.value:
            if isinstance(key, yaml.ScalarNode):
                if key.value in found:
                    yield key
                found.add(key.value)
            yield from _second_keys(value)
    elif isinstance(node, yaml.SequenceNode):
        for value in node.value:
            yield from _second_keys(value)
