"""Workloads on a real llama-server: chats by the model's own template, and texts that end."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from specmoe.config.block import Arm, PromptSource, Sending, Stop, Template
from specmoe.config.methods import Method
from specmoe.measure.divergence import find_divergences
from specmoe.models.chats import compiled, written

from ..blocks import ALONE, DRAFTED, compared, measured, rows
from ..recipes import SMALL, varied, write_models

CHAT = varied(SMALL, chat=True)
TURNS = [
    {"role": "user", "content": "Name a tree."},
    {"role": "assistant", "content": "Oak."},
    {"role": "user", "content": "Another."},
]
QUESTIONS = [
    *({"prompt": f"Question {number}?", "category": "asked"} for number in range(8)),
    {"messages": TURNS, "category": "chat"},
]
PROMPTS = tuple(
    PromptSource(f"asked-{line}", "asked.jsonl", None, line, "asked", question["category"])
    for line, question in enumerate(QUESTIONS, 1)
)


@pytest.fixture(scope="module")
def models(module_folder) -> dict[str, Path]:
    """A draft model and a target that end their texts, of which the target has a chat template."""
    return write_models(module_folder, target=varied(CHAT, layers=8), draft=CHAT)


@pytest.fixture
def do(job, models, tmp_path):
    """Measure a block of the questions; returns its record as a file holds it."""

    def run(thinking=None, usable_memory=10**12, prompts=PROMPTS, **more):
        lines = [json.dumps(question) + "\n" for question in QUESTIONS]
        (tmp_path / "asked.jsonl").write_text("".join(lines))
        sendings = {"asked": Sending(Template.CHAT, thinking)}
        block = compared(prompts=prompts, sendings=sendings, n_predict=48, **more)
        files = {"target": models["target"], "drafts": models}
        return measured(block, replace(job, root=tmp_path, usable_memory=usable_memory, **files))

    return run


def test_the_servers_template_writes_the_chat_up_to_where_the_answer_starts(start, models):
    with start(models["target"]) as server:
        plain = "user: Name a tree.\nassistant: Oak.\nuser: Another.\nassistant:"
        for thinking, more in ((False, ""), (True, " thinking:")):
            told = {"chat_template_kwargs": {"enable_thinking": thinking}}
            assert server.apply_template({"messages": TURNS, **told}) == plain + more


def test_an_agents_chat_is_written_as_it_was_looked_at(start, models, tmp_path):
    call = {"type": "function", "id": "1", "function": {"name": "f", "arguments": '{"b": 1}'}}
    answer = {"role": "assistant", "content": None, "tool_calls": [call]}
    result = {"role": "tool", "tool_call_id": "1", "content": ""}
    chat = {
        "messages": [{"role": "developer", "content": "Be brief."}, TURNS[0], answer, result],
        "tools": [{"type": "function", "function": {"name": "f", "parameters": {}}}],
        "chat_template_kwargs": {"date_string": "1 Jan"},
    }
    source = """{% if messages[0].role == 'system' %}{{ raise_exception('no') }}{% endif %}
{{ tools[0].function.name }} {{ date_string }}{% for m in messages %} {{ m.role }}: {{ m.content }}
{% for c in m.tool_calls or [] %}{{ c.function.arguments | tojson }}{% endfor %}{% endfor %}"""
    (tmp_path / "own.jinja").write_text(source)
    with start(models["target"], ["--chat-template-file", str(tmp_path / "own.jinja")]) as server:
        text = server.apply_template(chat)
    assert text == 'f 1 Jan user: Be brief.\nName a tree.\n assistant: \n{"b": 1} tool: \n'
    assert written(compiled(source), chat) == text


def test_texts_end_where_the_target_ends_them_and_drafts_change_no_token(do):
    sides = [
        rows(do(thinking, usable_memory, stop=Stop.EOS))  # side by side, and one after the other
        for thinking, usable_memory in ((False, 10**12), (True, 0))
    ]
    for found in sides:
        ended = [row for row in found if row["stopped_by"] == "eos"]
        assert len(ended) > len(found) / 2
        assert not [*find_divergences(found, "target")]
        for row in found:
            assert (row["generated"] < 48) <= (row["stopped_by"] == "eos")
            assert len(row["tokens"]) == row["generated"]
            if row["stopped_by"] == "eos":
                assert row["tokens"][-1] == max(row["tokens"])  # the last of the vocabulary
            if row["gamma"]:
                assert row["common_prefix"] == row["generated"]
                # The counters are those of the whole last round, which the end may have cut.
                given = 1 + row["rounds"] + row["accepted"]
                given += row["replays"] - row["replays_rejected"]
                assert 0 <= given - row["generated"] <= 4 or row["generated"] == 48
    off, on = ({row["prompt"]: row["n_prompt"] for row in found} for found in sides)
    # Thinking is part of the prompt where the template knows it.
    assert all(on[prompt] > off[prompt] for prompt in off)


def test_a_later_turn_reads_only_what_is_new_and_is_answered_as_if_it_read_all(do):
    chats = [(chat, turn) for chat in "ab" for turn in (1, 2)]
    turns = [replace(PROMPTS[-1], prompt=f"{chat}-t{turn}", turn=turn) for chat, turn in chats]
    pool = Arm(4, method=Method.NGRAM_MOD, draft="pool", n_match=3)
    record = do(thinking=False, prompts=tuple(turns), arms=(ALONE, DRAFTED, pool))
    sent = [(run["arm"], run["process"], run["run"].split("/")[-2]) for run in record["runs"]]
    for first, second in zip(sent[::2], sent[1::2], strict=True):
        assert (*first[:2], first[2].replace("1", "2")) == second
    # What remembers other chats begins again.
    assert {one[:2] for one in sent if one[1]} == {(pool.name, 1)}
    timings = {run["run"]: run["answer"]["timings"] for run in record["runs"]}
    for row in (found := rows(record)):
        cached, read = (timings[row["run"]][name] for name in ("cache_n", "prompt_n"))
        assert (row["cached_tokens"], row["n_prompt"]) == (cached, cached + read)
        # The target's state is kept four tokens before the end of what was read.
        assert (row["turn"], cached) in {(1, 0), (2, found[0]["n_prompt"] - 4)}
        assert row["common_prefix"] in (None, row["generated"])
    [whole] = {tuple(row["tokens"]) for row in rows(do(thinking=False, prompts=PROMPTS[-1:]))}
    assert {tuple(row["tokens"]) for row in found if row["turn"] == 2} == {whole}
