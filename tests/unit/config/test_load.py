"""A wrong configuration is answered with one line: the place, the name, the way out."""

from pathlib import Path

import pytest
import yaml

from specmoe.config.load import load
from specmoe.errors import ConfigError

from ...conftest import merge

TEXTS = ["short_factual", "code", "long_reasoning", "chinese"]


def fault(data, root: Path) -> str:
    with pytest.raises(ConfigError) as caught:
        load(data, root)
    message = str(caught.value)
    assert "\n" not in message
    return message


def test_the_study_is_valid(study, root):
    assert load(study, root).campaign.name == "m2-ultra"


def test_the_demo_is_valid_and_has_every_model_of_the_study(demo, root):
    config = load(demo, root)
    assert config.campaign.name == "demo"
    assert set(config.model_sets["study"]) <= set(config.models)


def test_an_unknown_key_is_named_with_its_place_and_the_nearest(study, root):
    study["suites"]["B"]["gamas"] = [4]
    assert fault(study, root) == "config: suites.B: unknown key 'gamas'; did you mean 'gammas'?"


def test_an_unknown_key_at_the_top_is_named(study, root):
    study["campain"] = {}
    assert "unknown key 'campain'; did you mean 'campaign'?" in fault(study, root)


def test_an_unknown_model_is_named_with_its_suite(study, root):
    study["suites"]["D"]["targets"] = ["dense_9"]
    assert fault(study, root) == (
        "config: suites.D.targets: unknown model 'dense_9'; did you mean 'dense_9b'?"
    )


def test_an_unknown_draft_is_named(study, root):
    study["suites"]["D"]["drafts"] = ["draft_08b"]
    assert "suites.D.drafts: unknown model 'draft_08b'; did you mean 'draft_0.8b'?" in fault(
        study, root
    )


def test_an_unknown_prompt_is_named(study, root):
    study["suites"]["P"]["prompts"] = ["short_factul"]
    assert (
        "suites.P.prompts: unknown prompt 'short_factul'; did you mean 'short_factual'?"
        in fault(study, root)
    )


def test_an_unknown_suite_is_named(study, root):
    study["campaign"]["suites"] = ["A", "E1"]
    assert "campaign.suites: unknown suite 'E1'; known: A, B, C, D, F, G, K" in fault(study, root)


def test_an_unknown_engine_is_named(study, root):
    study["campaign"]["engine"] = "curent"
    assert "campaign.engine: unknown engine 'curent'; did you mean 'current'?" in fault(study, root)


def test_an_unknown_model_set_is_named(study, root):
    study["campaign"]["models"] = "dmo"
    assert "campaign.models: unknown model set 'dmo'; did you mean 'demo'?" in fault(study, root)


def test_an_unknown_backend_is_named(study, root):
    study["campaign"]["backend"] = "vulcan"
    assert "config: campaign.backend" in fault(study, root)


def test_a_wrong_type_is_named_with_its_place_and_value(study, root):
    study["suites"]["B"]["gammas"] = ["four"]
    message = fault(study, root)
    assert "config: suites.B.gammas.0" in message
    assert "'four'" in message


def test_a_missing_key_of_a_model_is_named_without_the_kind_in_its_place(study, root):
    del study["model_sets"]["study"]["moe_q4"]["file"]
    assert fault(study, root) == "config: model_sets.study.moe_q4.file: Field required"


def test_an_unknown_kind_of_model_names_the_known_ones(study, root):
    study["model_sets"]["study"]["moe_q4"]["kind"] = "torrent"
    assert "model_sets.study.moe_q4" in fault(study, root)


def test_a_model_id_that_could_leave_its_folder_is_refused(study, root):
    study["model_sets"]["study"]["../x"] = {"kind": "path", "path": "x.gguf"}
    assert "model_sets.study" in fault(study, root)


def test_a_quantized_model_needs_its_source(demo, root):
    demo["model_sets"]["demo"]["moe_q4"]["source"] = "moe_f61"
    assert "model_sets.demo.moe_q4.source: unknown model 'moe_f61'; did you mean" in fault(
        demo, root
    )


def test_a_model_made_from_itself_is_refused(demo, root):
    demo["model_sets"]["demo"]["moe_q4"]["source"] = "moe_q4"
    assert "is made from itself" in fault(demo, root)


def test_a_draft_without_gamma_is_refused(study, root):
    study["suites"]["B"]["gammas"] = []
    assert "suites.B.gammas: a suite with a draft needs at least one γ" in fault(study, root)


def test_a_speculative_suite_without_baseline_is_refused(study, root):
    del study["suites"]["B"]["baseline"]
    assert "suites.B.baseline" in fault(study, root)


def test_a_baseline_that_lacks_a_prompt_is_refused(study, root):
    study["suites"]["P"]["prompts"] = TEXTS[:3]
    assert "suites.B.baseline: suite 'P' has no prompt 'chinese'" in fault(study, root)


def test_a_baseline_that_is_not_measured_is_refused(study, root):
    study["campaign"]["suites"] = ["A", "B"]
    assert "suites.B.baseline: unknown suite of this campaign 'P'" in fault(study, root)


def test_a_prompt_longer_than_the_context_is_refused(study, root):
    study["measurement"]["context"] = 1024
    assert "suites.F.prompt_lengths: 1024 tokens" in fault(study, root)


def test_a_prompt_file_that_is_not_there_is_named(study, root):
    study["prompts"]["texts"]["code"]["file"] = "resources/prompts/cod.txt"
    assert "prompts.texts.code.file: no file 'resources/prompts/cod.txt'" in fault(study, root)


