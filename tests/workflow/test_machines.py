"""A campaign that machines share, through the real workflow.

This machine measures all blocks. To have a second machine, the records of a repeat are given
another one's id, as if they had come from there.
"""

import json

from specmoe.records import load_kept, save
from specmoe.runs.schema import read_runs

OTHER = "f" * 12


def test_machines_of_one_kind_share_a_campaign(tiny, campaign, tmp_path):
    tiny["campaign"] |= {"suites": ["S"], "machines": "same"}
    tiny["measurement"] |= {"repeats": 2, "pass_samples": 0}
    campaign(tiny, "runs", "results/tiny/machine.json")
    results = tmp_path / "results/tiny"
    # Each block describes its machine.
    assert len(list(results.glob("machines/S/**/r*.json"))) == 2
    machine = json.loads((results / "machine.json").read_text())
    assert len(machine["machines"]) == 1

    # The blocks of the second repeat become another machine's.
    for file in results.glob("blocks/**/r1.jsonl"):
        request, measured = load_kept(file)
        save(file, request, measured | {"machine": OTHER}, 1.0)
    for file in results.glob("machines/**/r1.json"):
        file.write_text(json.dumps(json.loads(file.read_text()) | {"id": OTHER}))
    campaign(tiny, "runs", "results/tiny/machine.json", "--rerun-triggers", "mtime")
    machine = json.loads((results / "machine.json").read_text())
    assert len(machine["machines"]) == 2
    assert read_runs(results / "runs.parquet")["machine"].nunique() == 2
