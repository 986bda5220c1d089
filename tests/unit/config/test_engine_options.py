"""Options of the engine and requests at once: types, ids, labels and comparisons of their own."""

from dataclasses import replace

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from specmoe.config.block import Block
from specmoe.config.engine_options import OPTION_NAMES, EngineOptions
from specmoe.config.matrix import list_timed_passes, suite_blocks
from specmoe.config.option_words import (
    options_id,
    options_text,
    parts_of_setting,
    without_concurrency,
)
from specmoe.config.parse import parse

KV = {"cache-type-k": "q8_0", "cache-type-v": "q8_0", "flash-attn": "on"}
OPTIONS = [{}, KV, {"n-cpu-moe": 2}]
KV_ID = "cache-type-k=q8_0+cache-type-v=q8_0+flash-attn=on"
TEXTS = ["", KV_ID.replace("+", " "), "n-cpu-moe=2"]
POLL = {"measurement": {"engine_options": {"poll": 0}}}


def read(text):
    return EngineOptions.model_validate(yaml.safe_load(text))


def setting(entry, campaign="{}"):
    return read(campaign).overlaid(read(entry))


@pytest.mark.parametrize(
    ("text", "options"),
    [
        ("{flash-attn: on, poll: 0}", {"flash-attn": "on", "poll": 0}),
        ("{flash-attn: off}", {"flash-attn": "off"}),
        ("{cpu-moe: true, cpu-moe-draft: false}", {"cpu-moe": True}),
        ("{load-mode: mmap+mlock}", {"load-mode": "mmap+mlock"}),
        (r"{override-tensor: 'blk\.[0-9]=CPU,out=CPU'}",
         {"override-tensor": r"blk\.[0-9]=CPU,out=CPU"}),
    ],
)  # fmt: skip
def test_options_have_the_engines_names_and_values(text, options):
    assert setting(text).options == options


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("{cashe-type-k: q8_0}", "unknown key 'cashe-type-k'; did you mean 'cache-type-k'"),
        ("{cache_type_k: q8_0}", "unknown key 'cache_type_k'; did you mean 'cache-type-k'"),
        ("{cache-type-k: q3_0}", "Input should be 'f32', 'f16'"),
        ("{poll: 101}", "less than or equal to 100"),
        ("{override-tensor: exps}", "should match pattern"),
        ("{override-tensor: 'a b;rm -rf /=CPU'}", "should match pattern"),
        ("{device-draft: 'CUDA0 --port 1'}", "should match pattern"),
        ('{extra_args: ["--a\\nb"]}', "is empty, or cannot be printed"),
        ('{extra_args: ["--a\\u2028b"]}', "is empty, or cannot be printed"),
        ("{extra_args: [--PARALLEL, 4]}", "--PARALLEL is refused: a suite's concurrency"),
        ("{extra_args: [--chat-template, chatml]}", "--chat-template is refused: models come"),
    ],
)
def test_a_wrong_name_or_value_is_refused(text, says):
    with pytest.raises(ValidationError, match=says):
        read(text)


def test_an_entry_goes_before_the_campaign_and_takes_its_values_back():
    own = "{poll: 0, cache-type-k: q8_0, extra_args: [--no-repack]}"
    assert setting("{}", own) == replace(setting(own), id="", label="")
    assert setting("{cache-type-k: f16}", own).options == {"poll": 0, "cache-type-k": "f16"}
    back = setting("{cache-type-k: null, extra_args: []}", own)
    assert (back.options, back.extra_args) == ({"poll": 0}, ())
    assert back.id == "cache-type-k=default"


def test_what_was_given_survives_the_recorded_configuration():
    given = read("{cache-type-k: null, poll: 3, extra_args: [--prio, 2]}")
    assert EngineOptions.model_validate_json(given.model_dump_json()) == given
    assert given.given() == {"cache-type-k": None, "poll": 3, "extra_args": ["--prio", "2"]}


def test_options_are_named_in_ids_labels_and_rows():
    one = setting("{n-cpu-moe: 2, cache-type-v: q8_0, cache-type-k: q8_0, extra_args: [--no-host]}")
    assert one.id == "cache-type-k=q8_0+cache-type-v=q8_0+n-cpu-moe=2+--no-host"
    assert one.label == "KV q8_0, n-cpu-moe 2, --no-host"
    assert one.text == "cache-type-k=q8_0 cache-type-v=q8_0 n-cpu-moe=2 -- --no-host"
    assert setting("{cpu-moe: true, cache-type-k: q8_0}").label == "cache-type-k q8_0, cpu-moe"


@pytest.mark.parametrize(
    "text",
    [
        r"{override-tensor: '../../x=CPU'}",
        "{extra_args: [--numa, '$(reboot)']}",
        f"{{extra_args: {['--swa-full'] * 20}}}",
    ],
)
def test_an_id_is_a_part_of_a_path_and_of_no_shells(text):
    assert setting(text).id.startswith("options-")
    assert len(setting(text).id) == len("options-") + 8


