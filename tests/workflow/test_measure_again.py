"""Runs that the machine disturbed at every attempt are measured once more, through the workflow."""

import json
import signal
import subprocess
import sys

import pandas as pd
import pytest
import yaml

from specmoe.runs.schema import read_runs

from ..processes import eventually
from .test_workflow import jobs, server_of

BLOCK = "S/target/draft/r0"
DISTURBED = f"{BLOCK}/g4/code/p0"


@pytest.fixture
def results(measured):
    """The folder of a finished campaign."""
    return measured / "results/tiny"


def plant(results, repeat=0):
    """Let a record of the comparison say that its run was disturbed at every attempt."""
    file = results / f"blocks/S/target/draft/r{repeat}.json"
    record = json.loads(file.read_text())
    [run] = [run for run in record["runs"] if run["run"].endswith("/g4/code/p0")]
    run |= {"measured_again": 1, "taken_away": "planted"}
    file.write_text(json.dumps(record))
    return record


def rows_of(results):
    runs = read_runs(results / "runs.parquet").set_index("run")
    return runs, pd.to_datetime(runs["started_at"])


def test_disturbed_runs_and_their_neighbours_are_measured_once_more(results, tiny, campaign):
    _, before = rows_of(results)
    first = plant(results)
    printed = campaign(tiny, "runs")
    assert "1 of 1 blocks of suite S have runs that were disturbed at every attempt" in printed
    assert printed.count("second measurement") == 1
    runs, after = rows_of(results)
    again = {f"{BLOCK}/{side}/code/p0" for side in ("alone", "g4")}
    assert set(after.index[after > before.max()]) == again
    assert runs["taken_away"].isna().all()
    assert runs.loc[DISTURBED, "measured_again"] == 2
    assert runs.loc[DISTURBED, "baseline"] == f"{BLOCK}/alone/code/p0"
    # Both records are kept.
    assert json.loads((results / f"blocks/{BLOCK}.json").read_text()) == first
    second = json.loads((results / f"again/{BLOCK}.json").read_text())
    assert {run["run"] for run in second["runs"]} == again
    assert "Nothing to be done" in campaign(tiny, "runs")
    # A block that is measured anew loses its second record.
    campaign(tiny, "runs", "--forcerun", "measure_block")
    assert not (results / f"again/{BLOCK}.json").exists()
    assert json.loads((results / "again/S.json").read_text()) == {"blocks": []}


def test_what_is_disturbed_again_is_kept_and_not_measured_a_third_time(results, tiny, campaign):
    plant(results)
    file = results / f"again/{BLOCK}.json"
    campaign(tiny, "runs")
    measured = file.read_bytes()
    # More repeats look at all blocks of the suite again.
    tiny["measurement"]["repeats"] = 2
    planned = jobs(campaign(tiny, "-n", "runs"))
    assert (planned["measure_block"], planned["measure_again"]) == (2, 2)
    assert "second measurement" not in campaign(tiny, "runs")
    assert file.read_bytes() == measured
    assert len(rows_of(results)[0]) == 12


def test_a_killed_second_measurement_goes_on(results, tiny, campaign, root):
    """The blocks that had their second measurement before the kill keep it."""
    tiny["measurement"]["repeats"] = 2
    campaign(tiny, "runs")
    for repeat in range(2):
        plant(results, repeat)
    (results / "busy.yaml").write_text(yaml.safe_dump(tiny))
    command = [sys.executable, "-m", "snakemake", "runs", "--cores", "2"]
    command += ["--snakefile", str(root / "Snakefile"), "--directory", str(results.parents[1])]
    command += ["--configfile", str(results / "busy.yaml")]
    with (results / "out").open("w") as out:
        workflow = subprocess.Popen(command, stdout=out, stderr=out)
    seconds = [results / f"again/S/target/draft/r{repeat}.json" for repeat in range(2)]
    eventually(lambda: any(second.exists() for second in seconds))
    eventually(lambda: server_of(results.parents[1]))
    workflow.send_signal(signal.SIGKILL)
    workflow.wait()
    kept = {second: second.read_bytes() for second in seconds if second.exists()}
    campaign(tiny, "--unlock")
    campaign(tiny, "--rerun-incomplete", "runs")
    assert all(second.read_bytes() == text for second, text in kept.items())
    assert all(second.exists() for second in seconds)
    assert rows_of(results)[0]["taken_away"].isna().all()


def test_machines_that_share_a_campaign_describe_the_one_of_the_second_measurement(
    tiny, campaign, tmp_path
):
    tiny["campaign"] |= {"suites": ["S"], "hosts": "same"}
    campaign(tiny, "runs")
    results = tmp_path / "results/tiny"
    plant(results)
    file = results / f"machines/{BLOCK}.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | {"id": "f" * 12}))
    campaign(tiny, "runs", "results/tiny/host.json", "--rerun-triggers", "mtime")
    host = json.loads((results / "host.json").read_text())
    measured = set(rows_of(results)[0]["host"])
    assert measured <= {machine["id"] for machine in host["machines"]}
    assert len(host["machines"]) == 2
