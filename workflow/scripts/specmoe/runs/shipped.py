"""Shipped campaigns: packing, digests, and their rewriting with the keys and columns of today."""

import json
import shutil
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError
from pydantic_core import ErrorDetails

from specmoe.config.base import FORMER_KEYS
from specmoe.config.schema import Config
from specmoe.errors import DamagedFileError
from specmoe.files import json_of, read_record, replace_text, sha256_of
from specmoe.plan.campaign import LoadedCampaign
from specmoe.runs.schema import read_table, write_runs

NAME = "manifest.json"
# The files and folders of a shipped campaign beside its manifest.
CONTENTS = (
    *("agreement.parquet", "campaign.yaml", "contenders_r0.json", "contenders_r1.json"),
    *("divergences", "engines.json", "machine.json", "models.json"),
    *("pass_times.parquet", "runs.parquet", "trace.json"),
)
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
    own = [name for name in files if name.parts[0] in CONTENTS]
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


def upgrade(folder: Path) -> None:
    """Rewrite a shipped campaign with today's keys and columns, and its manifest.

    Raises SchemaError if rows lack a column of today.
    """
    file = folder / "campaign.yaml"
    data = json_of(file.read_text("utf-8").partition("\n")[2])
    _with_known_keys(data)
    replace_text(file, f"{SCHEMA}\n{json.dumps(data, indent=1)}\n")
    write_runs(read_table(folder / "runs.parquet").to_pylist(), folder / "runs.parquet")
    write_manifest(folder)


def _with_known_keys(data: dict[str, Any]) -> None:
    """Rename the keys of a configuration that the schema does not know, or remove them."""
    while unknown := [one for one in _errors_of(data) if one["type"] == "unknown_key"]:
        for error in unknown:
            section = data
            for part in error["loc"]:  # those that are no keys say of which kind a section is
                inner = section.get(str(part))
                section = inner if isinstance(inner, dict) else section
            value = section.pop(key := error["ctx"]["key"])
            if key in FORMER_KEYS:
                section.setdefault(FORMER_KEYS[key], value)


def _errors_of(data: dict[str, Any]) -> list[ErrorDetails]:
    try:
        Config.model_validate(data)
    except ValidationError as error:
        return error.errors()
    return []
