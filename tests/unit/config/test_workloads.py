"""Workloads: prompts are read from files with ids and categories, sampled, and sent by suites."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from specmoe.config.block import Sending, Stop, Template
from specmoe.config.load import load
from specmoe.config.matrix import list_blocks
from specmoe.config.workloads import read_chat, text_of_prompt
from specmoe.errors import ConfigError

from ...conftest import ROOT, merge
from .test_matrix import blocks_of
from .test_refused import fault

CHATS = Sending(Template.CHAT)
DATA_SETS = yaml.safe_load((ROOT / "tests/unit/config/data_sets.yaml").read_text("utf-8"))
LINES = [
    {"prompt": "a", "category": "code"},
    {"prompt": "b", "category": "prose", "id": "own"},
    {"messages": [{"role": "user", "content": "c"}]},
]

# An agent's chat, with a call of two tools, and an answer that nobody sends.
ROLES = ("user", "assistant", "tool", "tool", "assistant", "user", "assistant")
AGENT = [{"role": role, "content": f"{place}"} for place, role in enumerate(ROLES)]


def sent(file, line, sending=CHATS, turn=None):
    """Return what is sent of a line: messages, or the text of a single one."""
    messages = read_chat(Path(file), line, sending, turn)["messages"]
    return messages if messages[1:] else messages[0]["content"]


@pytest.fixture
def asked(synthetic, tmp_path):
    """Return the synthetic configuration with a suite that sends a file of these lines."""

    def configure(lines=LINES, suite=(), name="asked.jsonl", **more):
        file = tmp_path / name
        text = lines if isinstance(lines, str) else "".join(json.dumps(one) + "\n" for one in lines)
        file.write_text(text, encoding="utf-8")
        asked = {"kind": "file", "file": str(file), "template": "chat"}
        synthetic["workloads"] = {"asked": asked | more}
        synthetic["campaign"]["suites"] = ["W"]
        synthetic["measurement"]["block_prompts"] = 9
        pair = {"targets": ["random-moe-122m-q4"], "drafts": ["random-8m-q8"], "gammas": [4]}
        synthetic["suites"]["W"] = {"title": "W", "workloads": ["asked"]} | pair | dict(suite)
        return synthetic

    return configure


def test_every_line_is_a_prompt_with_an_id_and_a_category(asked, tmp_path):
    block, *_ = blocks_of(asked())
    found = [(one.prompt, one.line, one.category, one.workload) for one in block.prompts]
    assert found == [
        ("asked-1", 1, "code", "asked"),
        ("asked-own", 2, "prose", "asked"),
        ("asked-3", 3, None, "asked"),
    ]
    assert {one.file for one in block.prompts} == {str(tmp_path / "asked.jsonl")}
    assert block.sendings == {"asked": Sending(Template.CHAT)}
    assert block.sends_chats
    assert not replace(block, engine_args=("--chat_template", "chatml")).sends_chats
    # A job reads the same prompts again.
    file = tmp_path / "asked.jsonl"
    assert [sent(file, line) for line in (1, 2, 3)] == ["a", "b", "c"]
    with pytest.raises(ConfigError, match=r"asked\.jsonl, line 4: the prompt is gone"):
        sent(file, 4)


def test_a_text_file_has_a_prompt_a_line_and_is_read_once_by_a_process(asked):
    block, *_ = blocks_of(asked("first\n\n  second {x} \n", name="asked.txt", template="raw"))
    assert [one.prompt for one in block.prompts] == ["asked-1", "asked-3"]
    file = Path(block.prompts[1].file)
    assert sent(file, 3) == "  second {x} "
    whole = text_of_prompt(file, None)
    file.write_text("another text")  # what is sent is what was asked for
    assert sent(file, 1) == "first"
    assert text_of_prompt(file, None) == whole


@pytest.mark.parametrize("data_set", DATA_SETS["read"])
def test_data_sets_that_people_have_are_read(asked, data_set):
    (suffix, columns, due, several, chats), text = DATA_SETS["read"][data_set]
    config = load(asked(text, name=f"a{suffix}", columns=columns), ROOT)
    block, *_ = list_blocks(config, gpu=False)
    found = {
        source.prompt: sent(source.file, source.line, block.sending_of(source))
        for source in block.prompts
    }
    assert found == {f"asked-{name}": content for name, content in due.items()}
    parts = [one.sent for one in config.workloads["asked"].prompts]
    assert (parts.count("first turn"), parts.count("chat")) == (several, chats)


def test_chats_are_sent_turn_by_turn_in_blocks_of_their_own(asked):
    lines = [{"messages": AGENT, "category": "code"}, {"messages": AGENT[5:6]}]
    first, other = (one for one in blocks_of(asked(lines, turns=True)) if not one.repeat)
    found = [(one.prompt, one.turn, one.level, one.category) for one in first.prompts]
    levels = enumerate(["first", "later", "later"], 1)
    assert found == [(f"asked-1-t{turn}", turn, level, "code") for turn, level in levels]
    assert [one.prompt for one in other.prompts] == ["asked-2-t1"]
    assert [one.block.split("/")[2] for one in (first, other)] == ["asked-1+2", "asked-2"]
    assert sent(first.prompts[0].file, 1, turn=1) == "0"
    assert [sent(one.file, 1, turn=one.turn) for one in first.prompts[1:]] == [AGENT[:4], AGENT[:6]]


def test_texts_that_ship_can_be_sent_as_chats(asked):
    data = asked()
    texts = ["code", "chinese"]
    data["workloads"] = {"asked": {"kind": "texts", "texts": texts, "template": "chat"}}
    block, *_ = blocks_of(data)
    found = [(one.prompt, one.file, one.line) for one in block.prompts]
    assert found == [(f"asked-{one}", f"resources/prompts/{one}.txt", None) for one in texts]


def test_what_a_workload_says_of_its_end_replaces_what_the_measurement_says(asked):
    assert blocks_of(asked())[0].stop == Stop.LENGTH
    assert blocks_of(asked(stop="eos"))[0].stop == Stop.EOS
    everywhere = asked()
    everywhere["measurement"]["stop"] = "eos"
    assert blocks_of(everywhere)[0].stop == Stop.EOS


def test_a_recorded_configuration_has_its_prompts_without_the_file(asked, tmp_path):
    data = asked()
    recorded = load(data, ROOT).of_campaign().model_dump(mode="json", exclude_unset=True)
    (tmp_path / "asked.jsonl").unlink()
    cached = merge(data, {"workloads": recorded["workloads"], "campaign": {"source": "shipped"}})
    sent = [one.prompt for one in blocks_of(cached)[0].prompts]
    assert sent == ["asked-1", "asked-own", "asked-3"]


def test_equal_prompts_are_one_and_what_is_not_sent_is_named(asked):
    tools = [{"type": "function"}]
    lines = [
        {"prompt": "a", "temperature": 0, "max_tokens": 9, "stop": ["x"], "answer": "b"},
        {"prompt": "a", "tools": tools, "temperature": 1},
        *({"prompt": "a", "id": number} for number in "xy"),
        {"prompt": "b", "tools": [], "chat_template_kwargs": {"k": 1}},
    ]
    config = load(asked(lines, thinking=False), ROOT)
    prompts = config.workloads["asked"].prompts
    # The second tells the template more.
    found = [(one.id, one.repeated, one.not_sent) for one in prompts]
    first, second = ("1", 2, ["max_tokens", "stop"]), ("2", None, ["temperature"])
    assert found == [first, second, ("5", None, None)]
    block, *_ = list_blocks(config, gpu=False)
    told = [read_chat(Path(one.file), one.line, block.sending_of(one)) for one in block.prompts]
    thinking = {"enable_thinking": False}
    assert told == [
        {"messages": [{"role": "user", "content": "a"}], "chat_template_kwargs": thinking},
        told[0] | {"tools": tools},
        {
            "messages": [{"role": "user", "content": "b"}],
            "chat_template_kwargs": {"k": 1} | thinking,
        },
    ]
    varied = blocks_of(asked(thinking=True, suite={"vary": {"thinking": [True, False]}}))
    told = {(block.level, block.sendings["asked"].thinking) for block in varied}
    assert told == {("on", True), ("off", False)}
    raw = load(asked(lines, template="raw"), ROOT).workloads["asked"].prompts
    assert [one.not_sent for one in raw][1:] == [["chat_template_kwargs"]]


@pytest.mark.parametrize(("suffix", "text", "said"), DATA_SETS["refused"])
def test_a_file_of_another_layout_is_refused_with_the_way_out(asked, suffix, text, said):
    *_, message = fault(asked(text, name=f"a{suffix}")).splitlines()
    assert f"a{suffix}" in message
    assert said in message


@pytest.mark.parametrize(
    ("workload", "said"),
    [
        ({"template": "raw"}, "line 3: 'messages' is a chat, which needs the workload's key"),
        ({"sample": 4}, "has 3 prompts, and its workload wants 4"),
        ({"file": "no.jsonl"}, "no.jsonl; correct its path"),
        ({"turns": True}, "has no chat of several turns, and its workload `turns: true`"),
        ({"turns": True, "lines": [{"messages": AGENT[:1] + AGENT}]}, "message 1 has no answer"),
        ({"turns": True, "lines": [{"prompt": ["a", "b"]}]}, "'prompt' has turns without answers"),
    ],
)
def test_a_file_without_what_is_to_be_sent_is_refused(asked, workload, said):
    assert said in fault(asked(**workload))


def test_a_sample_is_spread_evenly_over_the_file(asked):
    block, *_ = blocks_of(asked([{"prompt": f"{n}"} for n in range(10)], sample=4))
    assert [one.prompt for one in block.prompts] == [f"asked-{n}" for n in (1, 3, 6, 8)]
