"""The demonstration follows from the configuration; a damaged record of it is refused."""

import json

import pytest
import yaml

from specmoe.config.block import History, Side, Stop
from specmoe.config.load import load
from specmoe.config.methods import Method
from specmoe.config.parse import parse
from specmoe.config.trace import Demonstration
from specmoe.config.trace_choice import choose_demonstration
from specmoe.errors import SchemaError
from specmoe.measure.trace_record import Recording, visible

from ...conftest import ROOT, merge
from ..made_recording import recording

USUAL = {"p_min": 0.0, "n_min": 0}  # of a draft model


@pytest.fixture
def methods(study):
    """The configuration of the campaign of all methods."""
    return merge(study, yaml.safe_load((ROOT / "config/methods.yaml").read_text()))


def chosen(data, trace=None) -> Demonstration:
    data["trace"] = trace or {}
    found = choose_demonstration(load(data, ROOT), gpu=False)
    assert found is not None
    return found


def test_the_first_pair_of_the_campaign_is_decoded_unless_another_is_named(synthetic):
    what = chosen(synthetic)
    block = what.block
    assert (block.target, block.draft, block.methods) == ("moe_q4", "draft_0.8b", (Method.DRAFT,))
    labels = (what.target_label, what.draft_label, what.prompt_label)
    assert labels == ("MoE Q4", "0.8B", "Short factual")
    assert [source.file for source in block.prompts] == ["resources/prompts/short_factual.txt"]
    assert (block.n_predict, block.temperature, block.gpu_layers) == (64, 0, 0)
    assert (block.sides, block.passes, block.context) == ((Side(4, **USUAL),), 1, 2048)
    assert what.synthetic
    assert "\n" not in what.to_json()
    assert parse(Demonstration, what.to_json()) == what


def test_the_prompt_is_the_first_that_the_campaign_sends_to_the_pair(synthetic):
    synthetic["suites"]["B"]["prompts"] = ["chinese", "code"]
    prompts = {
        "chinese": {},
        "short_factual": {"target": "dense_9b"},  # suite D sends it the texts of the study
        "code": {"prompt": "code"},
    }
    for prompt, trace in prompts.items():
        assert chosen(synthetic, trace).block.prompts[0].prompt == prompt
    synthetic["campaign"]["suites"] = ["F"]  # it sends no text: the first of all
    assert chosen(synthetic).block.prompts[0].prompt == next(iter(synthetic["prompts"]["texts"]))


def test_a_text_is_sent_as_the_campaign_sends_it(study):
    demo = merge(study, yaml.safe_load((ROOT / "config/demo.yaml").read_text()))
    what = chosen(demo)
    [source] = what.block.prompts
    assert (source.prompt, what.prompt_label) == ("chats-short_factual", "Short factual")
    assert what.block.sends_chats and what.block.stop == Stop.EOS
    assert chosen(demo, {"prompt": "code"}).block.prompts[0].prompt == "chats-code"
    # One that the pair is not sent has no way of being sent.
    what = chosen(demo, {"prompt": "code_to_edit"})
    assert (what.block.prompts[0].prompt, what.block.sends_chats) == ("code_to_edit", False)
    assert what.block.stop == Stop.LENGTH


def test_named_parts_are_taken_and_the_rest_is_the_first_pair_with_them(synthetic):
    asked = {"target": "dense_9b", "gamma": 7, "prompt": "code", "n_predict": 20}
    block = chosen(synthetic, asked).block
    assert (block.target, block.draft) == ("dense_9b", "draft_0.8b")
    assert (block.sides, block.n_predict) == ((Side(7, **USUAL),), 20)
    block = chosen(synthetic, {"draft": "draft_2b"}).block
    assert (block.target, block.draft) == ("moe_q4", "draft_2b")
    # A pair that no suite measures needs both names.
    block = chosen(synthetic, {"target": "dense_2b", "draft": "draft_0.8b"}).block
    assert (block.target, block.draft) == ("dense_2b", "draft_0.8b")


