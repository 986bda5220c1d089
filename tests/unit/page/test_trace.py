"""The stepper of the page: every step and word of the record, and nothing that markup could do."""

import re
from html import unescape

import pytest

from specmoe.config.methods import Method, is_ngram
from specmoe.page.page import environment, pair
from specmoe.page.trace import trace_context

from ..decoding_log import Decoding
from ..made_recording import chain, nothing_drafted, of_decoding, recording
from .test_page import Reader


@pytest.fixture
def render(root):
    template = environment(root / "paper/site").get_template("trace.html.j2")
    return lambda made: template.render(trace=trace_context(made), pair=pair)


def words_of(html: str, language: str) -> str:
    """Return what is read in one language, without tags."""
    other = {"en": "zh-CN", "zh-CN": "en"}[language]
    html = re.sub(rf'<span class="t" lang="{other}">.*?</span>', "", html, flags=re.DOTALL)
    return " ".join(unescape(re.sub(r"<[^>]*>", "", html)).split())


def test_every_pass_is_a_step_and_every_token_appears_with_the_last_of_its_round(render):
    made = recording()
    context = trace_context(made)
    steps = [part for one in context["rounds"] for part in one.parts]
    assert [part.kind for part in steps] == [
        *("draft", "target"),
        *("draft", "target", "replay"),
        *("draft", "target"),
        *("draft", "target", "replay", "replay"),
        *("draft", "target"),
        "alone",
    ]
    assert len(context["words"]) == len(made.tokens)
    assert [word.step for word in context["words"]] == [
        *[0],
        *[1] * 5,
        *[4] * 4,
        *[6] * 1,
        *[10] * 3,
        *[12] * 2,
        *[13] * 1,
    ]
    html = render(made)
    assert html.count('class="trace-part"') == len(steps)
    assert html.count("data-from=") == len(made.tokens)


def other_text():
    made = recording()
    return recording(plain_tokens=(*made.tokens[:6], 2, *made.tokens[7:]))


SENTENCES = {  # of each record, in English and Chinese
    recording: (
        [
            "Tokens are drafted by: draft model (0.8B), γ = 4 (llama-server's type draft-simple).",
            "16 from 9 passes of the target (3 of them replays, 1 without a draft)",
            "1.78 tokens per pass",
            "Accepted: 8 of 14 drafted tokens (57.1%)",
            *("the same text", "random weights"),
        ],
        [
            "起草方法：草稿模型（0.8B），γ = 4（llama-server 的类型 draft-simple）",
            "其余 16 个来自目标模型的 9 次前向计算，其中 3 次是重放，1 次没有草稿",
            "14 个草稿 token 中接受了 8 个（57.1%）",
            *("相同的文本", "权重是随机的"),
        ],
    ),
    chain: (
        [
            "n-gram pool + MTP, γ = 4, n = 3, n-grams to 8, p ≥ 0.5 (",
            "The MTP block proposes 2 tokens, one after the other.",
            "The n-gram pool has seen the last tokens before and proposes 3 tokens",
            "the target decodes 2 tokens by itself, one in each pass.",
            "the target decodes 1 token by itself.",
        ],
        [
            "n-gram 池 + MTP 模块，γ = 4，n = 3",
            "MTP 模块逐个提出 2 个 token",
            "n-gram 池见过末尾的这些 token，提出当时跟在后面的 3 个 token",
            "目标模型自己解码 2 个 token，每次前向计算 1 个",
        ],
    ),
    nothing_drafted: (
        ["Nothing was drafted: another prompt or other parameters may show more."],
        ["没有提出任何草稿：换一个提示或参数，也许能看到更多。"],
    ),
    other_text: (["the same 6 tokens and then “two” instead of “␣one”"], []),
}


@pytest.mark.parametrize("make", SENTENCES)
def test_words_and_numbers_are_those_of_the_record_in_both_languages(render, make):
    html = render(make())
    for language, sentences in zip(("en", "zh-CN"), SENTENCES[make], strict=True):
        words = words_of(html, language)
        assert [sentence for sentence in sentences if sentence not in words] == []
    assert ("Accepted: " in html) == (make is not nothing_drafted)


@pytest.mark.parametrize("method", Method)
def test_every_method_has_its_words_for_a_step(render, method):
    decoding = Decoding()
    decoding.round([1, 2], [(1, 3)], method)
    html = render(of_decoding(decoding, method))
    assert "2 tokens" in words_of(html, "en")
    assert ("25%" in html) == (not is_ngram(method))
    assert ("gives no probability" in html) == is_ngram(method)


def test_passes_between_drafts_are_one_step_and_their_tokens_appear_together(render):
    context = trace_context(chain())
    assert [[part.kind for part in one.parts] for one in context["rounds"]] == [
        *(["alone"], ["draft", "target"], ["draft", "target"], ["alone"])
    ]
    assert [word.step for word in context["words"]] == [0, 0, 0, 2, 2, 4, 4, 4, 4, 5]


def test_what_prompts_tokens_and_labels_hold_is_text_on_the_page(render):
    html = render(recording())
    assert "<script" not in html
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in html
    assert "<code>&lt;b&gt;</code>" in html


def test_the_markup_is_balanced_and_has_no_inline_styles(render):
    assert not Reader(render(recording())).attributes("style", "onclick")
