"""Shipped campaigns: packing, digests, and the columns of today."""

import json
import shutil
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from pydantic import TypeAdapter

from specmoe.campaign.campaign import LoadedCampaign
from specmoe.config.load import load, merge_catalogs
from specmoe.errors import DamagedFileError
from specmoe.files import (
    ROOT,
    given_file,
    json_of,
    read_record,
    replace_text,
    sha256_of,
    written_whole,
)
from specmoe.runs.schema import COLUMNS, check_rows, read_rows, schema_errors
from specmoe.yaml_files import read_mapping

MANIFEST = "manifest.json"
# The files and folders of a shipped campaign beside its manifest.
CONTENTS = (
    *("agreement.parquet", "campaign.yaml", "stages.json"),
    *("divergences", "engines.json", "machine.json", "models.json"),
    *("pass_times.parquet", "runs.parquet", "trace.json"),
)
# Editors check the file by it, here and in resources/campaigns/<campaign>/.
SCHEMA = "# yaml-language-server: $schema=../../../config/schema.json"
# What 2.0.0 packed that is gone: keys, and the noise that it declared, which is estimated now.
_GONE: dict[str, dict[str, tuple[object, ...]]] = {
    "measurement": {
        **{"prompt_iterations": (1,), "schedule": ("auto", "interleaved", "sequential")},
        **{"more_repeats": ({},), "drop_beaten": (None,)},
    },
    "statistics": {"session_sd": (0.03,)},
}
_AGAIN = "get the shipped campaign again, or pack it again"
# SHA-256 by path in the folder.
_DIGESTS = TypeAdapter(dict[str, str])


def pack(campaign: LoadedCampaign, trace: tuple[Path, ...] = ()) -> None:
    """Pack the files of a measured campaign, with a configuration that renders it.

    `trace` is the recorded trace, if there is one.
    """
    places = campaign.places
    out, engines = places.folder / "packed", map(places.engine_file, campaign.engine_names)
    (out / "divergences").mkdir(parents=True)
    files = [places.folder / name for name in ("runs.parquet", "machine.json", "models.json")]
    tables = [*campaign.table("pass_times"), *campaign.table("agreement")]
    for file in (*files, *tables, *places.stages, *trace):
        shutil.copy(file, out)
    for file in campaign.divergences:
        shutil.copy(file, out / "divergences")
    (out / "engines.json").write_text(json.dumps([*map(read_record, engines)], indent=1) + "\n")
    config = read_record(places.file)
    config["campaign"]["source"] = "shipped"
    (out / "campaign.yaml").write_text(_text_of(config))
    write_manifest(out)


def _text_of(config: dict[str, Any]) -> str:
    """Return the text of a configuration. JSON is YAML, and so a file for --configfile."""
    return f"{SCHEMA}\n{json.dumps(config, indent=1)}\n"


def _digests_of(folder: Path) -> dict[str, str]:
    """Return the digests of a shipped campaign's files, without the manifest, in order."""
    shipped = [folder / name for name in CONTENTS]
    files = [file for path in shipped for file in (path, *path.rglob("*")) if file.is_file()]
    return {file.relative_to(folder).as_posix(): sha256_of(file) for file in sorted(files)}


def write_manifest(folder: Path) -> None:
    """Write the digests of all files of a shipped campaign."""
    replace_text(folder / MANIFEST, json.dumps(_digests_of(folder), indent=1) + "\n")


def check_manifest(folder: Path) -> None:
    """Check the files of a shipped campaign against its manifest; ignore files of other names.

    Raises DamagedFileError for the first difference.
    """
    manifest = folder / MANIFEST
    try:
        digests = _DIGESTS.validate_python(json_of(manifest.read_bytes()))
    except (OSError, ValueError) as error:
        raise DamagedFileError(
            f"{manifest} is no list of files, so the campaign's cannot be checked; {_AGAIN}"
        ) from error
    present = _digests_of(folder)
    for name in digests | present:
        if digests.get(name) != present.get(name):
            reason = "not the file that" if name in digests else "not among the files that"
            reason = reason if name in present else "missing, one that"
            raise DamagedFileError(f"{folder / name} is {reason} {MANIFEST} names; {_AGAIN}")


def upgrade(folder: Path) -> None:
    """Give a shipped campaign the columns and keys of today; change all of its files or none.

    Raises DamagedFileError, ConfigError for unknown keys, and SchemaError for rows before 2.0.0.
    """
    manifest, file = given_file(folder / MANIFEST), folder / "runs.parquet"
    rows = read_rows(file)  # of the version of 2.0.0
    check_manifest(folder)
    settings = folder / "campaign.yaml"
    config = read_mapping(settings)
    keys: list[str] = []
    for section, gone in _GONE.items():
        given = config.get(section) or {}
        for key in [key for key in gone if key in given and given[key] in gone[key]]:
            del given[key]
            keys.append(f"without {section}.{key}")
    load(merge_catalogs(ROOT, config), ROOT)
    with schema_errors(file):
        table = check_rows(rows.to_pylist())
    columns = [f"without {name}" for name in rows.column_names if name not in COLUMNS]
    columns += [f"with {name}, empty" for name in COLUMNS if name not in rows.column_names]
    digests = _digests_of(folder)
    with written_whole(manifest) as listed, ExitStack() as parts:
        if columns:
            part = parts.enter_context(written_whole(file))
            pq.write_table(table, part)
            digests[file.name] = sha256_of(part)
        if keys:
            part = parts.enter_context(written_whole(settings))
            part.write_text(_text_of(config), encoding="utf-8")
            digests[settings.name] = sha256_of(part)
        listed.write_text(json.dumps(digests, indent=1) + "\n", encoding="utf-8")
    for changed, changes in ((file, columns), (settings, keys)):
        print(f"{changed}: {', '.join(changes) or 'of today, nothing to change'}")
