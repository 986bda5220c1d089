"""Refusals before the first job, all at once, in any folder; see faults/table.py."""

import json
from dataclasses import replace
from functools import partial

import pytest

from specmoe.campaign.gate import drop_stale_locks, load_campaign, methods_of
from specmoe.config.methods import Method
from specmoe.errors import ConfigError, error_message
from specmoe.models.gguf import read_info
from specmoe.models.gguf_file import read_header, write_gguf, writer_of
from specmoe.models.info import Thinking, save_info
from specmoe.models.synthetic import write_model
from specmoe.models.synthetic_drafts import write_draft
from specmoe.plan.inventory import take_inventory

from ...conftest import ROOT, merge
from ...processes import start_python, write_program
from ...recipes import PAIRS, TINY, edit_vocabulary, varied, write_models

IGNORED = Thinking(heeded=False, opens=(True, True))
HOLD = "from specmoe.campaign.gate import *; drop_stale_locks(); print(flush=True); input()"


class Own:
    """A campaign on two files of the user's."""

    def __init__(self, study, folder):
        self.config, self.folder = study, folder
        files = write_models(folder, target=varied(TINY, layers=8, chat=True), draft=TINY)
        self.target, self.draft = files.values()
        self.models = {name: {"kind": "path", "path": str(file)} for name, file in files.items()}
        suite = {"title": "S", "targets": ["target"], "drafts": ["draft"], "gammas": [4]}
        campaign = {"name": "own", "models": "own", "suites": ["S"], "backend": "cpu"}
        study["suites"] = {"S": suite | {"prompts": ["code"]}}
        study["model_sets"]["own"] = self.models
        merge(study, {"campaign": campaign})

    def ask(self, **workload):
        """Let the suite send what a workload has in place of its prompt."""
        self.config["workloads"] = {"asked": {"template": "chat"} | workload}
        self.config["suites"]["S"] |= {"prompts": [], "workloads": ["asked"]}

    def campaign(self):
        return load_campaign(self.config, ROOT, self.folder / "results")

    def chats(self):
        """Return what is said of its chats, if nothing is refused."""
        return take_inventory(self.campaign(), []).chats

    def lines(self):
        """Return the lines of the faults."""
        try:
            self.chats()
        except ExceptionGroup as faults:
            return error_message(faults).splitlines()
        return []


@pytest.fixture
def own(study, tmp_path):
    return Own(study, tmp_path)


def test_a_budget_of_memory_gives_each_arm_words_and_needs_its_files(own):
    own.config["measurement"]["memory"] = 0.3  # GiB: less than the allowances of two contexts
    campaign = own.campaign()
    words, needs = zip(*campaign.config.fitted.values(), strict=True)
    assert [need < 0.3 * 2**30 for need in needs] == [True, False]
    [block, *_] = campaign.blocks.values()
    assert tuple(arm.fitted for arm in block.arms) == words
    own.draft.unlink()
    with pytest.raises(ConfigError, match=f"measurement.memory: {own.draft} is not here"):
        own.campaign()


def test_a_type_that_llama_quantize_does_not_have_is_refused(own):
    for kind in ("Q4_K_M", "Q4_K", "F32", "Q2_0"):
        own.models["small"] = {"kind": "quantize", "source": "draft", "type": kind}
        own.config["suites"]["S"]["drafts"] = ["small"]
        assert own.lines() == []
    own.models["small"]["type"] = "Q4_KM"
    [line] = own.lines()
    assert line == "ModelError: llama-quantize has no type 'Q4_KM'; did you mean 'Q4_K_M'?"


# Of the baseline, and of a draft model.
FLAGS = """--model --ctx-size --parallel --cache-ram --ctx-checkpoints --threads --log-verbosity
--metrics, --no-webui, --model-draft --spec-type [none|draft-simple] --spec-draft-n-min N
--spec-draft-p-min, """


@pytest.mark.parametrize(
    ("more", "line"),
    [
        ("--numa TYPE\n--spec-draft-n-max N", ""),
        ("--spec-draft-n-max N", "has no --numa: "),
        ("--numa\n--draft-max N", "has no --spec-draft-n-max: it is older than"),
        ("--numa\n--spec-draft-n-max  the argument has been removed", "n-max: it is newer, or"),
    ],
)
def test_an_engine_that_is_there_is_asked_for_its_flags(own, more, line):
    server = write_program(own.folder / "bin/llama-server", f"echo '{FLAGS}{more}'")
    own.config["engines"]["built"] = {"source": "path", "path": str(own.folder)}
    own.config["campaign"]["engine"] = "built"
    own.config["measurement"]["engine_args"] = ["--numa", "distribute"]
    assert [line in one for one in own.lines()] == [True] * bool(line)
    own.models["draft"] = {"kind": "quantize", "source": "target", "type": "Q2_0"}
    assert f"no llama-quantize in {server.parent}, and" in own.lines()[0]


