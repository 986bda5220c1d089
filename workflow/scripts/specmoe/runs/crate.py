"""A packed campaign described as an RO-Crate: its files, software, models and machine.

The description depends on the packed files alone, so packing a campaign again gives the same bytes.
https://w3id.org/ro/crate/1.1
"""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pandas as pd
import yaml
from rocrate.model.contextentity import ContextEntity
from rocrate.rocrate import ROCrate

from specmoe.files import gigabytes, read_record, replace_text, sha256_of
from specmoe.runs import manifest
from specmoe.runs.schema import read_runs

_VERSION = "1.1"
# The context of this version is older than the term.
_TERMS = {"sha256": "http://schema.org/sha256"}
_FORMATS = {
    ".json": "application/json",
    ".parquet": "application/vnd.apache.parquet",
    ".yaml": "application/yaml",
}

Entity = dict[str, Any]


def seal(folder: Path, project: Mapping[str, str]) -> None:
    """Write the description of a packed campaign, then the manifest of all its files.

    `project` has the `name`, `version`, `license` (SPDX) and `description` of specmoe.
    """
    crate = describe(folder, project)
    text = json.dumps(crate.metadata.generate(), indent=1, sort_keys=True, ensure_ascii=False)
    replace_text(folder / manifest.CRATE, text + "\n")
    manifest.write_manifest(folder)


def describe(folder: Path, project: Mapping[str, str]) -> ROCrate:
    """Return the RO-Crate of a packed campaign."""
    runs = read_runs(folder / "runs.parquet")
    suites = yaml.safe_load((folder / "campaign.yaml").read_text(encoding="utf-8"))["suites"]
    license_url = f"https://spdx.org/licenses/{project['license']}"
    host = read_record(folder / "host.json")
    # Machines that share a campaign are listed.
    machines = [_machine(one) for one in host.get("machines", [host])]
    engines = [_engine(engine) for engine in read_record(folder / "engines.json")]
    models = list(_models(read_record(folder / "models.json")))
    specmoe: Entity = {
        "@id": f"#{project['name']}",
        "@type": "SoftwareApplication",
        "name": project["name"],
        "version": project["version"],
        "description": f"{project['description']} This version wrote this description.",
        "license": {"@id": license_url},
    }
    terms: Entity = {"@id": license_url, "@type": "CreativeWork", "name": project["license"]}
    measuring = _measuring(runs, [specmoe, *engines, *machines], models)
    titles = "; ".join(f"{name}: {suites[name]['title']}" for name in sorted(set(runs["suite"])))

    crate = ROCrate(version=_VERSION)
    crate.metadata.extra_terms.update(_TERMS)
    root = crate.root_dataset
    root["name"] = f"Campaign {runs['campaign'].iloc[0]} of {project['name']}"
    chips = ", ".join(dict.fromkeys(one["name"] for one in machines))
    root["description"] = f"{len(runs)} runs of llama.cpp on {chips}. Suites: {titles}."
    root["license"] = {"@id": license_url}
    root["datePublished"] = measuring["endTime"].partition("T")[0]
    root["mentions"] = {"@id": measuring["@id"]}
    for file in manifest.packed_files(folder):
        if file.name != manifest.CRATE:
            crate.add_file(file, file.relative_to(folder), properties=_file(file, folder))
    # It has the digest of this description, so its own is not here.
    own = {"description": manifest.CONTENTS[manifest.NAME], "encodingFormat": _FORMATS[".json"]}
    crate.add_file(None, manifest.NAME, properties={"name": manifest.NAME, **own})
    for entity in (terms, specmoe, *engines, *machines, *models, measuring):
        crate.add(ContextEntity(crate, entity.pop("@id"), entity))
    return crate


def _file(file: Path, folder: Path) -> Entity:
    name = file.relative_to(folder)
    return {
        "name": name.as_posix(),
        "description": manifest.CONTENTS[name.parts[0]],
        "encodingFormat": _FORMATS[file.suffix],
        "contentSize": str(file.stat().st_size),
        "sha256": sha256_of(file),
    }


def _machine(host: Mapping[str, Any]) -> Entity:
    parts = [host["system"], f"{host['physical_cores']} cores", gigabytes(host["memory_bytes"])]
    parts += [str(host["gpu"])] if host["gpu"] else []
    return {
        "@id": f"#host-{host['id']}",
        "@type": "IndividualProduct",
        "name": host["chip"],
        "identifier": host["id"],
        "description": "; ".join(parts),
    }


def _engine(engine: Mapping[str, Any]) -> Entity:
    return {
        "@id": f"#engine-{engine['id']}",
        "@type": "SoftwareApplication",
        "name": "llama.cpp",
        "version": engine["commit"],
        "identifier": engine["id"],
        "url": "https://github.com/ggml-org/llama.cpp",
        "description": f"backend {engine['backend']}",
    }


def _models(models: Mapping[str, Mapping[str, Any]]) -> Iterator[Entity]:
    """Yield one entity for each digest: two models of a campaign may be the same file."""
    for digest in sorted({model["sha256"] for model in models.values()}):
        names = sorted(name for name, model in models.items() if model["sha256"] == digest)
        model = models[names[0]]
        # Cards of earlier releases lack both.
        origin, licence = model.get("origin"), model.get("licence")
        yield {
            "@id": f"#model-{digest}",
            "@type": "CreativeWork",
            "name": ", ".join(names),
            "identifier": f"sha256:{digest}",
            "contentSize": str(model["size_bytes"]),
            **({"description": f"{origin}; licence: {licence}"} if origin else {}),
        }


def _measuring(runs: pd.DataFrame, instruments: list[Entity], models: list[Entity]) -> Entity:
    """Return the action that made the rows, from the start of the first run to the last end."""
    lasted = pd.to_timedelta(runs[["prompt_ms", "decode_ms"]].sum(axis=1), unit="ms")
    ended = (runs["started_at"] + lasted).max()
    return {
        "@id": "#measuring",
        "@type": "CreateAction",
        "name": "Measuring the runs",
        "startTime": runs["started_at"].min().isoformat(timespec="seconds"),
        "endTime": ended.isoformat(timespec="seconds"),
        "instrument": [{"@id": entity["@id"]} for entity in instruments],
        "object": [{"@id": entity["@id"]} for entity in models],
        "result": {"@id": "runs.parquet"},
    }