def test_a_value_named_twice_is_refused(study, root):
    study["suites"]["B"]["gammas"] = [4, 4]
    assert "suites.B.gammas: a value is named twice" in fault(study, root)


def test_what_a_campaign_does_not_use_is_left_out_of_its_record(demo, root):
    used = load(demo, root).of_campaign()
    assert list(used.model_sets) == ["demo"]
    assert list(used.engines) == ["current"]


def test_an_unknown_family_is_named_with_the_nearest(study, root):
    study["model_sets"]["study"]["moe_q4"]["family"] = "qwen3.5-35b-a3"
    assert fault(study, root) == (
        "config: model_sets.study.moe_q4.family: unknown family 'qwen3.5-35b-a3';"
        " did you mean 'qwen3.5-35b-a3b'?"
    )


def test_every_part_of_a_split_model_has_its_digest_or_none_has(study, root):
    entry = study["model_sets"]["study"]["moe_q4"]
    entry["file"] = "big-00001-of-00003.gguf"
    entry["sha256"] = ["0" * 64, "1" * 64]
    assert fault(study, root) == "config: model_sets.study.moe_q4: 2 digests for 3 parts"


def test_binaries_without_a_converter_convert_nothing(study, root):
    study["engines"]["current"] = {"source": "path", "path": "/opt/llama.cpp/bin"}
    study["model_sets"]["study"]["moe_q4"] = {"kind": "convert", "repository": "a/b"}
    assert "moe_q4: engine 'current' has no converter; give it" in fault(study, root)


def test_a_quantized_model_has_the_family_of_its_source(study, root):
    study["campaign"]["models"] = "study_types"
    config = load(study, root)
    assert config.family("moe_q4") == config.families["qwen3.5-35b-a3b"]


def test_only_models_that_a_suite_runs_and_their_sources_are_needed(study, root):
    study["campaign"] |= {"models": "study_types", "suites": ["C"]}
    config = load(study, root)
    assert config.measured_models == ["dense_0.8b", "dense_9b", "dense_2b", "dense_4b"]
    assert {*config.needed_models} - {*config.measured_models} == {"2b_bf16", "4b_bf16"}


def with_tools(study):
    """Let suite F be measured by the study's commands with the engine of March."""
    study["suites"]["F"] |= {"protocol": "published", "engine": "march"}
    return study


def test_a_suite_can_be_measured_by_another_protocol_and_engine(study, root):
    config = load(with_tools(study), root)
    assert config.used_engines == ["current", "march"]
    assert (config.protocol_of("F"), config.engine_of("F")) == ("published", "march")
    assert (config.protocol_of("B"), config.engine_of("B")) == ("paired", "current")
    assert list(config.of_campaign().engines) == ["current", "march"]


def test_an_unknown_engine_of_a_suite_is_named(study, root):
    study["suites"]["F"]["engine"] = "marsh"
    assert "suites.F.engine: unknown engine 'marsh'; did you mean 'march'?" in fault(study, root)


def test_protocol_paired_is_measured_by_the_engine_that_is_asked_about_divergences(study, root):
    study["suites"]["F"]["engine"] = "march"
    assert "suites.F.engine: 'march' measures by protocol published alone" in fault(study, root)


def test_a_suite_and_its_baseline_are_measured_the_same_way(study, root):
    with_tools(study)["suites"]["D"]["baseline"] = "F"
    study["suites"]["D"] |= {"protocol": "published"}
    message = fault(study, root)
    assert "suites.D.baseline: suite 'F' is measured by protocol published with engine" in message


def test_a_suite_by_the_studys_commands_needs_a_gamma_too(study, root):
    del with_tools(study)["suites"]["F"]["gammas"]
    assert "suites.F.gammas: a suite with a draft needs at least one γ" in fault(study, root)


def test_a_temperature_without_a_baseline_is_named(study, root):
    study["suites"]["B"]["temperatures"] = [0.0, 0.7]
    assert "suites.B.baseline: suite 'P' has no temperature 0.7" in fault(study, root)


def test_no_model_is_called_itself(study, root):
    study["model_sets"]["study"]["itself"] = study["model_sets"]["study"]["dense_4b"]
    assert "'itself' means the target and names no model" in fault(study, root)


@pytest.mark.parametrize("share", [-0.1, 1.1])
def test_an_imposed_acceptance_is_a_share(study, root, share):
    study["suites"]["B"]["imposed_acceptance"] = [share]
    assert "suites.B.imposed_acceptance.0: Input should be" in fault(study, root)


@pytest.mark.parametrize(
    ("overlay", "suites"), [("demo", "ABCDFPK"), ("mechanism", "BDPKVWGTLQ"), ("true-shape", "VRK")]
)
def test_the_campaigns_on_made_models_have_controls(study, root, overlay, suites):
    data = merge(study, yaml.safe_load((root / f"config/{overlay}.yaml").read_text()))
    config = load(data, root)
    assert config.campaign.suites == list(suites)
    drafts = config.suites["K"].drafts
    assert "itself" in drafts
    assert set(config.audit.unrelated_drafts) & set(drafts)


def test_a_network_is_a_family_or_what_its_files_were_made_from(study, root):
    assert load(study, root).network("moe_q4") == "qwen3.5-35b-a3b"
    study["campaign"]["models"] = "demo"
    small = load(study, root)
    assert {small.network(f"moe_{kind}") for kind in ("q4", "q8", "f16")} == {"moe_f16"}
    assert small.network("dense_4b") != small.network("dense_9b")


def test_a_model_without_a_label_is_called_by_its_files_name_unless_another_has_it(study, root):
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
