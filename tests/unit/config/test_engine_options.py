"""The engine's options: their types, their ids, and what they make of a suite's comparisons."""

import itertools
from dataclasses import replace

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from specmoe.config.block import Block
from specmoe.config.engine_options import OPTION_NAMES, EngineOptions
from specmoe.config.load import load
from specmoe.config.matrix import list_blocks, list_timed_passes, suite_blocks
from specmoe.config.option_words import options_id, options_text, parts_of_setting
from specmoe.config.parse import parse
from specmoe.config.schema import Config
from specmoe.config.trace_choice import choose_demonstration
from specmoe.errors import ConfigError

from ...conftest import merge

SUITE = """
Q8:
  {title: Options, targets: [moe_q4], drafts: [draft_0.8b], gammas: [4], prompts: [code],
   engine_options: [{}, {cache-type-k: q8_0, cache-type-v: q8_0, flash-attn: on}, {n-cpu-moe: 2}]}
"""


def read(text):
    return EngineOptions.model_validate(yaml.safe_load(text))


def setting(entry, campaign="{}"):
    return read(campaign).overlaid(read(entry))


@pytest.fixture
def planned(study, root):
    """Load the study with suite Q8, and an overlay of the campaign; it measures Q8 alone."""

    def of(overlay="{}", **suite) -> Config:
        merge(study, {"suites": yaml.safe_load(SUITE), "campaign": {"suites": ["Q8"]}})
        merge(study, {"suites": {"Q8": suite}})
        return load(merge(study, yaml.safe_load(overlay)), root)

    return of


def fault(planned, *args, **suite):
    with pytest.raises(ConfigError) as caught:
        planned(*args, **suite)
    assert "\n" not in str(caught.value)
    return str(caught.value)


# Options by themselves.


@pytest.mark.parametrize(
    ("text", "options"),
    [
        ("{}", {}),
        ("{flash-attn: on, poll: 0}", {"flash-attn": "on", "poll": 0}),
        ("{flash-attn: off}", {"flash-attn": "off"}),
        ("{flash-attn: auto}", {"flash-attn": "auto"}),
        ("{cpu-moe: true, cpu-moe-draft: false}", {"cpu-moe": True}),
        ("{load-mode: mmap+mlock}", {"load-mode": "mmap+mlock"}),
        (r"{override-tensor: 'blk\.[0-9]\.ffn_.*=CPU,out=CPU'}",
         {"override-tensor": r"blk\.[0-9]\.ffn_.*=CPU,out=CPU"}),
    ],
)  # fmt: skip
def test_options_have_the_engines_names_and_values(text, options):
    assert setting(text).options == options


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("{cashe-type-k: q8_0}", "unknown key 'cashe-type-k'; did you mean 'cache-type-k'?"),
        ("{cache_type_k: q8_0}", "unknown key 'cache_type_k'; did you mean 'cache-type-k'?"),
        ("{cache-type-k: q3_0}", "Input should be 'f32', 'f16'"),
        ("{poll: 101}", "less than or equal to 100"),
        ("{n-cpu-moe: -1}", "greater than or equal to 0"),
        ("{n-cpu-moe: two}", "valid integer"),
        ("{ubatch-size: 0}", "greater than 0"),
        ("{override-tensor: exps}", "should match pattern"),
        ("{device-draft: 'CUDA0 --port 1'}", "should match pattern"),
        ('{extra_args: ["--a\\nb"]}', "should match pattern"),
    ],
)
def test_a_wrong_name_or_value_is_refused(text, says):
    with pytest.raises(ValidationError, match=says.replace("?", r"\?")):
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
    assert read("{}").given() == {}


def test_options_are_named_in_ids_labels_and_rows():
    one = setting("{n-cpu-moe: 2, cache-type-v: q8_0, cache-type-k: q8_0, extra_args: [--no-host]}")
    assert one.id == "cache-type-k=q8_0+cache-type-v=q8_0+n-cpu-moe=2+--no-host"
    assert one.label == "KV q8_0, n-cpu-moe 2, --no-host"
    assert one.text == "cache-type-k=q8_0 cache-type-v=q8_0 n-cpu-moe=2 -- --no-host"
    assert setting("{cpu-moe: true, cache-type-k: q8_0}").label == "cache-type-k q8_0, cpu-moe"