def test_all_faults_that_hide_none_are_told_at_once(own):
    assert own.lines() == []
    own.target.write_bytes(own.target.read_bytes()[:-100])
    own.draft.unlink()
    text = own.folder / "empty.txt"
    text.write_text(" \n")
    own.config["prompts"]["texts"]["code"]["file"] = str(text)
    empty, missing, *cut = own.lines()
    assert empty == f"ConfigError: {text} has no text, and it is a prompt"
    assert missing.startswith("ModelError: ")
    assert len(cut) == 1
    own.config["campaign"]["engine"], own.config["campaign"]["models"] = "x", "y"
    with pytest.raises(ConfigError) as refused:
        own.campaign()
    places = [line.split(": ")[1] for line in str(refused.value).splitlines()]
    assert places == ["campaign.engine", "campaign.models"]


@pytest.mark.parametrize("entry", [{"kind": "quantize", "type": "Q8_0"}, {"kind": "ngram_cache"}])
def test_what_is_made_of_a_foreign_vocabulary_is_named_by_its_source(own, entry):
    write_model(own.draft, varied(TINY, vocabulary=1024))
    own.models["foreign"] = own.models["draft"]
    source = {"source": "foreign"}
    if entry["kind"] == "ngram_cache":
        source = {"source": "foreign", "text": "resources/prompts/code.txt"}
        way = {"method": "ngram-cache", "drafts": ["draft"]}
        own.config["suites"]["S"] |= {"drafts": [], "methods": [way]}
    own.models["draft"] = entry | source
    [line] = own.lines()
    assert line.startswith(f"ModelError: {own.draft} cannot draft for {own.target}: their vocab")


def test_a_prompt_that_the_context_surely_does_not_hold_is_refused(own):
    own.config["measurement"] |= {"context": 1024, "n_predict": 220}
    # What is not sent counts for nothing, and a token may have six bytes.
    sent, long = (own.folder / name for name in ("sent.jsonl", "long.jsonl"))
    sent.write_text(json.dumps({"prompt": "a word" * 800, "answer": "b" * 9999}))
    long.write_text(json.dumps({"messages": [{"role": "user", "content": "a word" * 801}]}))
    own.ask(kind="file", file=str(sent))
    assert own.lines() == []
    own.ask(kind="file", file=str(long))
    [line] = own.lines()
    assert line.startswith("ConfigError: prompt asked-1 has 4806 bytes of text; with the output")
    assert line.endswith("1025 tokens at least, and measurement.context is 1024: give it 2048, or"
        " leave the prompt out")  # fmt: skip


@pytest.mark.parametrize(("vocabulary", "tokens", "given", "line"), PAIRS)
def test_a_draft_models_vocabulary_is_judged_as_the_engine_does(
    own, vocabulary, tokens, given, line
):
    write_model(own.draft, varied(TINY, vocabulary=vocabulary))
    edit_vocabulary(own.draft, tokens, **given)
    assert [line in one for one in own.lines()] == [True] * bool(line)


def test_a_file_without_the_block_that_it_announces_drafts_by_nothing(own):
    write_model(own.target, varied(TINY, core=3, mtp_blocks=1))
    header = read_header(own.target)
    trunk = {one: one.weights() for one in header.tensors if one.block != 4}
    own.config["suites"]["S"] |= {"drafts": [], "methods": [{"method": "mtp"}]}
    assert own.lines() == []
    write_gguf(own.target, writer_of(header.architecture, header.metadata), trunk)
    [line] = own.lines()
    assert "target.gguf has no MTP block with which llama.cpp drafts" in line
    own.config["suites"]["S"]["methods"] = "all"
    assert own.lines() == []
    write_draft(own.target, varied(TINY, core=3), "eagle3")
    assert own.lines()[0].startswith(f"ModelError: {own.target} only drafts (eagle3); name its")


