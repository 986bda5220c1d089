"""Packed campaigns of the version before, brought to today's names."""

import json
import re
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from specmoe.files import json_of, replace_text
from specmoe.runs.manifest import SCHEMA, write_manifest
from specmoe.runs.schema import read_table, write_runs

# By the path in the configuration; None for a key that is gone.
KEYS: dict[str, str | None] = {
    "host": "machine",
    "campaign.hosts": "campaign.machines",
    "campaign.left_out": "campaign.exclude",
    "measurement.passes": "measurement.prompt_iterations",
    "measurement.sides": "measurement.schedule",
    "published": None,
    "room": "check_capacity",
    "statistics.precision": "statistics.target_half_width",
    "statistics.repeats_limit": None,
    "audit.draft_stand_ins": "audit.draft_proxies",
    "audit.time_tolerance": None,
    "audit.bandwidth_tolerance": None,
    "audit.cache_bytes": None,
    "audit.tie_factor": None,
    "audit.tie_cap_nats": None,
    "audit.self_acceptance": None,
    "audit.unrelated_acceptance": None,
    "audit.commonest_token": None,
    "audit.looping_excess": None,
    "audit.looping_share": None,
}
COLUMNS = {
    "width": "n_tokens",
    "gap_nats_by_width": "gap_nats_by_batch",
    "pass": "iteration",
    "imposed_acceptance": "forced_acceptance",
    "arrangement": "schedule",
    "measured_again": "reruns",
    "taken_away": "disturbed_reason",
    "host": "machine",
    "tried_per_position": "drafted_per_position",
}
# By the new name of a key or column.
VALUES = {
    "protocol": {"published": "study"},
    "source": {"cached": "shipped", "published": "study_rows"},
    "schedule": {"together": "interleaved", "in_turn": "sequential", "in groups": "grouped"},
    "drafts": {"itself": "self"},
}


def upgrade(folder: Path) -> None:
    """Rewrite a packed campaign with today's keys and columns, and its manifest.

    Raises ConfigError or SchemaError if a file is not what the version before packed.
    """
    file = folder / "campaign.yaml"
    data = renamed_keys(json_of(file.read_text("utf-8").partition("\n")[2]))
    replace_text(file, f"{SCHEMA}\n{json.dumps(data, indent=1)}\n")
    rows = [_renamed(row) for row in read_table(folder / "runs.parquet").to_pylist()]
    write_runs(rows, folder / "runs.parquet")
    for name in ("pass_times.parquet", "agreement.parquet"):
        if (folder / name).exists():
            table = read_table(folder / name)
            names = [COLUMNS.get(one, one) for one in table.column_names]
            pq.write_table(table.rename_columns(names), folder / name)
    for judged in folder.glob("divergences/*.json"):
        replace_text(judged, json.dumps(_renamed(json_of(judged.read_bytes())), indent=1) + "\n")
    if (folder / "host.json").exists():
        (folder / "host.json").replace(folder / "machine.json")
    write_manifest(folder)


def renamed_keys(data: Any, place: tuple[str, ...] = ()) -> Any:
    """Return a part of a configuration, which stands at `place`, with today's keys and values."""
    if not isinstance(data, dict):
        return data
    new = {}
    for key, value in data.items():
        path = (*place, key)
        if (name := _new_key(path)) is None:
            continue
        value = renamed_keys(value, path)
        known = VALUES.get(name, {})
        if isinstance(value, str):
            value = known.get(value, value)
        elif isinstance(value, list):
            value = [known.get(one, one) if isinstance(one, str) else one for one in value]
        new[name] = value
    return new


def _new_key(path: tuple[str, ...]) -> str | None:
    """Return today's name of a key of the configuration; None if the key is gone."""
    for former, new in KEYS.items():
        parts = former.split(".")
        if len(parts) == len(path) and all(map(fnmatchcase, path, parts)):
            return new and new.rpartition(".")[2]
    return path[-1]


def _renamed(value: Any, name: str | None = None) -> Any:
    """Return a row, or a part of a record, with today's names and the ids that follow from them."""
    if isinstance(value, dict):
        keys = {key: str(COLUMNS.get(key, key)) for key in value}
        return {keys[key]: _renamed(one, keys[key]) for key, one in value.items()}
    if isinstance(value, list):
        return [_renamed(one) for one in value]
    if name in ("run", "baseline") and isinstance(value, str):
        return re.sub(r"/alone(?=[-/])", "/baseline", value)
    return VALUES.get(name or "", {}).get(value, value) if isinstance(value, str) else value
