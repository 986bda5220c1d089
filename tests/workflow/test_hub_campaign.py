"""A whole campaign whose models come from the hub: downloaded, quantized, measured."""

import json
from math import prod

import pytest

from specmoe.files import sha256_of
from specmoe.models.synthetic import tensors, write_model
from specmoe.runs.schema import read_runs

from ..hub_standin import StandIn, environment
from ..recipes import SMALL, varied
from ..splitting import split_model

MOE = varied(SMALL, layers=6, experts=8, experts_used=2, expert_ffn=256, dtype="BF16")
DRAFT = varied(SMALL, dtype="BF16")
PARAMETERS = sum(prod(tensor.shape) for tensor in tensors(MOE))


@pytest.fixture(scope="module")
def hub(module_folder):
    """A hub with a split MoE and a draft."""
    with StandIn(module_folder / "repositories") as hub:
        write_model(module_folder / "moe.gguf", MOE)
        for part in split_model(module_folder / "moe.gguf", module_folder / "parts", "moe-BF16", 2):
            hub.add("lab/moe-GGUF", "main", f"BF16/{part.name}", part)
        draft = hub.add("lab/draft-GGUF", "main", "draft-BF16.gguf", b"")
        write_model(draft, DRAFT)
        yield hub


@pytest.fixture
def from_hub(tiny, hub):
    """The campaign's configuration, which has the digest of one file only."""
    draft = sha256_of(hub.root / "lab/draft-GGUF/main/draft-BF16.gguf")
    moe = {"kind": "hub", "repository": "lab/moe-GGUF", "family": "moe"}
    tiny["campaign"] |= {"name": "hub", "models": "hub"}
    tiny["families"] = {
        "moe": {
            "architecture": "qwen35moe",
            "vocabulary": MOE.vocabulary,
            "layers": MOE.layers,
            "parameters": PARAMETERS,
            "parameters_active": PARAMETERS / 2,
            "experts": 8,
            "experts_used": 2,
        }
    }
    tiny["model_sets"]["hub"] = {
        "moe_bf16": moe | {"file": "BF16/moe-BF16-00001-of-00002.gguf"},
        "moe_q4": {"kind": "quantize", "source": "moe_bf16", "type": "Q4_K_M"},
        "moe_q8": {"kind": "quantize", "source": "moe_bf16", "type": "Q8_0"},
        "draft": {
            "kind": "hub",
            "repository": "lab/draft-GGUF",
            "file": "draft-BF16.gguf",
            "sha256": draft,
        },
    }
    tiny["suites"]["S"]["targets"] = ["moe_q4", "moe_q8"]
    tiny["suites"]["N"]["targets"] = ["moe_bf16", "moe_q4", "moe_q8"]
    return tiny


def test_models_of_the_hub_become_a_paper(hub, from_hub, campaign, tmp_path):
    there = environment(hub, tmp_path / "hf")
    printed = campaign(from_hub, "paper", env=there)

    plan = printed.partition("\n suite")[0]
    assert "Campaign hub: 10 runs and 4 of targets alone beside them, in 5 blocks" in plan
    assert "lab/moe-GGUF, BF16/moe-BF16-00001-of-00002.gguf (the hub, no SHA-256)" in plan

    runs = read_runs(tmp_path / "results/hub/runs.parquet")
    assert len(runs) == 14
    models = tmp_path / "results/models/hub"
    cards = {path.stem: json.loads(path.read_text()) for path in models.glob("*.json")}
    assert {name: card["type"] for name, card in cards.items()} == {
        "moe_bf16": "BF16",
        "moe_q4": "Q4_K_M",
        "moe_q8": "Q8_0",
        "draft": "BF16",
    }
    assert set(runs["target_sha256"]) == {cards[name]["sha256"] for name in runs["target"].unique()}
    # Downloads stay in the user's cache and are linked; files made here are in the results.
    made = {path.stem for path in models.glob("*.gguf") if not path.is_symlink()}
    assert made == {"moe_q4", "moe_q8"}
    assert (models / "draft.gguf").resolve().is_relative_to(tmp_path / "hf")
    assert (tmp_path / "paper/tables/speculation.tex").exists()
