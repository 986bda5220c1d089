"""Packed campaigns of the schema version before get a factor's levels, and nothing else changes."""

import json
import shutil
import subprocess

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from specmoe.runs.manifest import check_manifest
from specmoe.runs.schema import read_runs

from ..conftest import verb


@pytest.fixture
def packed(tmp_path, root):
    return shutil.copytree(root / "resources/campaigns/true-shape", tmp_path / "true-shape")


def upgrade(folder):
    return subprocess.run(verb("upgrade", folder), capture_output=True, text=True)


def change(folder, of_suite):
    """Change the suite R of a campaign's configuration."""
    file = folder / "campaign.yaml"
    comment, text = file.read_text().split("\n", 1)
    data = json.loads(text)
    of_suite(data["suites"]["R"])
    file.write_text(f"{comment}\n{json.dumps(data, indent=1)}\n")


def test_keys_and_rows_of_the_version_before_become_levels(packed):
    before = (packed / "campaign.yaml").read_text(), read_runs(packed / "runs.parquet")

    def older(suite):
        suite["imposed_acceptance"] = suite.pop("vary")["forced_acceptance"]
        suite |= {"prompt_lengths": suite["prompts"], "prompts": [], "temperatures": []}

    change(packed, older)
    table = pq.read_table(packed / "runs.parquet")
    table = table.append_column("target_model", table["target"]).drop_columns(["level"])
    composed = pa.array([f"{name}+x" for name in table["target"].to_pylist()])
    table = table.set_column(table.column_names.index("target"), "target", composed)
    pq.write_table(table.replace_schema_metadata({"specmoe_schema": "9"}), packed / "runs.parquet")
    assert upgrade(packed).returncode == 0
    after = (packed / "campaign.yaml").read_text(), read_runs(packed / "runs.parquet")
    assert json.loads(after[0].split("\n", 1)[1]) == json.loads(before[0].split("\n", 1)[1])
    assert after[1].equals(before[1])
    check_manifest(packed)


def test_what_no_version_knows_is_left_and_named(packed):
    change(packed, lambda suite: suite.update(gone=1))
    done = upgrade(packed)
    assert "suites.R: unknown key 'gone'" in done.stderr
    assert done.returncode == 1
