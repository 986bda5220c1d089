"""A campaign that an earlier version shipped gets today's names, and its numbers stay."""

import json

import pyarrow.parquet as pq
import pytest

from specmoe.runs.collect import rows_of_record
from specmoe.runs.manifest import SCHEMA, check_manifest
from specmoe.runs.schema import read_runs, write_runs
from specmoe.runs.upgrade import COLUMNS, VALUES, upgrade

from ...made_record import MADE_BY, made_record, small_block

NAME = "campaign.yaml"
FORMER = {
    "host": {"chip": "c"},
    "campaign": {"name": "old", "hosts": "any", "models": "s", "compare_with_study": True},
    "model_sets": {"s": {"moe_q4": {}, "own": {}}},
    "measurement": {"sides": "in_turn", "passes": 2},
    "statistics": {"precision": 0.1, "repeats_limit": 9},
    "suites": {"K": {"drafts": ["itself", "draft_0.8b"]}},
    "prompts": {"texts": {"a.b": {"file": "x"}}},
}
TODAY = {
    "machine": {"chip": "c"},
    "campaign": {
        **{"name": "old", "machines": "any", "models": "s"},
        "compare_with_study": {"moe_q4": "moe_q4"},
    },
    "model_sets": {"s": {"moe_q4": {}, "own": {}}},
    "measurement": {"schedule": "sequential", "prompt_iterations": 2},
    "statistics": {"target_half_width": 0.1},
    "suites": {"K": {"drafts": ["self", "draft_0.8b"]}},
    "prompts": {"texts": {"a.b": {"file": "x"}}},
}


@pytest.fixture
def rows(study):
    block = small_block(study)
    return rows_of_record(made_record(block), block, MADE_BY)


def former_names(rows):
    """Return rows with the names of columns, values and ids that the version before gave them."""
    names = {new: old for old, new in COLUMNS.items()}
    values = {new: old for old, new in VALUES["schedule"].items()}
    old = [{names.get(key, key): value for key, value in row.items()} for row in rows]
    for row in old:
        row["arrangement"] = values[row["arrangement"]]
        for key in ("run", "baseline"):
            row[key] = row[key] and row[key].replace("/baseline/", "/alone/")
    return old


@pytest.fixture
def folder(rows, tmp_path):
    """A shipped campaign of the version before."""
    (tmp_path / NAME).write_text(f"{SCHEMA}\n{json.dumps(FORMER)}\n")
    write_runs(rows, tmp_path / "runs.parquet")
    today = pq.read_table(tmp_path / "runs.parquet")
    former = today.from_pylist(former_names(rows)).replace_schema_metadata(today.schema.metadata)
    pq.write_table(former, tmp_path / "runs.parquet")
    (tmp_path / "host.json").write_text("{}")
    (tmp_path / "divergences").mkdir()
    divergence = {"run": "B/alone/p", "gap_nats_by_width": {"2": 0.5}}
    (tmp_path / "divergences/t.json").write_text(json.dumps({"divergences": [divergence]}))
    return tmp_path


def test_a_shipped_campaign_has_todays_names_and_the_same_numbers(folder, rows):
    for _ in range(2):  # a second time changes nothing
        upgrade(folder)
        check_manifest(folder)
        assert json.loads((folder / NAME).read_text().partition("\n")[2]) == TODAY
        write_runs(rows, folder / "today.parquet")
        today = read_runs(folder / "today.parquet")
        assert read_runs(folder / "runs.parquet").equals(today)
        [judged] = json.loads((folder / "divergences/t.json").read_text())["divergences"]
        assert judged == {"run": "B/baseline/p", "gap_nats_by_batch": {"2": 0.5}}
        assert (folder / "machine.json").exists()
