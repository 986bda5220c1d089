"""The demonstration follows from the configuration; a damaged record of it is refused."""

import json

import pytest
import yaml

from specmoe.config.block import History, Side
from specmoe.config.load import load
from specmoe.config.methods import Method
from specmoe.config.parse import parse
from specmoe.config.trace import Demonstration
from specmoe.config.trace_choice import choose_demonstration
from specmoe.errors import SchemaError
from specmoe.measure.trace_record import Recording, visible

from ...conftest import merge
from ..made_recording import recording
from .test_load import fault


@pytest.fixture
def methods(study, root):
    """The configuration of the campaign of all methods."""
    return merge(study, yaml.safe_load((root / "config/methods.yaml").read_text()))


def chosen(data, root) -> Demonstration:
    found = choose_demonstration(load(data, root), gpu=False)
    assert found is not None
    return found


def test_the_first_pair_of_the_campaign_is_decoded_unless_another_is_named(synthetic, root):
    what = chosen(synthetic, root)
    block = what.block
    assert (block.target, block.draft, what.side.gamma) == ("moe_q4", "draft_0.8b", 4)
    assert (what.target_label, what.draft_label, what.prompt_label) == (
        ("MoE Q4", "0.8B", "Short factual")
    )
    assert [source.file for source in block.prompts] == ["resources/prompts/short_factual.txt"]
    assert (block.n_predict, block.temperature, block.methods) == (64, 0, (Method.DRAFT,))
    assert (block.sides, block.passes, block.context) == ((Side(4, p_min=0.0, n_min=0),), 1, 2048)
    assert block.gpu_layers == 0
    assert what.synthetic


def test_the_prompt_is_the_first_that_the_campaign_sends_to_the_pair(synthetic, root):
    synthetic["suites"]["B"]["prompts"] = ["chinese", "code"]
    assert chosen(synthetic, root).block.prompts[0].prompt == "chinese"
    synthetic["trace"] = {"target": "dense_9b"}  # suite D sends it the texts of the study
    assert chosen(synthetic, root).block.prompts[0].prompt == "short_factual"
    synthetic["trace"] = {"prompt": "code"}
    assert chosen(synthetic, root).prompt_label == "Code"


def test_a_pair_that_gets_no_text_decodes_the_first_of_all(synthetic, root):
    synthetic["campaign"]["suites"] = ["F"]
    assert chosen(synthetic, root).block.prompts[0].prompt == next(
        iter(synthetic["prompts"]["texts"])
    )


def test_named_parts_are_taken_and_the_rest_is_the_first_pair_with_them(synthetic, root):
    synthetic["trace"] = {"target": "dense_9b", "gamma": 7, "prompt": "code", "n_predict": 20}
    block = chosen(synthetic, root).block
    assert (block.target, block.draft, block.sides) == (
        "dense_9b",
        "draft_0.8b",
        (Side(7, p_min=0.0, n_min=0),),
    )
    assert (block.prompts[0].prompt, block.n_predict) == ("code", 20)
    synthetic["trace"] = {"draft": "draft_2b"}
    block = chosen(synthetic, root).block
    assert (block.target, block.draft) == ("moe_q4", "draft_2b")


def test_a_pair_that_no_suite_measures_needs_both_names(synthetic, root):
    synthetic["trace"] = {"target": "dense_2b"}
    assert fault(synthetic, root) == (
        "config: trace: no suite of this campaign pairs 'dense_2b'; name both trace.target and"
        " trace.draft"
    )
    synthetic["trace"]["draft"] = "draft_0.8b"
    assert chosen(synthetic, root).block.target == "dense_2b"


def test_a_method_takes_its_parameters_and_those_by_default(methods, root):
    methods["trace"] = {"method": "ngram-mod", "gamma": 8, "n_match": 2}
    what = chosen(methods, root)
    block = what.block
    assert (block.target, block.methods) == ("moe_q8", (Method.NGRAM_MOD,))
    assert (block.draft, block.draft_model, what.draft_label) == ("ngram-mod", None, None)
    assert block.sides == (Side(8, n_min=0, n_match=2, history=History.NONE),)
    assert block.block == "trace/moe_q8/ngram-mod/g8-n2"
    assert what.drafted_by == "n-gram pool, γ = 8, n = 2"
    methods["trace"] = {"method": "ngram-cache"}
    assert chosen(methods, root).side == Side(8, history=History.NONE)


def test_a_method_brings_the_target_and_file_of_its_first_comparison(methods, root):
    methods["trace"] = {"method": "eagle3"}
    what = chosen(methods, root)
    assert (what.block.target, what.block.draft_model) == ("moe_q8", "eagle3")
    assert what.block.draft == "eagle3@eagle3"
    assert what.drafted_by == "EAGLE-3, γ = 4"
    methods["trace"] = {"target": "full_q8", "method": "dflash", "gamma": 3}
    what = chosen(methods, root)
    assert what.block.draft_model == "full_dflash"
    assert what.drafted_by == "DFlash (Full DFlash), γ = 3"
    methods["trace"] = {"draft": "dspark"}
    assert chosen(methods, root).block.methods == (Method.DSPARK,)


def test_a_chain_is_a_method(methods, root):
    methods["trace"] = {"method": ["ngram-mod", "mtp"], "ngram_gamma": 8, "p_min": 0.5}
    what = chosen(methods, root)
    assert what.block.methods == (Method.NGRAM_MOD, Method.MTP)
    assert (what.side.gamma, what.side.ngram_gamma, what.side.p_min) == (4, 8, 0.5)
    assert what.drafted_by == "n-gram pool + MTP, γ = 4, n = 3, n-grams to 8, p ≥ 0.5"


