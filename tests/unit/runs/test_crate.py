"""A packed campaign is described as an RO-Crate that others can read, by its files alone."""

import json
import re
import shutil
import tomllib

import pytest
from rocrate.rocrate import ROCrate

from specmoe.runs.crate import seal
from specmoe.runs.manifest import CRATE as NAME
from specmoe.runs.manifest import NAME as MANIFEST
from specmoe.runs.manifest import check_manifest

from ...conftest import ROOT

CAMPAIGNS = sorted(path.parent for path in ROOT.glob("resources/campaigns/*/runs.parquet"))
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
AGAIN = (
    'PYTHONPATH=workflow/scripts python -c "import sys, tomllib; from pathlib import Path;'
    " from specmoe.runs.crate import seal;"
    " seal(Path(sys.argv[1]), tomllib.loads(Path('pyproject.toml').read_text())['project'])\""
)


@pytest.fixture
def packed(tmp_path):
    """A copy of the shipped synthetic campaign."""
    return shutil.copytree(ROOT / "resources/campaigns/synthetic", tmp_path / "synthetic")


@pytest.mark.parametrize("folder", CAMPAIGNS, ids=lambda folder: folder.name)
def test_a_shipped_campaign_is_described_and_sealed(folder, tmp_path):
    check_manifest(folder)
    assert NAME in json.loads((folder / MANIFEST).read_text())
    software = ROCrate(folder).dereference(f"#{PROJECT['name']}")
    copy = shutil.copytree(folder, tmp_path / folder.name)
    # It names the version that packed it, which may be older than this one.
    seal(copy, PROJECT | {"version": software["version"]})
    assert (copy / NAME).read_text() == (folder / NAME).read_text(), f"run: {AGAIN} {folder}"
    assert (copy / MANIFEST).read_text() == (folder / MANIFEST).read_text()


def test_a_model_of_a_package_has_its_origin_and_licence(packed):
    cards = json.loads((packed / "models.json").read_text())
    first = next(iter(cards))
    cards[first] |= {"origin": "a-package 1.0, model.gguf", "licence": "CC0-1.0"}
    (packed / "models.json").write_text(json.dumps(cards))
    seal(packed, PROJECT)
    models = ROCrate(packed).root_dataset["mentions"]["object"]
    said = {model["identifier"]: model.get("description") for model in models}
    known = {digest: text for digest, text in said.items() if text}
    digest = f"sha256:{cards[first]['sha256']}"
    assert known == {digest: "a-package 1.0, model.gguf; licence: CC0-1.0"}


def test_every_reference_leads_to_an_entity(packed):
    graph = json.loads((packed / NAME).read_text())["@graph"]
    known = {entity["@id"] for entity in graph} | {"https://w3id.org/ro/crate/1.1"}
    assert len({entity["@id"] for entity in graph}) == len(graph)
    for entity in graph:
        for value in entity.values():
            for part in value if isinstance(value, list) else [value]:
                assert not isinstance(part, dict) or part["@id"] in known


def test_another_file_or_version_gives_another_description(packed):
    before = (packed / NAME).read_text()
    seal(packed, PROJECT | {"version": "9.9.9"})
    assert '"9.9.9"' in (packed / NAME).read_text()
    (packed / "host.json").write_text((packed / "host.json").read_text().replace("EPYC", "Epyc"))
    seal(packed, PROJECT)
    after = (packed / NAME).read_text()
    assert after != before
    assert "AMD Epyc" in after
    check_manifest(packed)


def test_machines_that_share_a_campaign_are_all_named(packed):
    host = json.loads((packed / "host.json").read_text())
    others = [host | {"id": name, "chip": chip} for name, chip in (("a", "Epyc"), ("b", "M2"))]
    (packed / "host.json").write_text(json.dumps(host | {"id": None, "machines": others}))
    seal(packed, PROJECT)
    root = ROCrate(packed).root_dataset
    assert root["description"].startswith("582 runs of llama.cpp on Epyc, M2. ")
    assert [one["identifier"] for one in root["mentions"]["instrument"][2:]] == ["a", "b"]


def test_only_packing_loads_the_library(root):
    loads = re.compile(r"^ *(?:from|import) (?:rocrate|specmoe\.runs\.crate)\b", re.MULTILINE)
    files = (root / "workflow/scripts").rglob("*.py")
    users = {file.name for file in files if loads.search(file.read_text())}
    assert users == {"crate.py", "pack_campaign.py", "upgrade_campaign.py"}
