"""Words for the engine and requests at once: what is refused, ids, labels, own comparisons."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from specmoe.config.block import Block, Side
from specmoe.config.matrix import list_timed_passes, suite_blocks
from specmoe.config.methods import Method
from specmoe.config.option_words import (
    EngineArgs,
    Setting,
    options_id,
    options_text,
    parts_of_setting,
    without_concurrency,
)
from specmoe.config.parse import parse
from specmoe.engine.flags import server_command, speculation_flags

KV = ["--cache-type-k", "q8_0", "--cache-type-v", "q8_0"]
MOE = ["--n-cpu-moe", "2"]
ENTRIES = [[], KV, MOE]
KV_ID = "--cache-type-k+q8_0+--cache-type-v+q8_0"
TEXTS = ["", " ".join(KV), "--n-cpu-moe 2"]
POLL = {"measurement": {"engine_args": ["--poll", 0]}}
READER = TypeAdapter(EngineArgs)


def read(*words):
    return READER.validate_python(list(words))


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("--host 127.0.0.1", "the protocol decides it"),
        ("-np 4", "concurrency of a suite decides it"),
        ("--ctx_size 9", "measurement.context decides it"),
        ("--no-repack -ngl 3", "measurement.gpu_layers decides it"),
        ("-md x", "drafts, methods"),
        ("--threads-draft 2", "drafts, methods"),
        ("-lv 5", "the protocol decides it"),
        ("--THREADS 2", "--THREADS is refused: measurement.threads decides it"),
    ],
)
def test_flags_that_other_keys_decide_are_refused_with_the_key(words, says):
    with pytest.raises(ValidationError, match=says):
        read(*words.split())


@pytest.mark.parametrize("word", ["--a\nb", "--a\u2028b", ""])
def test_a_word_can_be_printed(word):
    with pytest.raises(ValidationError, match="is empty, or cannot be printed"):
        read(word)


@pytest.mark.parametrize(
    "words",
    ["", "--numa distribute", "--prio -1", "-C 3", "--no-kv-offload", "--no-warmup --frobnicate"],
)
def test_other_words_are_the_engines_to_judge(words):
    assert read(*words.split()) == words.split()


def test_numbers_are_words_too():
    assert read("--poll", 0, "--rope-freq-scale", 0.5) == [
        "--poll",
        "0",
        "--rope-freq-scale",
        "0.5",
    ]


def test_what_specmoe_sets_itself_is_refused(tmp_path):
    command = server_command(tmp_path, tmp_path, context=1, threads=1, gpu_layers=1)
    for method in Method:
        side = Side(4, 0.5, n_match=3, p_min=0.0, method=method)
        command += speculation_flags(side, tmp_path, 1)
    flags = {word for word in command[1:] if word.startswith("--")} | {"--host"}
    assert len(flags) > 15
    for flag in flags - {"--flash-attn"}:  # which is left out where it is given
        with pytest.raises(ValidationError, match="is refused"):
            read(flag)


@pytest.mark.parametrize(
    "words", [("--override-tensor", "../../x=CPU"), ("--numa", "$(reboot)"), ["--swa-full"] * 20]
)
def test_an_id_is_a_part_of_a_path_and_of_no_shells(words):
    assert options_id(words).startswith("options-")
    assert len(options_id(words)) == len("options-") + 8


@given(
    st.lists(
        st.lists(st.text(min_size=1, max_size=9), max_size=4),
        min_size=2,
        max_size=2,
        unique_by=options_text,
    )
)
def test_other_options_have_another_text_and_another_id(both):
    ids = [options_id(words) for words in both]
    assert ids[0] != ids[1]
    for one in ids:
        assert parts_of_setting(f"moe_q4+{one}" if one else "moe_q4") == ("moe_q4", one)
        assert "/" not in one


def test_words_of_an_entry_follow_those_of_the_campaign():
    one = Setting.of(["--poll", "0"], KV)
    assert (one.args, one.id) == (("--poll", "0", *KV), KV_ID)
    assert (one.label, one.text) == (" ".join(KV), f"--poll 0 {' '.join(KV)}")


def test_each_entry_makes_a_comparison_of_its_own_with_the_target_alone(first):
    blocks = first(engine_args=ENTRIES)
    assert [block.block for block in blocks] == [
        "own/moe_q4/r0",
        f"own/moe_q4+{KV_ID}/r0",
        "own/moe_q4+--n-cpu-moe+2/r0",
    ]
    assert [block.options_text for block in blocks] == TEXTS
    for block in blocks:
        assert [side.name for side in block.sides] == ["alone", "draft_0.8b/g4"]
        assert block.target == "moe_q4"
        assert parse(Block, block.to_json()) == block


def test_options_multiply_with_the_parameters_of_methods(first):
    method = {"method": "draft", "drafts": ["draft_0.8b"], "p_min": [0, 0.5]}
    blocks = first(drafts=[], methods=[method], engine_args=ENTRIES)
    assert [block.options_text for block in blocks] == TEXTS
    for block in blocks:
        settings = [side.setting for side in block.sides]
        assert settings == ["none", "draft_0.8b", "draft_0.8b-p0.5"]


def test_the_campaigns_options_are_in_every_block_and_in_no_id(first):
    plain = [block.block for block in first()]
    given = first(POLL)
    assert [block.block for block in given] == plain
    assert {block.options_text for block in given} == {"--poll 0"}
    [block] = first(engine_args=[MOE])
    assert (block.options_text, block.target_setting) == (
        "--poll 0 --n-cpu-moe 2",
        "moe_q4+--n-cpu-moe+2",
    )


def test_passes_are_timed_by_themselves_without_options_alone(planned):
    config = planned()
    assert list_timed_passes(config, suite_blocks(config, "own"))
    config = planned(engine_args=[MOE])
    assert list_timed_passes(config, suite_blocks(config, "own")) == []


def test_each_number_of_requests_at_once_is_a_comparison_with_the_target_alone(first):
    blocks = first(concurrency=[1, 2], prompts=["code", "chinese"])
    assert [block.block for block in blocks] == [
        f"own/moe_q4+concurrency={number}/r0" for number in (1, 2)
    ]
    assert [block.slots for block in blocks] == [1, 2]
    assert all(block.measures_alone and block.engine_args == () for block in blocks)
    assert all(parse(Block, block.to_json()) == block for block in blocks)
    [block] = first()  # one request after the other
    assert (block.concurrency, block.slots, block.options_id) == (None, 1, "")


def test_labels_name_the_options_and_the_requests_at_once(planned):
    config = planned(engine_args=[[], MOE], concurrency=[2], prompts=["code", "chinese"])
    settings = [block.target_setting for block in suite_blocks(config, "own") if not block.repeat]
    assert settings == ["moe_q4+concurrency=2", "moe_q4+--n-cpu-moe+2+concurrency=2"]
    labels = [config.target_label(setting).partition(", ")[2] for setting in settings]
    assert labels == ["2 at once", "--n-cpu-moe 2, 2 at once"]
    # The setting without the number has a label too, though nothing was measured so.
    alone = [without_concurrency(setting) for setting in settings]
    assert alone == ["moe_q4", "moe_q4+--n-cpu-moe+2"]
    assert config.target_label(alone[1]) == f"{config.label('moe_q4')}, --n-cpu-moe 2"
    assert parts_of_setting(settings[1]) == ("moe_q4", "--n-cpu-moe+2+concurrency=2")