def test_a_method_without_a_file_drafts_for_any_campaign(synthetic, root):
    synthetic["trace"] = {"method": "ngram-simple"}
    assert chosen(synthetic, root).block.target == "moe_q4"
    synthetic["campaign"]["suites"] = ["A"]
    assert chosen(synthetic, root).block.methods == (Method.NGRAM_SIMPLE,)


def test_a_campaign_without_draft_models_shows_its_first_method(methods, root):
    methods["campaign"]["suites"] = ["M", "K"]
    methods["suites"]["M"]["methods"] = [
        {"method": "ngram-map-k", "n_match": [5]},
        {"method": "mtp"},
    ]
    what = chosen(methods, root)
    assert what.block.methods == (Method.NGRAM_MAP_K,)  # a target's own draft is a control
    assert what.side.n_match == 3
    methods["suites"]["M"]["methods"] = "all"
    assert chosen(methods, root).block.methods == (Method.NGRAM_SIMPLE,)
    methods["campaign"]["suites"] = ["K"]
    assert chosen(methods, root).block.draft_model == "moe_q8"


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        (
            {"method": "ngram-mod", "p_min": 0.5},
            "trace.p_min: ngram-mod ignores it; it heeds gamma, n_match, n_min",
        ),
        (
            {"method": "ngram-cache", "gamma": 4},
            "trace.gamma: ngram-cache ignores it; it heeds none",
        ),
        ({"ngram_gamma": 4}, "trace.ngram_gamma: draft ignores it; it heeds gamma, n_min, p_min"),
        (
            {"target": "moe_q8", "method": "ngram-mod", "draft": "draft_q8"},
            "trace.draft: ngram-mod loads no file",
        ),
        (
            {"method": ["mtp", "ngram-mod"]},
            "trace.method: n-gram methods come first in a chain: put mtp last",
        ),
        ({"method": "ngram-simple", "gamma": 2}, "trace: ngram-simple: with n_match 3 and γ 2 it"),
        ({"method": "medusa"}, "trace.method.0: Input should be 'draft', 'mtp'"),
        (
            {"method": ["ngram-mod", "eagle3"]},
            "trace: no suite of this campaign drafts by ngram-mod+eagle3; name both trace.target",
        ),
    ],
)
def test_a_method_that_does_not_fit_is_refused_in_one_line(methods, root, asked, message):
    methods["trace"] = asked
    assert f"config: {message}" in fault(methods, root)


def test_a_campaign_without_drafts_or_of_published_rows_has_nothing_to_decode(study, root):
    study["campaign"]["suites"] = ["A", "C"]
    assert choose_demonstration(load(study, root), gpu=False) is None
    study["campaign"] |= {"suites": ["A", "B"], "source": "published"}
    assert choose_demonstration(load(study, root), gpu=False) is None
    study["trace"] = {"target": "moe_q4"}
    assert "a published campaign has rows and no models" in fault(study, root)


def test_real_models_are_not_called_synthetic(study, root):
    assert not chosen(study, root).synthetic


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"target": "moe_q44"}, "trace.target: unknown model 'moe_q44'; did you mean 'moe_q4'?"),
        ({"draft": "draft_08b"}, "trace.draft: unknown model 'draft_08b'; did you mean"),
        ({"prompt": "cod"}, "trace.prompt: unknown prompt 'cod'; did you mean 'code'?"),
        ({"gama": 4}, "trace: unknown key 'gama'; did you mean 'gamma'?"),
        ({"gamma": 0}, "trace.gamma: "),
        ({"n_predict": 2}, "trace.n_predict: "),
    ],
)
def test_a_wrong_name_or_value_is_reported_with_its_place(synthetic, root, asked, message):
    synthetic["trace"] = asked
    assert f"config: {message}" in fault(synthetic, root)


def test_the_choice_survives_a_round_trip_as_json(synthetic, root):
    what = chosen(synthetic, root)
    assert "\n" not in what.to_json()
    assert parse(Demonstration, what.to_json()) == what


def test_a_record_survives_a_round_trip(tmp_path):
    path = tmp_path / "trace.json"
    path.write_text(recording().to_json(), encoding="utf-8")
    assert Recording.read(path) == recording()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"version": 1}, " version 4: version: "),
        ({"rounds": 3}, " version 4: rounds: "),
        ({"tokens": None}, " version 4: tokens: "),
        (None, "decoding"),  # damaged
    ],
)
def test_a_damaged_record_or_one_of_another_version_is_refused(tmp_path, change, message):
    path, text = tmp_path / "trace.json", recording().to_json()
    path.write_text(json.dumps(json.loads(text) | change) if change else text[:-20])
    with pytest.raises(SchemaError, match=rf"trace\.json is no record .*{message}"):
        Recording.read(path)


def test_words_are_readable_and_harmless():
    words = recording().word
    assert [words(token) for token in (1, 2, 3, 7)] == ["␣one", "two", "↵", "seven"]
    assert words(4) == "⟨4⟩"  # half a character
    assert words(5) == "⟨5⟩"  # no text
    assert words(6) == r"\u001b[31m"
    assert visible("a\u202eb\x9bc 语言") == r"a\u202eb\u009bc␣语言"


def test_the_totals_of_a_record_follow_from_its_rounds():
    made = recording()
    assert made.counts.passes == 9
    assert made.tokens_per_pass == 16 / 9
    assert made.acceptance_rate == 8 / 14
    assert made.common_prefix == len(made.tokens)
