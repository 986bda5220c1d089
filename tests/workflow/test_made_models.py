"""Models of the hub, of a wheel and made of both, an MoE among them, measured by the workflow."""

import json
from pathlib import Path

import gguf
import pandas as pd
import pytest

from specmoe.models.synthetic import write_model
from specmoe.runs.schema import read_runs

from ..dense_model import write_dense
from ..hub_standin import StandIn, environment
from ..recipes import SMALL, varied
from ..small_campaign import run_campaign, tiny_campaign
from ..splitting import split_model
from ..wheels import MEMBER, from_folder, write_wheel
from .test_pass_times import built_from_source

PARTS = ["split-00001-of-00002.gguf", "split-00002-of-00002.gguf"]


@pytest.fixture(scope="module")
def rendered(snakemake, engine_bin, model_passes, module_folder):
    """The results of a campaign of a split model, and of twins made from a quantized file."""
    assert model_passes.is_file()
    config = tiny_campaign(engine_bin)
    built_from_source(config, module_folder, engine_bin)
    q8 = write_dense(module_folder / "q8.gguf", kind=gguf.GGMLQuantizationType.Q8_0)
    config["model_sets"]["tiny"] = {
        "q8": write_wheel(module_folder / "wheels", q8.read_bytes()),
        "dense": {"kind": "quantize", "source": "q8", "type": "F32"},
        "moe": {"kind": "upcycle", "source": "dense", "experts": 4},
        "cut": {"kind": "truncate", "source": "q8", "layers": 2},
        "split": {"kind": "hub", "repository": "lab/split-GGUF", "file": f"BF16/{PARTS[0]}"},
        "split_q8": {"kind": "quantize", "source": "split", "type": "Q8_0"},
    }
    config["campaign"]["suites"] = ["S", "N", "H"]
    twins = {"title": "Twins", "targets": ["dense", "moe"], "gammas": [1, 4], "prompts": ["code"]}
    config["suites"] = {
        "S": twins | {"drafts": ["q8"]},
        "N": twins | {"drafts": ["cut"], "gammas": [4], "vary": {"forced_acceptance": [0, 1]}},
        "H": twins | {"targets": ["split"], "drafts": ["split_q8"], "gammas": [4]},
    }
    twice = {"S/dense": 2, "S/moe": 2}
    config["measurement"] |= {"more_repeats": twice, "pass_samples": 2, "n_predict": 24}
    write_model(module_folder / "split.gguf", varied(SMALL, dtype="BF16"))
    parts = split_model(module_folder / "split.gguf", module_folder / "parts", "split", len(PARTS))
    with StandIn(module_folder / "repositories") as hub:
        for part in parts:
            hub.add("lab/split-GGUF", "main", f"BF16/{part.name}", part)
        there = environment(hub, module_folder / "hf", **from_folder(module_folder / "wheels"))
        run_campaign(snakemake, module_folder, config, "results/tiny/analysis", env=there)
    return module_folder / "results/tiny"


def test_a_split_model_of_the_hub_is_downloaded_quantized_and_measured(rendered):
    folder = rendered.parents[1]
    models = rendered.parent / "models/tiny"
    infos = {path.stem: json.loads(path.read_text()) for path in models.glob("*.json")}
    types = {name: info["type"] for name, info in infos.items()}
    assert types == {
        **{"q8": "Q8_0", "dense": "ALL_F32", "moe": "ALL_F32", "cut": "Q8_0"},
        **{"split": "BF16", "split_q8": "Q8_0"},
    }
    # Downloads stay in the user's cache and are linked; files made here are in the results.
    linked = {path.stem for path in models.glob("*.gguf") if path.is_symlink()}
    assert {"split", *(Path(part).stem for part in PARTS)} <= linked
    assert linked.isdisjoint({"split_q8", "dense", "moe", "cut"})
    assert (models / "split.gguf").resolve().is_relative_to(folder / "hf")
    runs = read_runs(rendered / "runs.parquet").groupby("target")["target_sha256"].unique()
    assert runs.map(list).to_dict() == {name: [infos[name]["sha256"]] for name in runs.index}
    assert set(runs.index) == {"dense", "moe", "split"}


def test_infos_say_where_a_model_comes_from_and_its_copy_was_checked(rendered):
    models = rendered.parent / "models/tiny"
    infos = {name: json.loads((models / f"{name}.json").read_text()) for name in ("q8", "moe")}
    origin = f"tiny-model 1.0, {MEMBER}"
    origins = {name: (info["origin"], info["licence"]) for name, info in infos.items()}
    assert origins == {"q8": (origin, "CC0-1.0"), "moe": (f"made from {origin}", "CC0-1.0")}
    assert (infos["moe"]["experts"], infos["moe"]["experts_used"]) == (4, 1)
    [checked] = (models / "upcycled").rglob("moe.json")
    assert json.loads(checked.read_text())["tokens"] == 96
    assert sorted(path.name for path in models.iterdir() if path.name.startswith(".")) == []


def test_a_draft_is_accepted_alike_and_what_differs_is_in_the_table(rendered):
    twins = pd.read_parquet(rendered / "analysis/upcycled_pairs.parquet")
    assert set(twins["target"]) == {"moe"}
    assert set(twins["dense"]) == {"dense"}
    own = twins[twins["forced_acceptance"].isna()]
    assert own["gammas"].tolist() == ["1", "4", "1, 4"]
    assert own["pairs"].tolist() == [2, 2, 4]
    assert (own["same_tokens"] == 1).all()
    assert (own["acceptance_rate"] > 0.5).all()
    assert own["acceptance_rate"].equals(own["dense_acceptance"])
    forced = twins[twins["forced_acceptance"].notna()]
    assert sorted(forced["forced_acceptance"].unique()) == [0, 1]
    assert forced["acceptance_rate"].equals(forced["dense_acceptance"])
    assert forced["same_tokens"].isna().all()
    assert (own["ratio_low"] < own["ratio"]).all()


def test_passes_of_both_twins_are_compared(rendered):
    passes = pd.read_parquet(rendered / "analysis/upcycled_passes.parquet")
    assert set(passes["model"]) == {"dense", "moe"}
    assert set(passes["n_tokens"]) == {1, 2, 5}
    wide = passes[(passes["model"] == "moe") & (passes["n_tokens"] == 5)].iloc[0]
    assert 1 <= wide["experts"] <= 4
    assert wide["experts_even"] == pytest.approx(4 * (1 - 0.75**5))
