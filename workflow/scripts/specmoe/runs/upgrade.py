"""Bring packed campaigns of the schema version before this one to today's keys and columns."""

import json
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from specmoe.config.block import PASSAGE_PREFIX
from specmoe.config.load import lines_of
from specmoe.config.schema import Config
from specmoe.errors import ConfigError
from specmoe.files import json_of, read_record, replace_text
from specmoe.measure.trace import VERSION
from specmoe.runs.manifest import write_manifest
from specmoe.runs.schema import SCHEMA_VERSION, read_table, version_of, write_runs

_BEFORE = "9"
# The keys whose lists became levels of a factor, and the column that had a run's value.
_FACTORS = {
    "imposed_acceptance": ("forced_acceptance", "imposed_acceptance"),
    "temperatures": ("temperature", "temperature"),
    "concurrency": ("requests", "concurrency"),
    "engine_args": ("engine_args", "engine_options"),
}


def upgrade_campaign(folder: Path, root: Path) -> None:
    """Rewrite a packed campaign, with its manifest; `root` is the workflow's folder."""
    config = _upgrade_configuration(folder / "campaign.yaml", root)
    table = read_table(folder / "runs.parquet")
    if (version := version_of(table)) == _BEFORE:
        rows = [_row(row, config) for row in table.to_pylist()]
        write_runs(rows, folder / "runs.parquet")
    elif version != SCHEMA_VERSION:
        raise ConfigError(f"{folder}: schema version {version}; use the release that wrote it")
    demonstration = folder / "trace.json"
    if demonstration.exists() and read_record(demonstration)["version"] != VERSION:
        demonstration.unlink()
        print(f"{demonstration}: deleted; `snakemake demo_trace` makes another")
    write_manifest(folder)


def _upgrade_configuration(path: Path, root: Path) -> Config:
    """Give a suite's one factor in the place of the keys that had its levels."""
    # A comment for editors, then JSON.
    comment, _, text = path.read_text(encoding="utf-8").partition("\n")
    data = json_of(text)
    for suite in data["suites"].values():
        _vary(suite)
    try:
        config = Config.model_validate(data, context={"root": root})
    except ValidationError as error:
        raise ConfigError(f"{path}: {next(lines_of(error))}") from error
    replace_text(path, f"{comment}\n{json.dumps(data, indent=1)}\n")
    return config


def _vary(suite: dict[str, Any]) -> None:
    levels = {name: suite.pop(key, []) for key, (name, _) in _FACTORS.items()}
    lengths = suite.pop("prompt_lengths", [])
    if lengths and not suite.get("prompts") and not any(levels.values()):
        levels = {"prompt_tokens": lengths}
    else:
        suite["prompts"] = [*suite.get("prompts", []), *lengths]
    if vary := {name: values for name, values in levels.items() if values}:
        suite["vary"] = vary


def _row(row: dict[str, Any], config: Config) -> dict[str, Any]:
    """Return a row with its model as the target, and with its level."""
    factor = next(iter(config.suites[row["suite"]].vary), "")
    columns = {name: column for name, column in _FACTORS.values()}
    level = row[columns[factor]] if factor in columns else None
    if factor == "prompt_tokens":
        level = row["prompt"].removeprefix(PASSAGE_PREFIX)
    elif level is not None:
        level = level or "none" if isinstance(level, str) else f"{level:g}"
    return row | {"target": row.pop("target_model"), "level": level}
