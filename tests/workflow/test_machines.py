"""A campaign that machines share, through the real workflow.

This machine measures all blocks. To have a second machine, the records of a repeat are given
another one's id, as if they had come from there.
"""

import json
import shutil

import pandas as pd
import pytest

from specmoe.records import load, save

from ..small_campaign import run_campaign, tiny_campaign

OTHER = "f" * 12


@pytest.fixture(scope="module")
def shared(snakemake, engine_bin, module_folder):
    """The folder of a campaign that machines may share, with two repeats, and its configuration."""
    config = tiny_campaign(engine_bin)
    config["campaign"] |= {"suites": ["S"], "hosts": "same"}
    config["measurement"] |= {"repeats": 2, "pass_samples": 0}
    run_campaign(snakemake, module_folder, config, "runs", "results/tiny/host.json")
    return module_folder, config


def results(folder):
    return folder / "results/tiny"


def hand_over(folder, **facts):
    """Give the blocks of the second repeat to another machine."""
    for record in results(folder).glob("blocks/**/r1.jsonl"):
        request, measured = load(record)
        save(record, request, measured | {"host": OTHER}, 1.0)
    for machine in results(folder).glob("machines/**/r1.json"):
        changed = json.loads(machine.read_text()) | {"id": OTHER} | facts
        machine.write_text(json.dumps(changed))


def test_each_block_describes_its_machine_on_which_the_engine_was_tested(shared):
    folder, _ = shared
    described = list(results(folder).glob("machines/S/**/r*.json"))
    assert len(described) == 2
    host = json.loads((results(folder) / "host.json").read_text())
    [machine] = host["machines"]
    assert host["id"] == machine["id"]
    [mark] = (folder / "results/engines").glob("*/tested/*.ok")
    assert mark.stem == machine["id"]


def test_machines_of_one_kind_share_a_campaign_and_another_kind_is_refused(
    snakemake, shared, tmp_path
):
    shutil.copytree(shared[0], tmp_path / "same")
    hand_over(tmp_path / "same")
    run_campaign(snakemake, tmp_path / "same", shared[1], "site", "--rerun-triggers", "mtime")
    host = json.loads((results(tmp_path / "same") / "host.json").read_text())
    assert len(host["machines"]) == 2
    campaign = pd.read_parquet(results(tmp_path / "same") / "analysis/campaign.parquet")
    assert campaign["machines"].item() == 2
    audit = (results(tmp_path / "same") / "audit/audit.txt").read_text()
    assert "no row is impossible" in audit
    hand_over(tmp_path / "same", chip="Another & Sons")
    asked = ("results/tiny/host.json", "--rerun-triggers", "mtime")
    refused = run_campaign(snakemake, tmp_path / "same", shared[1], *asked, fails=True)
    assert "is of another kind than the campaign's first one" in refused
    assert "chip 'Another & Sons', not" in refused
