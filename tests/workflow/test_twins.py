"""A dense model and an MoE upcycled from it, measured side by side through the real workflow."""

import gguf
import pandas as pd
import pytest

from ..dense_model import write_dense
from ..small_campaign import run_campaign, tiny_campaign
from .test_pass_times import built_from_source


@pytest.fixture(scope="module")
def rendered(snakemake, engine_bin, pass_bench, module_folder):
    """The results of a campaign of twins, in a type that is made from a quantized file."""
    assert pass_bench.is_file()
    config = tiny_campaign(engine_bin)
    built_from_source(config, module_folder, engine_bin)
    q8 = write_dense(module_folder / "q8.gguf", kind=gguf.GGMLQuantizationType.Q8_0)
    config["model_sets"]["tiny"] = {
        "q8": {"kind": "path", "path": str(q8)},
        "dense": {"kind": "quantize", "source": "q8", "type": "F32"},
        "moe": {"kind": "upcycle", "source": "dense", "experts": 4},
        "cut": {"kind": "truncate", "source": "q8", "layers": 2},
    }
    config["campaign"]["suites"] = ["S", "N"]
    twins = {"title": "Twins", "targets": ["dense", "moe"], "gammas": [1, 4], "prompts": ["code"]}
    config["suites"] = {
        "S": twins | {"drafts": ["q8"]},
        "N": twins | {"drafts": ["cut"], "gammas": [4], "vary": {"forced_acceptance": [0, 1]}},
    }
    config["measurement"] |= {"repeats": 2, "pass_samples": 2, "n_predict": 24}
    run_campaign(snakemake, module_folder, config, "results/tiny/analysis")
    return module_folder / "results/tiny"


def test_a_draft_is_accepted_alike_and_what_differs_is_in_the_table(rendered):
    twins = pd.read_parquet(rendered / "analysis/twins.parquet")
    assert set(twins["target"]) == {"moe"}
    assert set(twins["dense"]) == {"dense"}
    own = twins[twins["imposed_acceptance"].isna()]
    assert own["gammas"].tolist() == ["1", "4", "1, 4"]
    assert own["pairs"].tolist() == [2, 2, 4]
    assert (own["same_tokens"] == 1).all()
    assert (own["acceptance_rate"] > 0.5).all()
    assert own["acceptance_difference"].tolist() == [0, 0, 0]
    forced = twins[twins["imposed_acceptance"].notna()]
    assert sorted(forced["imposed_acceptance"].unique()) == [0, 1]
    assert forced["acceptance_difference"].eq(0).all()
    assert forced["same_tokens"].isna().all()
    assert (twins["ratio_low"] < twins["ratio"]).all()


def test_passes_of_both_twins_are_compared(rendered):
    passes = pd.read_parquet(rendered / "analysis/twin_passes.parquet")
    assert set(passes["model"]) == {"dense", "moe"}
    assert set(passes["width"]) == {1, 2, 5}
    wide = passes[(passes["model"] == "moe") & (passes["width"] == 5)].iloc[0]
    assert 1 <= wide["experts"] <= 4
    assert wide["experts_even"] == pytest.approx(4 * (1 - 0.75**5))