@pytest.mark.parametrize(
    "text",
    ["{override-tensor: 'a b;rm -rf /=CPU'}", r"{override-tensor: '../../x=CPU'}",
     "{extra_args: [--numa, '$(reboot)']}", f"{{extra_args: {['--swa-full'] * 20}}}"],
)  # fmt: skip
def test_an_id_is_a_part_of_a_path_and_of_no_shells(text):
    if "a b" in text:
        with pytest.raises(ValidationError):
            read(text)
        return
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


# Further words.


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--host", "::"], "by a socket of its own"),
        (["--port", "80"], "by a socket of its own"),
        (["-np", "4"], "a suite's concurrency"),
        (["--parallel", "4"], "a suite's concurrency"),
        (["--ctx-size", "9"], "measurement.context"),
        (["--ctx_size", "9"], "measurement.context"),
        (["-c", "9"], "measurement.context"),
        (["--metrics"], "counters"),
        (["--no-slots"], "counters"),
        (["--cache-prompt"], "nothing of an earlier one"),
        (["--cache-reuse", "1"], "nothing of an earlier one"),
        (["--model", "x.gguf"], "from the model set"),
        (["-hf", "a/b"], "from the model set"),
        (["--lora", "x"], "from the model set"),
        (["-md", "x"], "what drafts"),
        (["--model-draft", "x"], "what drafts"),
        (["--spec-type", "ngram-mod"], "what drafts"),
        (["--spec-draft-n-max", "9"], "what drafts"),
        (["--log-file", "x"], "reads what each server logs"),
        (["-lv", "5"], "reads what each server logs"),
        (["--api-key", "x"], "have no key"),
        (["--temp", "1"], "each request says how to sample"),
        (["--no-repack", "-ngl", "3"], "measurement.gpu_layers"),
        (["--rpc", "h:1"], "one machine"),
        (["--help"], "something else than generate"),
        (["--embedding"], "something else than generate"),
        (["-ctk", "q8_0"], "give it as 'cache-type-k' instead"),
        (["--threads", "3"], "give it as 'threads' instead"),
        (["--n-cpu-moe=2"], "give it as 'n-cpu-moe' instead"),
        (["distribute", "--numa"], "'distribute' is no flag"),
    ],
)  # fmt: skip
def test_words_that_would_break_a_protocol_are_refused_with_the_reason(words, says):
    with pytest.raises(ValidationError) as caught:
        EngineOptions.model_validate({"extra_args": words})
    assert says in str(caught.value)


@pytest.mark.parametrize(
    "words",
    [[], ["--numa", "distribute"], ["--no-repack"], ["--swa-full"], ["--prio", "2"],
     ["--prio", "-1"], ["--cpu-mask", "0x3"], ["-C", "3"], ["--no-kv-offload"], ["--no-warmup"],
     ["--split-mode", "row"], ["--tensor-split", "3,1"], ["--frobnicate"]],
)  # fmt: skip
def test_other_words_are_the_engines_to_judge(words):
    assert EngineOptions(extra_args=words).extra_args == words


# Suites.


def test_each_entry_makes_a_comparison_of_its_own_with_the_target_alone(planned):
    blocks = suite_blocks(planned(), "Q8")
    assert [block.block for block in blocks if block.repeat == 0] == [
        "Q8/moe_q4/draft_0.8b/r0",
        "Q8/moe_q4+cache-type-k=q8_0+cache-type-v=q8_0+flash-attn=on/draft_0.8b/r0",
        "Q8/moe_q4+n-cpu-moe=2/draft_0.8b/r0",
    ]
    assert [block.options_text for block in blocks if block.repeat == 0] == [
        "", "cache-type-k=q8_0 cache-type-v=q8_0 flash-attn=on", "n-cpu-moe=2"
    ]  # fmt: skip
    for block in blocks:
        assert [side.name for side in block.sides] == ["alone", "g4"]
        assert block.target == "moe_q4"


