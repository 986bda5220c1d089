"""Drop what packed campaigns have of older versions: keys, runs, and records of demonstrations."""

import ast
import functools
import json
import operator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pydantic import ValidationError
from pydantic_core import ErrorDetails

from specmoe.config.base import UNKNOWN_KEY, describe_fault
from specmoe.config.load import keys_of
from specmoe.config.matrix import blocks_in_order
from specmoe.config.schema import Config
from specmoe.errors import ConfigError
from specmoe.files import json_of, read_record, replace_text
from specmoe.measure.trace import VERSION
from specmoe.runs.manifest import write_manifest
from specmoe.runs.schema import asked_of, upgraded


def upgrade_campaign(folder: Path, root: Path) -> None:
    """Rewrite a packed campaign, with its manifest; `root` is the workflow's folder."""
    _drop_runs(folder, _upgrade_configuration(folder / "campaign.yaml", root))
    demonstration = folder / "trace.json"
    if demonstration.exists() and read_record(demonstration)["version"] != VERSION:
        demonstration.unlink()
        print(f"{demonstration}: deleted; `snakemake demo_trace` makes another")
    write_manifest(folder)


def _upgrade_configuration(path: Path, root: Path) -> Config:
    """Delete the keys that the configuration no longer has, and print them."""
    # A comment for editors, then JSON.
    comment, _, text = path.read_text(encoding="utf-8").partition("\n")
    data = json_of(text)
    for suite in data["suites"].values():
        suite["methods"] = [*filter(None, map(_single_method, suite.get("methods", [])))]
    while (fault := _first_fault(data, root)) is not None:
        *keys, unknown = _unknown_key(fault) or [""]
        section = functools.reduce(operator.getitem, keys, data)
        if unknown not in section:
            place = [str(key) for key in keys_of(fault["loc"])]
            raise ConfigError(f"{path}: {describe_fault(fault, place)}")
        del section[unknown]
        print(f"{path}: without {'.'.join(map(str, [*keys, unknown]))}")
    replace_text(path, f"{comment}\n{json.dumps(data, indent=1)}\n")
    return Config.model_validate(data, context={"root": root})


def _single_method(way: Any) -> Any:
    """Return a way of drafting whose method was a list of one; None for a chain of methods."""
    if isinstance(way["method"], str):
        return way
    return way | {"method": way["method"][0]} if len(way["method"]) == 1 else None


def _drop_runs(folder: Path, config: Config) -> None:
    """Drop the runs that the configuration does not ask for any more, and what is said of them.

    The others have the columns of today's schema.
    """
    asked = {run for block in blocks_in_order(config, gpu=False) for run in block.asked}
    rows = upgraded(folder / "runs.parquet")
    kept = rows.filter(pa.array([run in asked for run in asked_of(rows.to_pandas())]))
    pq.write_table(kept, folder / "runs.parquet")
    if len(kept) == len(rows):
        return
    runs = {*kept["run"].to_pylist()}
    print(f"{folder}: without {len(rows) - len(kept)} of {len(rows)} runs")
    for file in sorted((folder / "divergences").glob("*.json")):
        judged = read_record(file)
        judged["divergences"] = [one for one in judged["divergences"] if one["run"] in runs]
        replace_text(file, json.dumps(judged, indent=1) + "\n")


def _first_fault(data: Any, root: Path) -> ErrorDetails | None:
    """Return what the configuration refuses: an unknown key before all else."""
    try:
        Config.model_validate(data, context={"root": root})
    except ValidationError as error:
        faults = error.errors(include_url=False)
        return next(filter(_unknown_key, faults), faults[0])
    return None


def _unknown_key(fault: ErrorDetails) -> list[Any]:
    """Return the place of an unknown key, empty for any other fault."""
    if fault["type"] == UNKNOWN_KEY:
        return [*keys_of(fault["loc"]), ast.literal_eval(fault["ctx"]["shown"])]
    # A dataclass's.
    return keys_of(fault["loc"]) if fault["type"] == "unexpected_keyword_argument" else []
