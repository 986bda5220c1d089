"""Shipped campaigns of the version before, brought to today's names."""

import json
import re
from collections.abc import Callable, Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, get_args

import pyarrow.parquet as pq

from specmoe.config.models import StudyModel
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
    "families": None,
    "engines.*.fallbacks": None,
    "prompts.texts.*.label": None,
    "model_sets.*.*.size_gb": None,
    "model_sets.*.*.tokenizer": "model_sets.*.*.source",
    "model_sets.*.*.recipe.core_first": None,
    "model_sets.*.*.recipe.core_layers": None,
    "model_sets.*.*.recipe.end_gain": None,
    "model_sets.*.*.recipe.chat_template": None,
    "model_sets.*.*.imatrix": None,
    "model_sets.*.*.block_size": None,
    "model_sets.*.*.seed": None,
    "model_sets.*.*.recipe.context_length": None,
    "model_sets.*.*.recipe.routed_epsilon": None,
    "measurement.gate": None,
    "measurement.order_seed": None,
    "measurement.warmup_tokens": None,
    "measurement.start_limit_s": "measurement.time_limit_s",
    "measurement.run_limit_s": None,
    "workloads.*.seed": None,
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
Place = tuple[str, ...]


def upgrade(folder: Path) -> None:
    """Rewrite a shipped campaign with today's keys and columns, and its manifest.

    Raises ConfigError or SchemaError if a file is not what the version before packed.
    """
    file = folder / "campaign.yaml"
    data = renamed(json_of(file.read_text("utf-8").partition("\n")[2]), _new_key)
    about = data["campaign"]
    if isinstance(about.get("compare_with_study"), bool):  # of models with the study's names
        own = get_args(StudyModel) if about["compare_with_study"] else ()
        known = data["model_sets"][about["models"]]
        about["compare_with_study"] = {name: name for name in own if name in known}
    replace_text(file, f"{SCHEMA}\n{json.dumps(data, indent=1)}\n")
    rows = [renamed(row, _new_column) for row in read_table(folder / "runs.parquet").to_pylist()]
    write_runs(rows, folder / "runs.parquet")
    for name in ("pass_times.parquet", "agreement.parquet"):
        if (folder / name).exists():
            table = read_table(folder / name)
            names = [_new_column((one,)) for one in table.column_names]
            pq.write_table(table.rename_columns(names), folder / name)
    for file in folder.glob("divergences/*.json"):
        judged = renamed(json_of(file.read_bytes()), _new_column)
        replace_text(file, json.dumps(judged, indent=1) + "\n")
    if (folder / "host.json").exists():
        (folder / "host.json").replace(folder / "machine.json")
    write_manifest(folder)


def _new_key(path: Place) -> str | None:
    """Return today's name of a key of the configuration; None if the key is gone."""
    for former, new in KEYS.items():
        parts = former.split(".")
        if len(parts) == len(path) and all(map(fnmatchcase, path, parts)):
            return new and new.rpartition(".")[2]
    return path[-1]


def _merged(section: Mapping[str, Any]) -> dict[str, Any]:
    """Return the keys of a section in which several former ones are merged."""
    new: dict[str, Any] = {}
    if "core_layers" in section:  # a recipe
        new["core"] = section["core_first"] if section["core_layers"] == 1 else None
        new["chat"] = section.get("chat_template", False)
    if section.get("size_gb"):
        new["size_bytes"] = section.get("size_bytes") or round(section["size_gb"] * 1e9)
    return new


def _new_column(path: Place) -> str:
    return COLUMNS.get(path[-1], path[-1])


def renamed(
    value: Any, new_key: Callable[[Place], str | None], path: Place = (), name: str = ""
) -> Any:
    """Return a part of a configuration or record with today's names, values and ids.

    `new_key` returns the name of the key at a path; `name` is the one of the value itself.
    """
    if isinstance(value, dict):
        value = value | _merged(value)
        parts = [(new_key((*path, key)), (*path, key), part) for key, part in value.items()]
        return {new: renamed(part, new_key, at, new) for new, at, part in parts if new is not None}
    if isinstance(value, list):
        return [renamed(part, new_key, path, name) for part in value]
    if name in ("run", "baseline") and isinstance(value, str):
        return re.sub(r"/alone(?=[-/])", "/baseline", value)
    return VALUES.get(name, {}).get(value, value) if isinstance(value, str) else value
