"""Files of YAML, read before anything else: it imports no module that looks at the folder."""

import math
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import yaml

from specmoe.errors import ConfigError, one_line

# The same in C, where it was built, reads ten times as fast.
_Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def read_yaml(path: Path) -> Any:
    """Return what a file of YAML holds; raises ValueError or yaml.YAMLError for another file."""
    return yaml.load(path.read_text("utf-8-sig"), _Loader)  # noqa: S506 (a safe loader)


def read_mapping(path: Path) -> dict[str, Any]:
    """Return what a file of YAML holds; raises ConfigError."""
    try:
        content = read_yaml(path)
    except (OSError, ValueError, RecursionError, yaml.YAMLError) as error:
        said = one_line(error)
        if isinstance(error, yaml.MarkedYAMLError) and error.problem_mark:
            said = f"no YAML in line {error.problem_mark.line + 1}: {error.problem}; correct it"
        raise ConfigError(f"config: {path}: {said}") from error
    if not isinstance(content, dict):
        raise ConfigError(f"config: {path}: it has no keys at top level")
    return content


def check_files(words: Iterable[str]) -> None:
    """Read the files of YAML among words of snakemake's command line; raises ConfigError.

    Snakemake reads them before our Snakefile, and names neither file nor line of a wrong one.
    """
    for file in map(Path, words):
        if file.suffix in (".yaml", ".yml") and file.is_file():
            read_mapping(file)


def in_a_word(value: Any) -> str:
    """Return a value as `--config` reads it behind a key."""
    if not isinstance(value, dict | list):
        return str(value)
    how = {"default_flow_style": True, "width": math.inf, "sort_keys": False}
    return str(yaml.safe_dump(value, **how)).strip()