def test_a_method_takes_its_parameters_and_those_by_default(methods):
    what = chosen(methods, {"method": "ngram-mod", "gamma": 8, "n_match": 2})
    block = what.block
    assert (block.target, block.methods) == ("moe_q8", (Method.NGRAM_MOD,))
    assert (block.draft, block.draft_model, what.draft_label) == ("ngram-mod", None, None)
    assert block.sides == (Side(8, n_min=0, n_match=2, history=History.NONE),)
    assert block.block == "trace/moe_q8/ngram-mod/g8-n2"
    assert what.drafted_by == "n-gram pool, γ = 8, n = 2"
    assert chosen(methods, {"method": "ngram-cache"}).side == Side(8, history=History.NONE)


def test_a_method_brings_the_target_and_file_of_its_first_comparison(methods):
    what = chosen(methods, {"method": "eagle3"})
    assert (what.block.target, what.block.draft_model) == ("moe_q8", "eagle3")
    assert (what.block.draft, what.drafted_by) == ("eagle3@eagle3", "EAGLE-3, γ = 4")
    what = chosen(methods, {"target": "full_q8", "method": "dflash", "gamma": 3})
    assert (what.block.draft_model, what.undoes) == ("full_dflash", 3)
    assert what.drafted_by == "DFlash (Full DFlash), γ = 3"
    assert chosen(methods, {"draft": "dspark"}).block.methods == (Method.DSPARK,)


def test_a_chain_is_a_method(methods):
    what = chosen(methods, {"method": ["ngram-mod", "mtp"], "ngram_gamma": 8, "p_min": 0.5})
    assert what.block.methods == (Method.NGRAM_MOD, Method.MTP)
    assert (what.side.gamma, what.side.ngram_gamma, what.side.p_min) == (4, 8, 0.5)
    assert what.drafted_by == "n-gram pool + MTP, γ = 4, n = 3, n-grams to 8, p ≥ 0.5"


def test_a_method_without_a_file_drafts_for_any_campaign(synthetic):
    trace = {"method": "ngram-simple"}
    assert chosen(synthetic, trace).block.target == "moe_q4"
    synthetic["campaign"]["suites"] = ["A"]
    assert chosen(synthetic, trace).block.methods == (Method.NGRAM_SIMPLE,)


def test_a_campaign_without_draft_models_shows_its_first_method(methods):
    methods["campaign"]["suites"] = ["M", "K"]
    methods["suites"]["M"]["methods"] = [{"method": "ngram-map-k", "n_match": [5]}]
    what = chosen(methods)
    assert what.block.methods == (Method.NGRAM_MAP_K,)  # a target's own draft is a control
    assert what.side.n_match == 3
    methods["suites"]["M"]["methods"] = "all"
    assert chosen(methods).block.methods == (Method.NGRAM_SIMPLE,)
    methods["campaign"]["suites"] = ["K"]
    assert chosen(methods).block.draft_model == "moe_q8"


def test_a_campaign_without_drafts_or_of_published_rows_has_nothing_to_decode(study):
    assert not chosen(study).synthetic
    study["campaign"]["suites"] = ["A", "C"]
    assert choose_demonstration(load(study, ROOT), gpu=False) is None
    study["campaign"] |= {"suites": ["A", "B"], "source": "published"}
    assert choose_demonstration(load(study, ROOT), gpu=False) is None


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
    path.write_text(text, encoding="utf-8")
    assert Recording.read(path) == recording()
    path.write_text(json.dumps(json.loads(text) | change) if change else text[:-20])
    with pytest.raises(SchemaError, match=rf"trace\.json is no record .*{message}"):
        Recording.read(path)


def test_words_are_readable_and_harmless():
    words = recording().word
    assert [words(token) for token in (1, 2, 3, 7)] == ["␣one", "two", "↵", "seven"]
    assert [words(token) for token in (4, 5)] == ["⟨4⟩", "⟨5⟩"]  # half a character, no text
    assert words(6) == r"\u001b[31m"
    assert visible("a\u202eb\x9bc 语言") == r"a\u202eb\u009bc␣语言"


def test_the_totals_of_a_record_follow_from_its_rounds():
    made = recording()
    assert made.counts.passes == 9
    assert made.tokens_per_pass == 16 / 9
    assert made.acceptance_rate == 8 / 14
    assert made.common_prefix == len(made.tokens)
