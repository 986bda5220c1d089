"""Packed campaigns lose the keys that the configuration no longer has, and nothing else."""

import json
import shutil
import subprocess

import pytest

from specmoe.runs.manifest import check_manifest

from ..conftest import verb

KEYS = [
    "gone",
    "campaign.gone",
    "measurement.gate.gone",
    "engines.current.gone",
    "model_sets.true_shape.draft_2b.gone",
    "model_sets.true_shape.draft_2b.recipe.gone",
    "suites.V.gone",
]


@pytest.fixture
def packed(tmp_path, root):
    return shutil.copytree(root / "resources/campaigns/true-shape", tmp_path / "true-shape")


def upgrade(root, folder):
    return subprocess.run(verb("upgrade", folder), capture_output=True, text=True)


def change(folder, key, value):
    """Set a key of a campaign's configuration."""
    file = folder / "campaign.yaml"
    comment, text = file.read_text().split("\n", 1)
    section = data = json.loads(text)
    *path, last = key.split(".")
    for part in path:
        section = section[part]
    section[last] = value
    file.write_text(f"{comment}\n{json.dumps(data)}\n")


def test_unknown_keys_are_dropped_and_named(packed, root):
    before = (packed / "campaign.yaml").read_text()
    for key in KEYS:
        change(packed, key, {"a": 1})
    said = upgrade(root, packed).stdout
    assert {line.rpartition(" ")[2] for line in said.splitlines()} == set(KEYS)
    assert (packed / "campaign.yaml").read_text() == before
    check_manifest(packed)


def test_a_value_that_is_gone_is_left_and_named(packed, root):
    change(packed, "measurement.protocol", "gone")
    done = upgrade(root, packed)
    assert "measurement.protocol" in done.stderr
    assert done.returncode == 1
