"""The demonstration's record, in the terminal and on the page: true, readable, harmless."""

import json

import pytest

from specmoe.errors import DamagedFileError
from specmoe.files import ROOT
from specmoe.measure.trace import Recording, Round, decode, visible
from specmoe.page.page import analysis_templates, pair
from specmoe.text import fill_template

from .test_page import Reader, recording


def describe(trace):
    return fill_template(ROOT / "paper/trace.txt.j2", trace=trace)


def test_each_round_drafts_after_what_is_written_and_keeps_what_the_target_writes_too():
    text = [7, 1, 2, 3, 4, 5, 6]
    drafts = {(7,): [1, 2, 9, 4], (7, 1, 2, 3): [4, 8], (7, 1, 2, 3, 4, 5): []}
    asked = []

    def propose(after, width):
        asked.append(width)
        return drafts[tuple(after)]

    assert list(decode(text, 4, propose)) == [
        Round((1, 2, 9, 4), 2, 3),
        Round((4, 8), 1, 5),
        Round((), 0, 6),
    ]
    assert asked == [4, 2]  # what is left, but for the target's own token
    assert list(decode([7], 4, propose)) == []


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"version": 4}, "version Input should be 5"),
        ({"rounds": 3}, "rounds Input should be a valid tuple"),
        (None, "it is no JSON"),  # damaged
    ],
)
def test_a_damaged_record_or_one_of_another_version_is_refused(tmp_path, change, message):
    path, text = tmp_path / "trace.json", recording().model_dump_json()
    path.write_text(text, encoding="utf-8")
    assert Recording.read(path) == recording()
    path.write_text(json.dumps(json.loads(text) | change) if change else text[:-20])
    with pytest.raises(DamagedFileError, match=rf"trace\.json is damaged: .*{message}"):
        Recording.read(path)


def test_words_are_readable_and_harmless():
    words = recording().text_of
    assert [words(token) for token in (1, 2, 3, 7)] == ["␣one", "two", "↵", "seven"]
    assert [words(token) for token in (4, 5)] == ["⟨4⟩", "⟨5⟩"]  # half a character, no text
    assert words(6) == r"\u001b[31m"
    assert visible("a\u202eb\x9bc 语言") == r"a\u202eb\u009bc␣语言"


def test_the_terminal_shows_every_round_and_the_totals():
    text = describe(recording())
    lines = [" ".join(line.split()) for line in text.splitlines()]
    start = lines.index("prompt → seven")
    assert lines[start + 1 : start + 7] == [
        "round 1 ✓ ␣one ✓ two ✓ ↵ ✓ ⟨4⟩ → ⟨5⟩ (4 of 4 accepted)",
        r"round 2 ✓ ␣one ✓ two ✗ ↵ ✗ <b> → \u001b[31m (2 of 4 accepted)",
        "round 3 ✗ ␣one ✗ two → <b> (0 of 2 accepted)",
        "round 4 → seven",
        "",
        "11 tokens: the first from processing the prompt, the others from 4 rounds. Drafted: 10."
        " Accepted: 6.",
    ]
    assert "0.8B drafts for MoE Q4, γ = 4, greedy" in text
    assert "random weights" in text
    assert "random weights" not in describe(recording(synthetic=False))


def test_the_terminal_gets_short_lines_without_control_characters():
    made = recording(rounds=(Round((1, 2, 3) * 11, 0, 4),), prompt_text="word " * 500)
    assert "word…" in describe(made)
    for line in [*describe(made).splitlines(), *describe(recording()).splitlines()]:
        assert line.isprintable()
        assert len(line) <= 100


def test_the_page_has_the_same_in_both_languages_and_markup_of_nobody_else(root):
    template = analysis_templates(root / "paper/site").get_template("trace.html.j2")
    html = template.render(trace=recording(), pair=pair, most_rounds=4)
    words = " ".join("".join(Reader(html).words).split())
    assert "✓ ␣one ✓ two ✗ ↵ ✗ <b> → " in words
    for sentence in (
        *("11 tokens from 4 rounds. Drafted: 10. Accepted: 6.", "random weights"),
        *("4 轮得到 11 个 token：起草 10 个，接受 6 个。", "权重是随机的"),
    ):
        assert sentence in words
    assert "<script" not in html and "\x1b" not in html
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in html
    assert "<code>&lt;b&gt;</code>" in html
    assert not Reader(html).attributes("style", "onclick")
