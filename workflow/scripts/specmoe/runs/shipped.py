"""Shipped campaigns: packing, and digests."""

import json
import shutil
from pathlib import Path, PurePath
from typing import Any

from pydantic import TypeAdapter

from specmoe.campaign.campaign import LoadedCampaign
from specmoe.errors import DamagedFileError
from specmoe.files import json_of, read_record, replace_text, sha256_of

MANIFEST = "manifest.json"
LICENCE = "CC-BY-4.0"
"""The licence of the data of a packed campaign, which the manifest says."""
# The files and folders of a shipped campaign beside its manifest.
CONTENTS = (
    *("agreement.parquet", "campaign.yaml", "stages.json"),
    *("divergences", "engines.json", "machine.json", "models.json"),
    *("pass_times.parquet", "runs.parquet", "trace.json"),
)
# Editors check the file by it, here and in resources/campaigns/<campaign>/.
SCHEMA = "# yaml-language-server: $schema=../../../config/schema.json"
_AGAIN = "get the shipped campaign again, or pack it again"
# SHA-256 by path in the folder, beside the licence.
_DIGESTS = TypeAdapter(dict[str, str])


def pack(campaign: LoadedCampaign, trace: tuple[Path, ...] = ()) -> None:
    """Pack the files of a measured campaign, with a configuration that renders it.

    `trace` is the recorded trace, if there is one. Of the user's own files only the names are kept.
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
    records = _without_folders([*map(read_record, engines)])
    (out / "engines.json").write_text(json.dumps(records, indent=1) + "\n")
    config = _without_folders(read_record(places.file))
    config["campaign"]["source"] = "shipped"
    # JSON is YAML, and so a file for --configfile.
    (out / "campaign.yaml").write_text(f"{SCHEMA}\n{json.dumps(config, indent=1)}\n")
    write_manifest(out)


def _without_folders(value: Any) -> Any:
    """Return JSON whose texts that are paths of the user's have the file's name alone."""
    if isinstance(value, dict):
        return {key: _without_folders(part) for key, part in value.items()}
    if isinstance(value, list):
        return [*map(_without_folders, value)]
    of_user = isinstance(value, str) and value.startswith(("/", "~/"))
    return PurePath(value).name if of_user else value


def _digests_of(folder: Path) -> dict[str, str]:
    """Return the digests of a shipped campaign's files, without the manifest, in order."""
    shipped = [folder / name for name in CONTENTS]
    files = [file for path in shipped for file in (path, *path.rglob("*")) if file.is_file()]
    return {file.relative_to(folder).as_posix(): sha256_of(file) for file in sorted(files)}


def write_manifest(folder: Path) -> None:
    """Write the licence and the digests of all files of a shipped campaign."""
    said = {"licence": LICENCE, **_digests_of(folder)}
    replace_text(folder / MANIFEST, json.dumps(said, indent=1) + "\n")


def check_manifest(folder: Path) -> str | None:
    """Check the files of a shipped campaign against its manifest, and return the licence it says.

    Files of other names are ignored. Raises DamagedFileError for the first difference.
    """
    manifest = folder / MANIFEST
    try:
        digests = _DIGESTS.validate_python(json_of(manifest.read_bytes()))
    except (OSError, ValueError) as error:
        raise DamagedFileError(
            f"{manifest} is no list of files, so the campaign's cannot be checked; {_AGAIN}"
        ) from error
    present, licence = _digests_of(folder), digests.pop("licence", None)
    for name in digests | present:
        if digests.get(name) != present.get(name):
            reason = "not the file that" if name in digests else "not among the files that"
            reason = reason if name in present else "missing, one that"
            raise DamagedFileError(f"{folder / name} is {reason} {MANIFEST} names; {_AGAIN}")
    return licence