def test_a_model_that_was_made_before_is_known_by_its_info_and_another_is_not_asked_about(own):
    own.ask(kind="texts", texts=["code"], thinking=False)
    own.models["target"] = {"kind": "hub", "repository": "a/b", "file": "t.gguf", "size_bytes": 1}
    assert own.lines() == []
    made = own.campaign().places.model_file("target")
    made.parent.mkdir(parents=True)
    write_model(made, varied(TINY, layers=8))
    save_info(read_info(made), made.with_suffix(".json"))
    [line] = own.lines()
    assert f"the chat template of target is missing: {made} has none, and a workload" in line
    # A template that ignores what it is told is found.
    own.target.rename(made)
    words = "ignores `thinking: false`, which has no effect; give n_predict room for what it thinks"
    said = (f"the chat template of target {words}",)
    for thinking, chats in (({}, ()), ({"thinking": IGNORED}, said)):
        save_info(replace(read_info(made), **thinking), made.with_suffix(".json"))
        assert own.chats() == chats
    own.config["suites"]["S"]["vary"] = {"thinking": [False]}
    save_info(replace(read_info(made), thinking=None), made.with_suffix(".json"))
    assert own.chats() == (said[0].partition(";")[0],)


CALL = {"function": {"name": "f", "arguments": '{"b": 1}'}}
CHATS = [
    [("system", "s"), ("user", "a"), ("assistant", None), ("tool", "c")],
    [("user", "<user>\na"), ("user", "b")],
    [("user", "c"), ("user", "d")],
]


@pytest.mark.parametrize(
    ("template", "said", "is_error"),
    [
        ("{% if messages | length == 2 %}{{ raise_exception('no') }}{% endif %}{{ tools }}",
         "line 2 and 1 more: the chat template of target refuses the chat: no; mend it, or", True),
        ("""{% if messages[0].role == 'system' %}{{ raise_exception('no') }}{% endif %}{{ tools }}
{% for m in messages %}<{{ m.role }}>\n{{ m.content }}
{% for c in m.tool_calls or [] %}{{ c.function.arguments.items() }}{% endfor %}{% endfor %}""",
         "line 2: the chat template of target writes <user> before a text that has it; g", False),
        ("{{ strftime_now('%H:%M') }}{{ tools }}",
         "the chat template of target writes the time, so no prompt is sent twice; `eng", True),
        ("{{ date_string or strftime_now('%d %b') }}{{ tools }}",
         "writes the date, so prompts change overnight; `engine_args: [--chat-template-kw", False),
        ("{{ no.x.y }}", "the chat template of target is not looked at (UndefinedError: ", False),
        ("", "line 1: the chat template of target leaves out its tools; `engine_args: [", False),
    ],
)  # fmt: skip
def test_chats_are_written_beforehand(own, template, said, is_error):
    chats = [[{"role": role, "content": text} for role, text in chat] for chat in CHATS]
    chats[0][2]["tool_calls"] = [CALL]
    lines = [{"messages": chat} for chat in chats]
    lines[0]["tools"] = [{"type": "function"}]
    file, written = own.folder / "asked.jsonl", own.folder / "own.jinja"
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    written.write_text(template)
    own.ask(kind="file", file=str(file))
    if template:
        own.config["measurement"]["engine_args"] = ["--chat-template-file", str(written)]
    [told] = own.lines() if is_error else own.chats()
    assert said in told
    assert told.startswith("ConfigError: ") == is_error
    if "date_string" in template:
        words = ["--chat-template-kwargs", '{"date_string": "1 Jan"}']
        own.config["measurement"]["engine_args"] += words
        assert own.chats() == ()


def test_a_file_drafts_as_it_was_made_for(own):
    own.config["campaign"]["models"] = "methods"
    models = own.config["model_sets"]["methods"]
    models |= {"there": own.models["draft"], "gone": {"kind": "path", "path": "gone.gguf"}}
    own.config["suites"]["S"] |= {"targets": ["there"], "drafts": [], "methods": "all"}
    known = partial(methods_of, own.campaign().places)
    moes = ["random-hybrid-moe16-f16", "random-hybrid-moe16-q4"]
    blocks = (*moes, "random-hybrid-draft-f16", "there", "gone", "random-hybrid-eagle3")
    assert [name for name in blocks if Method.MTP in known(name)] == moes
    heads = [f"random-hybrid-{name}" for name in ("eagle3", "dspark", "ngrams", "4layers-q8")]
    made_for = [known(name) for name in (*heads, "there", "gone")]
    plain = [{Method.DRAFT}] * 3
    assert made_for == [{Method.EAGLE3}, {Method.DSPARK}, {Method.NGRAM_CACHE}, *plain]


def test_locks_are_stale_when_no_process_is_left_that_could_hold_them(tmp_path):
    locks = tmp_path / ".snakemake/locks"

    def start():
        process = start_python(HOLD, tmp_path)
        process.stdout.readline()
        return process

    first = start()
    (locks / "0.output.lock").write_text("x")
    second = start()
    assert any(locks.iterdir())
    first.kill(), first.wait()
    third = start()
    assert any(locks.iterdir())  # the second still shares them
    for process in (second, third):
        process.kill(), process.wait()
    drop_stale_locks(locks)
    assert not any(locks.iterdir())
