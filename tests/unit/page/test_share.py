"""Files to share name what was measured, and its names are harmless where they are pasted."""

import re
from dataclasses import replace

import pandas as pd
import pytest
from matplotlib.image import imread

from specmoe.analysis.registry import TABLES
from specmoe.figures.figures import figures_of, save
from specmoe.page import share
from specmoe.page.share import caption, escape, fenced, save_picture

from ..paper_analyses import (
    controlled,
    costed,
    full,
    relabelled,
    several_methods,
    several_ways,
    single,
    without_drafts,
)
from ..rendered_tables import SPECIFICATIONS


def drawn(analysis, folder):
    save(figures_of(analysis), folder)
    save_picture(analysis, folder, folder / "picture.png")
    return (folder / "picture.png").read_bytes()


def advised(analysis, **columns):
    """Return the analysis with an answer for its MoE."""
    row = dict.fromkeys(TABLES["advice"].columns) | {
        "target": "moe_q4",
        "answer": "switch on",
        "reason": "the interval of the best setting is above 1 for other prompts too",
        "settings": 3,
        "set_aside": 0,
        "idle": 0,
        "none_left": 0,
        "prompt_set": "code",
        "odd_prompts": "",
        "draft": "draft_0.8b",
        "method": "draft-simple",
        "gamma": 8,
        "speedup": 1.4,
        "joint_low": 1.2,
        "joint_high": 1.6,
        "command": "llama-server -m a.gguf",
    }
    return replace(analysis, advice=pd.DataFrame([row | columns]))


def markdown(analysis):
    return share.markdown(analysis, SPECIFICATIONS)


def table(text):
    return [line for line in text.splitlines() if line.startswith("|")]


def test_the_caption_names_machine_models_engine_date_and_the_audits_verdict():
    assert caption(controlled(failed=1)) == (
        "Campaign by_hand: MoE Q4 with draft Draft 0.8B. Processor & Sons, backend cpu; llama.cpp"
        " 0123456789ab (current); 2026-01-02 to 2026-01-03 (UTC). The models have random weights:"
        " this is about the method, not about real models. Settings are rivals only on the same"
        " prompts. Audit of 2 runs: 0 impossible, 0 implausible; controls: 3 of 4 have their known"
        " outcome."
    )
    assert caption(full()).endswith("Not audited.")


def test_methods_without_a_draft_model_are_named_by_what_they_are():
    assert caption(several_methods()).startswith(
        "Campaign by_hand: MoE Q4 and Dense 4B with draft Draft 0.8B, MTP, prompt lookup and"
        " n-gram pool + MTP."
    )
    ngrams = {"draft": "ngram-simple-n3", "method": "ngram-simple", "gamma": 4}
    analysis = advised(several_methods(), **ngrams, end_to_end=1.3, first_token_ratio=1.0)
    text = markdown(analysis)
    assert "Fastest of 3 on the same prompts (code): prompt lookup, n = 3, γ = 4, speedup" in text
    assert "With the prompt: 1.30 for the whole answer" in text


def test_there_is_a_row_for_each_target_draft_and_gamma():
    lines = table(markdown(full()))
    assert lines[0] == (
        "| Target | Draft | γ | Speedup | Accepted (%) | tok/s | Without draft (tok/s) |"
    )
    assert lines[1] == "| --- | --- | ---: | ---: | ---: | ---: | ---: |"
    assert (
        lines[2] == "| MoE Q4 (suite B) | Draft 0.8B | 4 | 1.20 [1.20, 1.20] | 50.0 | 60.0 | 50.0 |"
    )
    assert len(lines) == 2 + len(full().cells)
    assert len({line.count("|") for line in lines}) == 1


def test_the_answer_comes_with_its_command():
    text = markdown(advised(full()))
    assert "**MoE Q4: switch it on**" in text
    assert "draft Draft 0.8B, γ = 8, speedup 1.40 [1.20, 1.60]." in text
    assert "```sh\nllama-server -m a.gguf\n```" in text
    assert text.index("switch it on") < text.index("| Target")


ANSWERS = [  # columns of the answer, and what the text says for them
    (
        {"answer": "on for looping text", "looping": 0.97, "command": None},
        ["**MoE Q4: switch it on for looping text**", "97% of its text loops: the same tokens"],
    ),
    (
        {"answer": "undecided", "second_look_repeats": 7, "end_to_end": 1.3}
        | {"first_token_ratio": 1.2, "command": "snakemake --cores 1 advise"},
        [
            "**MoE Q4: undecided**",
            "1.30 for the whole answer, and the first token comes 20% later.",
            "A second look takes 7 repeats.",
            "```sh\nsnakemake --cores 1 advise\n```",
        ],
    ),
    ({"answer": "not known", "command": None}, ["**MoE Q4: not known**"]),
]


@pytest.mark.parametrize(("columns", "sentences"), ANSWERS)
def test_an_answer_says_how_sure_it_is_and_what_to_do(columns, sentences):
    text = markdown(advised(full(), **columns))
    assert [sentence for sentence in sentences if sentence not in text] == []
    assert ("```" in text) == bool(columns["command"])


def test_the_caption_says_which_text_loops():
    looping = caption(advised(full(), answer="on for looping text"))
    assert "The text of MoE Q4 loops: the gain says nothing about text that does not." in looping
    assert "loops" not in caption(advised(full()))


def test_a_name_is_shown_as_text():
    hostile = "a|b `c` *d* _e_ [f](g) <script> &amp; @all #1 https://x\\ \n# h"
    text = markdown(relabelled(full(), "moe_q4", hostile))
    [*_, row] = [line for line in table(text) if "script" in line]
    assert len(re.findall(r"(?<!\\)\|", row)) == 8
    assert not re.search(r"(?<!\\)[`*_<#@]", row)
    assert escape("a_b\n|") == r"a\_b \|"
    assert fenced("a ``` b")[0] == "````sh"


@pytest.mark.parametrize("make", [single, controlled, costed, several_ways, without_drafts])
def test_every_campaign_has_a_picture_and_a_table(make, tmp_path):
    assert drawn(make(), tmp_path)
    assert "nan" not in markdown(make()).lower()


def test_the_picture_is_the_figure_with_its_caption_below(tmp_path):
    made = {"own": full(), "again": full(), "other": relabelled(full(), "moe_q4", "Mine")}
    pictures = {name: drawn(analysis, tmp_path / name) for name, analysis in made.items()}
    assert pictures["own"] == pictures["again"]
    figure = imread(tmp_path / "own/speedup_by_gamma.png")
    own, other = (imread(tmp_path / f"{name}/picture.png") for name in ("own", "other"))
    assert (own[: len(figure)] == figure).all()
    assert (own[len(figure) :] != other[len(figure) :]).any()