def test_options_multiply_with_the_parameters_of_methods(planned):
    method = {"method": "draft", "drafts": ["draft_0.8b"], "p_min": [0, 0.5]}
    blocks = suite_blocks(planned(drafts=[], methods=[method]), "Q8")
    found = [
        (block.options_text, block.setting(side))
        for block in blocks
        if block.repeat == 0
        for side in block.sides[1:]
    ]
    texts = ["", "cache-type-k=q8_0 cache-type-v=q8_0 flash-attn=on", "n-cpu-moe=2"]
    assert found == list(itertools.product(texts, ["draft_0.8b", "draft_0.8b-p0.5"]))


def test_the_campaigns_options_are_in_every_block_and_in_no_id(planned, study, root):
    plain = {block.block for block in suite_blocks(planned(engine_options=[]), "Q8")}
    given = planned("{measurement: {engine_options: {poll: 0}}}", engine_options=[])
    assert {block.block for block in suite_blocks(given, "Q8")} == plain
    assert {block.options_text for block in suite_blocks(given, "Q8")} == {"poll=0"}
    both = planned(engine_options=[{"n-cpu-moe": 2}])
    [first, *_] = suite_blocks(both, "Q8")
    assert first.options_text == "n-cpu-moe=2 poll=0"
    assert first.target_setting == "moe_q4+n-cpu-moe=2"


def test_blocks_without_options_are_as_they_were(study, root):
    for block in list_blocks(load(study, root), gpu=False):
        assert (block.engine_options, block.extra_args, block.options_id) == ({}, (), "")
        assert block.target_setting == block.target


def test_a_block_with_its_options_survives_the_command_line(planned):
    for block in suite_blocks(planned(), "Q8"):
        assert parse(Block, block.to_json()) == block


def test_threads_of_an_entry_are_those_of_its_blocks(planned):
    blocks = suite_blocks(planned(engine_options=[{}, {"threads": 3}]), "Q8")
    assert {block.options_id: block.threads for block in blocks} == {"": 0, "threads=3": 3}


def test_passes_are_timed_by_themselves_without_options_alone(planned):
    config = planned()
    assert list_timed_passes(config, suite_blocks(config, "Q8"))
    config = planned(engine_options=[{"n-cpu-moe": 2}])
    assert list_timed_passes(config, suite_blocks(config, "Q8")) == []


def test_the_demonstration_has_the_campaigns_own_options(planned):
    overlay = "{measurement: {engine_options: {poll: 0}}}"
    config = planned(overlay, engine_options=[{"n-cpu-moe": 2, "threads": 3}])
    block = choose_demonstration(config, gpu=False).block
    assert (block.options_text, block.options_id, block.threads) == ("poll=0", "", 0)


def test_labels_name_the_options(planned):
    config = planned()
    labels = [config.target_label(block.target_setting) for block in suite_blocks(config, "Q8")]
    plain = config.label("moe_q4")
    assert list(dict.fromkeys(labels)) == [
        plain, f"{plain}, KV q8_0, flash-attn on", f"{plain}, n-cpu-moe 2"
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("overlay", "suite", "says"),
    [
        ("{}", {"engine_options": [{}, {"cpu-moe": False}]}, "two entries are the same"),
        ("{measurement: {engine_options: {poll: 0}}}", {"engine_options": [{}, {"poll": 0}]},
         "two entries are the same"),
        ("{}", {"protocol": "published", "engine_options": [{"poll": 0}]},
         "protocol published takes no options"),
        ("{measurement: {engine_options: {poll: 0}}}",
         {"protocol": "published", "engine_options": []}, "protocol published takes no options"),
        ("{}", {"drafts": [], "methods": [{"method": "ngram-simple"}],
                "engine_options": [{"threads-draft": 1}]}, "threads-draft is of a draft"),
        ("{}", {"engine_options": [{"poll": 0}, {"pol": 1}]},
         "suites.Q8.engine_options.1: unknown key 'pol'; did you mean 'poll'?"),
        ("{measurement: {engine_options: {poll: 101}}}", {},
         "measurement.engine_options.poll: Input should be less than or equal to 100"),
        ("{measurement: {engine_options: {extra_args: [--port, 80]}}}", {},
         "measurement.engine_options.extra_args: --port is refused: the workflow reaches"),
    ],
)  # fmt: skip
def test_options_that_fit_nothing_are_refused_in_one_line(planned, overlay, suite, says):
    assert says in fault(planned, overlay, **suite)
