"""A model from a wheel and an MoE made from it are measured, and their cards say where from."""

import json

from specmoe.runs.schema import read_runs

from ..dense_model import write_dense
from ..wheels import MEMBER, from_folder, write_wheel


def test_a_packed_model_and_its_upcycled_twin_are_measured(tiny, campaign, tmp_path, monkeypatch):
    entry = write_wheel(tmp_path / "wheels", write_dense(tmp_path / "dense.gguf").read_bytes())
    for name, value in from_folder(tmp_path / "wheels").items():
        monkeypatch.setenv(name, value)
    tiny["model_sets"]["tiny"] = {
        "dense": entry,
        "moe": {"kind": "upcycle", "source": "dense", "experts": 4},
    }
    tiny["suites"]["N"]["targets"] = ["dense"]
    tiny["suites"]["S"] |= {"targets": ["moe"], "drafts": ["dense"]}
    campaign(tiny, "runs")
    runs = read_runs(tmp_path / "results/tiny/runs.parquet").set_index("target")
    assert len({tuple(tokens) for tokens in runs.loc[runs["prompt"] == "code", "tokens"]}) == 1
    drafted = runs[runs["draft"] == "dense"]
    assert (drafted["accepted"] == drafted["drafted"]).all()
    models = tmp_path / "results/models/tiny"
    dense, moe = (json.loads((models / f"{name}.json").read_text()) for name in ("dense", "moe"))
    origin = f"tiny-model 1.0, {MEMBER}"
    assert (dense["origin"], dense["licence"]) == (origin, "CC0-1.0")
    assert (moe["origin"], moe["licence"]) == (f"made from {origin}", "CC0-1.0")
    assert (moe["experts"], moe["experts_used"]) == (4, 1)
    [checked] = (models / "upcycled").rglob("moe.json")
    assert [found["tokens"] for found in json.loads(checked.read_text())] == [96]
    assert sorted(path.name for path in models.iterdir() if path.name.startswith(".")) == []
