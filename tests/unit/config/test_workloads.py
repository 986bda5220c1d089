"""Workloads: prompts are read from files with ids and categories, sampled, and sent by suites."""

import json
from pathlib import Path

import pytest

from specmoe.config.block import Sending, Stop, Template
from specmoe.config.load import load
from specmoe.config.matrix import list_blocks
from specmoe.config.workloads import content_of, read_content
from specmoe.errors import ConfigError

from ...conftest import ROOT, merge
from .test_refused import fault

CHATS = Sending(Template.CHAT)
CHAT = [{"role": "user", "content": "c"}]
LINES = [
    {"prompt": "a", "category": "code"},
    {"prompt": "b", "category": "prose", "id": "own"},
    {"messages": CHAT},
]


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
        pair = {"targets": ["random-moe-122m-q4"], "drafts": ["random-8m-q8"], "gammas": [4]}
        synthetic["suites"]["W"] = {"title": "W", "workloads": ["asked"]} | pair | dict(suite)
        return synthetic

    return configure


def blocks_of(data):
    return list_blocks(load(data, ROOT), gpu=False)


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
    # A job reads the same prompts again.
    file = tmp_path / "asked.jsonl"
    assert [read_content(file, line, CHATS) for line in (1, 2, 3)] == ["a", "b", CHAT]
    with pytest.raises(ConfigError, match=r"asked\.jsonl has no prompt in line 4; it was changed"):
        read_content(file, 4, CHATS)


def test_a_text_file_has_a_prompt_a_line_and_is_read_once_by_a_process(asked):
    block, *_ = blocks_of(asked("first\n\n  second {x} \n", name="asked.txt", template="raw"))
    assert [one.prompt for one in block.prompts] == ["asked-1", "asked-3"]
    file = Path(block.prompts[1].file)
    assert read_content(file, 3, CHATS) == "  second {x} "
    file.unlink()
    assert read_content(file, 1, CHATS) == "first"


def test_other_layouts_are_read_by_their_keys_and_of_turns_the_first_is_sent(asked):
    spec_bench = [{"question_id": 81, "category": "writing", "turns": ["one", "two"]}]
    columns = {"prompt": "turns", "id": "question_id"}
    block, *_ = blocks_of(asked(spec_bench, columns=columns))
    [source] = block.prompts
    assert (source.prompt, source.category) == ("asked-81", "writing")
    assert content_of(spec_bench[0], block.sendings["asked"]) == "one"


def test_texts_that_ship_can_be_sent_as_chats(asked):
    data = asked()
    texts = ["code", "chinese"]
    data["workloads"] = {"asked": {"kind": "texts", "texts": texts, "template": "chat"}}
    block, *_ = blocks_of(data)
    assert [one.prompt for one in block.prompts] == ["asked-code", "asked-chinese"]
    assert [one.file for one in block.prompts] == [f"resources/prompts/{one}.txt" for one in texts]
    assert {one.line for one in block.prompts} == {None}


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


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ('{"prompt": "a"}\n{"prompt"\n', "line 2: it is no JSON ("),
        ('{"prompt"\n{"prompt": "a"}\n[]\n', "line 3: no JSON object"),  # and line 1
        ('["a"]\n', "line 1: no JSON object"),
        ([{"text": "a"}], "line 1: give either 'prompt' or 'messages'"),
        ([{"prompt": "a", "messages": CHAT}], "line 1: give either 'prompt' or 'messages'"),
        ([{"prompt": "  "}], "line 1: prompt: String should match"),
        ([{"prompt": []}], "line 1: prompt: Input should be a valid string"),
        ([{"messages": []}], "line 1: messages: List should have at least 1 item"),
        (
            [{"messages": [{"role": "me", "content": "a"}]}],
            "line 1: messages.0.role: Input should be 'system'",
        ),
        ([{"messages": [*CHAT, {"role": "assistant", "content": "a"}]}], "is not the user's"),
        ([{"prompt": "a", "id": "../b"}], "line 1: id: String should match pattern"),
        ([{"prompt": "a", "id": True}], "line 1: id: Input should be a valid string"),
        ([{"prompt": "a", "category": "x" * 61}], "line 1: category: String should have at most"),
        ([{"prompt": "a", "category": "a\nb"}], "line 1: category: String should match"),
        ([{"prompt": "a", "id": 2}, {"prompt": "b"}], "lines 1 and 2 have the same id '2'"),
        ("\n \n", "has 0 prompts, and its workload wants 1"),
    ],
)
def test_a_broken_file_is_refused_with_its_name_and_line(asked, lines, said):
    *_, message = fault(asked(lines)).splitlines()
    assert "asked.jsonl" in message
    assert said in message


@pytest.mark.parametrize(
    ("suite", "workload", "said"),
    [
        ({"workloads": ["askd"]}, {}, "suites.W.workloads: unknown workload 'askd'; did you mean"),
        ({}, {"template": "raw"}, "line 3: 'messages' need the workload's key `template: chat`"),
        ({}, {"sample": 4}, "has 3 prompts, and its workload wants 4"),
        ({}, {"file": "no.jsonl"}, "no.jsonl: cannot be read (No such file or directory)"),
        ({"prompts": ["code"]}, {"stop": "eos"}, "suites.W: all prompts of a suite stop alike"),
        ({"protocol": "study"}, {}, "suites.W: protocol study knows neither workloads"),
        (
            {"vary": {"forced_acceptance": [1]}},
            {"stop": "eos"},
            "suites.W.vary.forced_acceptance: ",
        ),
    ],
)
def test_a_workload_that_cannot_be_sent_is_refused_with_its_place(asked, suite, workload, said):
    assert said in fault(asked(suite=suite, **workload))


@pytest.mark.parametrize("name", ["passage", "code"])
def test_a_workload_takes_no_other_prompts_name(asked, name):
    data = asked()
    data["workloads"][name] = data["workloads"]["asked"]
    assert f"workloads: {name!r} is a prompt's name" in fault(data)


def test_a_sample_is_spread_evenly_over_the_file(asked):
    block, *_ = blocks_of(asked([{"prompt": f"{n}"} for n in range(10)], sample=4))
    assert [one.prompt for one in block.prompts] == [f"asked-{n}" for n in (1, 3, 6, 8)]
