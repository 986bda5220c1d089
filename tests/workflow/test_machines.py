"""A campaign that machines share, through the real workflow.

This machine measures all blocks. To have a second machine, the records of a repeat are given
another one's id, as if they had come from there.
"""

import json
import shutil

import pandas as pd
import pytest

from ..small_campaign import run_campaign, tiny_campaign

OTHER = "f" * 12


@pytest.fixture(scope="module")
def shared(snakemake, engine_bin, module_folder):
    """The folder of a campaign of any machines with two repeats, and its configuration."""
    config = tiny_campaign(engine_bin)
    config["campaign"] |= {"suites": ["S"], "hosts": "any"}
    config["measurement"] |= {"repeats": 2, "pass_samples": 0}
    run_campaign(snakemake, module_folder, config, "runs", "results/tiny/host.json")
    return module_folder, config


def results(folder):
    return folder / "results/tiny"


def hand_over(folder, **facts):
    """Give the blocks of the second repeat to another machine."""
    for record in results(folder).glob("blocks/**/r1.json"):
        record.write_text(json.dumps(json.loads(record.read_text()) | {"host": OTHER}))
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


def test_with_machines_of_any_kind_each_is_shown_and_the_machine_is_what_varies(
    snakemake, shared, tmp_path
):
    shutil.copytree(shared[0], tmp_path / "any")
    hand_over(tmp_path / "any", chip="Another & Sons")
    run_campaign(snakemake, tmp_path / "any", shared[1], "site", "--rerun-triggers", "mtime")
    frame = pd.read_parquet(results(tmp_path / "any") / "analysis/machines.parquet")
    assert sorted(frame["machine"])[0] == min("Another & Sons", *frame["machine"])
    assert frame.groupby(["suite", "target", "draft", "gamma"])["host"].nunique().eq(2).all()
    page = (results(tmp_path / "any") / "site/index.html").read_text()
    assert "2 machines shared this campaign" in page
    assert "so the machine is what varies" in page
    audit = (results(tmp_path / "any") / "audit/audit.txt").read_text()
    assert "no row is impossible" in audit
    refused = run_campaign(
        snakemake, tmp_path / "any", shared[1], "more_repeats", "--rerun-triggers", "mtime",
        fails=True,
    )  # fmt: skip
    assert "more machines make its intervals narrower" in refused


def test_a_machine_of_another_kind_is_refused_where_all_must_be_of_one(snakemake, shared, tmp_path):
    shutil.copytree(shared[0], tmp_path / "same")
    config = shared[1] | {"campaign": shared[1]["campaign"] | {"hosts": "same"}}
    hand_over(tmp_path / "same", chip="Another & Sons")
    (results(tmp_path / "same") / "config.json").unlink()
    asked = ("results/tiny/host.json", "--rerun-triggers", "mtime")
    refused = run_campaign(snakemake, tmp_path / "same", config, *asked, fails=True)
    assert "is of another kind than the campaign's first one" in refused
    assert "chip 'Another & Sons', not" in refused
