"""The stepper of the page: every step and word of the record, and nothing that markup could do."""

import re
from html import unescape

import pytest

from specmoe.page.page import pair
from specmoe.page.templates import environment
from specmoe.page.trace import trace_context

from ..made_recording import recording
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
        "target",
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


def test_the_numbers_are_those_of_the_record_in_both_languages(render):
    html = render(recording())
    english, chinese = (words_of(html, language) for language in ("en", "zh-CN"))
    assert "16 from 9 passes of the target (3 of them replays, 1 without a draft)" in english
    assert "1.78 tokens per pass" in english
    assert "Accepted: 8 of 14 drafted tokens (57.1%)" in english
    assert "其余 16 个来自目标模型的 9 次前向计算，其中 3 次是重放，1 次没有草稿" in chinese
    assert "14 个草稿 token 中接受了 8 个（57.1%）" in chinese
    assert "the same text" in english
    assert "相同的文本" in chinese
    assert "random weights" in english
    assert "权重是随机的" in chinese


def test_another_text_without_a_draft_is_shown(render):
    made = recording()
    plain = (*made.tokens[:6], 2, *made.tokens[7:])
    assert "the same 6 tokens and then “two” instead of “␣one”" in words_of(
        render(recording(plain_tokens=plain)), "en"
    )


def test_what_prompts_tokens_and_labels_hold_is_text_on_the_page(render):
    html = render(recording())
    assert "<script" not in html
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in html
    assert "<code>&lt;b&gt;</code>" in html


def test_the_markup_is_balanced_and_has_no_inline_styles(render):
    assert not Reader(render(recording())).attributes("style", "onclick")
