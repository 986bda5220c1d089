"""The reference of the configuration follows its types; editors refuse what specmoe refuses."""

import json
import re

import pytest
import yaml
from jsonschema import Draft202012Validator

from specmoe.config.load import load
from specmoe.config.reference import document

from ...conftest import ROOT, merge

YAMLS = [*ROOT.glob("config/*.yaml"), *ROOT.glob("resources/campaigns/*/campaign.yaml")]
AGAIN = "run: python workflow/scripts/specmoe document"
README, SCHEMA = ROOT / "config/README.md", ROOT / "config/schema.json"
REFERENCE = ROOT / "config/reference.md"


def faults(data):
    validator = Draft202012Validator(json.loads(SCHEMA.read_text()))
    return [error.message for error in validator.iter_errors(data)]


def test_the_files_that_ship_are_those_that_are_generated(tmp_path):
    document(tmp_path)
    for file in REFERENCE, SCHEMA:
        assert (tmp_path / file.name).read_text() == file.read_text(), AGAIN


@pytest.mark.parametrize("file", YAMLS, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_shipped_file_names_the_schema_and_follows_it(file):
    text = file.read_text()
    [named] = re.findall(r"\A# yaml-language-server: \$schema=(\S+)\n", text)
    assert (file.parent / named).resolve() == ROOT / "config/schema.json"
    assert faults(yaml.safe_load(text)) == []


TABLE = yaml.safe_load((ROOT / "tests/unit/config/refused.yaml").read_text())["refused"]
MISSPELLED = [one for cases in TABLE.values() for one, line in cases if "unknown key" in line]


@pytest.mark.parametrize("wrong", [*MISSPELLED, {"suites": {"no spaces": {}}}])
def test_a_misspelled_key_is_refused(wrong):
    assert len(faults(wrong)) == 1


@pytest.mark.parametrize("example", re.findall(r"(?s)```yaml\n(.*?)```", README.read_text()))
def test_a_worked_example_is_valid(study, example):
    overlay = yaml.safe_load(example)
    assert faults(overlay) == []
    load(merge(study, overlay), ROOT)
