"""Shipped campaigns: packing, digests, which one may sign, and the names of the version before."""

import json
import re
import shutil
from collections.abc import Callable, Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, get_args

import pyarrow.parquet as pq
from pydantic import TypeAdapter

from specmoe.config.models import StudyModel
from specmoe.errors import DamagedFileError
from specmoe.files import json_of, read_record, replace_text, sha256_of
from specmoe.plan.campaign import LoadedCampaign
from specmoe.runs.schema import read_table, write_runs

NAME = "manifest.json"
CONTENTS = {
    "agreement.parquet": "draft models' scores of their targets' texts",
    **{f"contenders_r{n}.json": "settings that were beaten before a repeat" for n in (0, 1)},
    "campaign.yaml": "the campaign's configuration, which renders it",
    "divergences": "runs that differ from the baselines of a target, judged",
    "engines.json": "the builds of llama.cpp",
    "machine.json": "the machine",
    NAME: "digests of all other files",
    "models.json": "the models that were measured",
    "pass_times.parquet": "passes timed by themselves",
    "runs.parquet": "one row per run",
    "trace.json": "one prompt decoded round by round",
}
"""The files and folders of a shipped campaign."""
# Editors check the file by it, here and in resources/campaigns/<campaign>/.
SCHEMA = "# yaml-language-server: $schema=../../../config/schema.json"
_AGAIN = "get the shipped campaign again, or pack it again"
# SHA-256 by path in the folder.
_DIGESTS = TypeAdapter(dict[str, str])


def pack(
    campaign: LoadedCampaign,
    engines: tuple[Path, ...],
    out: Path,
    trace: tuple[Path, ...] = (),
) -> None:
    """Pack the files of a measured campaign, with a configuration that renders it.

    `engines` are engine.json, `trace` is the recorded trace, if there is one.
    """
    (out / "divergences").mkdir(parents=True)
    files = [campaign.folder / name for name in ("runs.parquet", "machine.json", "models.json")]
    for file in (*files, *campaign.pass_times, *campaign.agreement, *campaign.stages, *trace):
        shutil.copy(file, out)
    for file in campaign.divergences:
        shutil.copy(file, out / "divergences")
    described = [read_record(file) for file in engines]
    (out / "engines.json").write_text(json.dumps(described, indent=1) + "\n")
    config = read_record(campaign.file)
    config["campaign"]["source"] = "shipped"
    # JSON is YAML, and so a file for --configfile.
    (out / "campaign.yaml").write_text(f"{SCHEMA}\n{json.dumps(config, indent=1)}\n")
    write_manifest(out)


def _digests_of(folder: Path) -> dict[str, str]:
    """Return the digests of a shipped campaign's files, without the manifest, in order."""
    files = {file.relative_to(folder): file for file in sorted(folder.rglob("*")) if file.is_file()}
    own = [name for name in files if name.parts[0] in CONTENTS and name != Path(NAME)]
    return {name.as_posix(): sha256_of(files[name]) for name in own}


def write_manifest(folder: Path) -> None:
    """Write the digests of all files of a shipped campaign."""
    text = _DIGESTS.dump_json(_digests_of(folder), indent=1).decode()
    replace_text(folder / NAME, f"{text}\n")


def check_manifest(folder: Path) -> None:
    """Check the files of a shipped campaign against its manifest; ignore files of other names.

    Raises DamagedFileError for the first difference.
    """
    manifest = folder / NAME
    try:
        digests = _DIGESTS.validate_python(json_of(manifest.read_bytes()))
    except (OSError, ValueError) as error:
        raise DamagedFileError(
            f"{manifest} is no list of files, so the campaign's cannot be checked; {_AGAIN}"
        ) from error
    found = _digests_of(folder)
    for name in digests | found:
        if digests.get(name) != found.get(name):
            reason = "not the file that" if name in digests else "not among the files that"
            reason = reason if name in found else "missing, one that"
            raise DamagedFileError(f"{folder / name} is {reason} {NAME} names; {_AGAIN}")


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