@given(
    st.lists(
        st.dictionaries(
            st.sampled_from(OPTION_NAMES), st.one_of(st.integers(0, 9), st.text(max_size=9))
        ),
        min_size=2,
        max_size=2,
        unique_by=lambda options: options_text(options, ()),
    )
)
def test_other_options_have_another_text_and_another_id(both):
    ids = [options_id(options, ()) for options in both]
    assert ids[0] != ids[1]
    for one in ids:
        assert parts_of_setting(f"moe_q4+{one}" if one else "moe_q4") == ("moe_q4", one)
        assert "/" not in one


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("--port 80", "by a socket of its own"),
        ("-np 4", "a suite's concurrency"),
        ("--ctx_size 9", "measurement.context"),
        ("--no-slots", "counters"),
        ("--cache-reuse 1", "nothing of an earlier one"),
        ("-hf a/b", "from the model set"),
        ("-md x", "what drafts"),
        ("--model-draft x", "what drafts"),
        ("--spec-draft-n-max 9", "what drafts"),
        ("-lv 5", "reads what each server logs"),
        ("--api-key x", "have no key"),
        ("--temp 1", "each request says how to sample"),
        ("--no-repack -ngl 3", "measurement.gpu_layers"),
        ("--rpc h:1", "one machine"),
        ("--embedding", "something else than generate"),
        ("-ctk q8_0", "give it as 'cache-type-k' instead"),
        ("--n-cpu-moe=2", "give it as 'n-cpu-moe' instead"),
        ("distribute --numa", "'distribute' is no flag"),
    ],
)
def test_words_that_would_break_a_protocol_are_refused_with_the_reason(words, says):
    with pytest.raises(ValidationError, match=says):
        EngineOptions(extra_args=words.split())


@pytest.mark.parametrize(
    "words",
    ["", "--numa distribute", "--prio -1", "-C 3", "--no-kv-offload", "--no-warmup --frobnicate"],
)
def test_other_words_are_the_engines_to_judge(words):
    assert EngineOptions(extra_args=words.split()).extra_args == words.split()


def test_each_entry_makes_a_comparison_of_its_own_with_the_target_alone(first):
    blocks = first(engine_options=OPTIONS)
    assert [block.block for block in blocks] == [
        "own/moe_q4/draft_0.8b/r0",
        f"own/moe_q4+{KV_ID}/draft_0.8b/r0",
        "own/moe_q4+n-cpu-moe=2/draft_0.8b/r0",
    ]
    assert [block.options_text for block in blocks] == TEXTS
    for block in blocks:
        assert [side.name for side in block.sides] == ["alone", "g4"]
        assert block.target == "moe_q4"
        assert parse(Block, block.to_json()) == block


def test_options_multiply_with_the_parameters_of_methods(first):
    method = {"method": "draft", "drafts": ["draft_0.8b"], "p_min": [0, 0.5]}
    blocks = first(drafts=[], methods=[method], engine_options=OPTIONS)
    assert [block.options_text for block in blocks] == TEXTS
    for block in blocks:
        settings = [block.setting(side) for side in block.sides]
        assert settings == ["none", "draft_0.8b", "draft_0.8b-p0.5"]


def test_the_campaigns_options_are_in_every_block_and_in_no_id(first):
    plain = [block.block for block in first()]
    given = first(POLL)
    assert [block.block for block in given] == plain
    assert {block.options_text for block in given} == {"poll=0"}
    [block] = first(engine_options=[{"n-cpu-moe": 2}])
    assert (block.options_text, block.target_setting) == (
        "n-cpu-moe=2 poll=0",
        "moe_q4+n-cpu-moe=2",
    )


def test_threads_of_an_entry_are_those_of_its_blocks(first):
    blocks = first(engine_options=[{}, {"threads": 3}])
    assert {block.options_id: block.threads for block in blocks} == {"": 0, "threads=3": 3}


def test_passes_are_timed_by_themselves_without_options_alone(planned):
    config = planned()
    assert list_timed_passes(config, suite_blocks(config, "own"))
    config = planned(engine_options=[{"n-cpu-moe": 2}])
    assert list_timed_passes(config, suite_blocks(config, "own")) == []


def test_each_number_of_requests_at_once_is_a_comparison_with_the_target_alone(first):
    blocks = first(concurrency=[1, 2], prompts=["code", "chinese"])
    assert [block.block for block in blocks] == [
        f"own/moe_q4+concurrency={number}/draft_0.8b/r0" for number in (1, 2)
    ]
    assert [block.slots for block in blocks] == [1, 2]
    assert all(block.measures_alone and block.engine_options == {} for block in blocks)
    assert all(parse(Block, block.to_json()) == block for block in blocks)
    [block] = first()  # one request after the other
    assert (block.concurrency, block.slots, block.options_id) == (None, 1, "")


def test_labels_name_the_options_and_the_requests_at_once(planned):
    config = planned(
        engine_options=[{}, {"n-cpu-moe": 2}], concurrency=[2], prompts=["code", "chinese"]
    )
    settings = [block.target_setting for block in suite_blocks(config, "own") if not block.repeat]
    assert settings == ["moe_q4+concurrency=2", "moe_q4+n-cpu-moe=2+concurrency=2"]
    labels = [config.target_label(setting).partition(", ")[2] for setting in settings]
    assert labels == ["2 at once", "n-cpu-moe 2, 2 at once"]
    # The setting without the number has a label too, though nothing was measured so.
    alone = [without_concurrency(setting) for setting in settings]
    assert alone == ["moe_q4", "moe_q4+n-cpu-moe=2"]
    assert config.target_label(alone[1]) == f"{config.label('moe_q4')}, n-cpu-moe 2"
    assert parts_of_setting(settings[1]) == ("moe_q4", "n-cpu-moe=2+concurrency=2")
