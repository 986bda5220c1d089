"""The page is one harmless file: it loads nothing, and no name of a campaign runs in it."""

import re
from base64 import b64encode
from dataclasses import replace
from hashlib import sha256
from html.parser import HTMLParser

import jinja2
import pandas as pd
import pytest

from specmoe.claims.headline import CLAIMS
from specmoe.claims.judge import judge_claims
from specmoe.figures.figures import FIGURES, figures_of
from specmoe.measure.trace import Recording
from specmoe.page import page, rendered
from specmoe.page.page import data_names, environment, render_page, span
from specmoe.page.rendered import write_data

from ..made_recording import recording
from ..paper_analyses import (
    advised,
    compared,
    controlled,
    costed,
    full,
    relabelled,
    several_methods,
    single,
    without_drafts,
)
from ..planted_loads import with_loads
from ..planted_twins import with_twins

HOSTILE = """</script><script>planted()</script>" onload='planted()' %&#_ {{ 7 * 7 }} ${7*7}"""
VOID = {"meta", "link", "img", "br", "rect", "path", "input"}


def page_figures(analysis):
    """Return the page's pictures of an analysis."""
    return rendered.page_figures(figures_of(analysis))


def page_of(analysis, root, figures=None, recording=None):
    """Return the page of an analysis, without figures and demonstration unless they are given."""
    return render_page(
        analysis,
        figures or {},
        recording,
        paper=root / "paper",
        citation=root / "CITATION.cff",
    )


@pytest.fixture(scope="module")
def plain(root):
    """The page of the usual campaign, without figures."""
    return page_of(full(), root)


@pytest.fixture(scope="module")
def answered(root):
    """The page of the usual campaign with an answer."""
    return page_of(advised(full()), root)


@pytest.fixture(scope="module")
def drawn():
    """The figures of the usual campaign."""
    return page_figures(full())


@pytest.fixture(scope="module")
def pictures():
    """A picture for each figure, all the same, for tests of where they stand."""
    [one, *_] = page_figures(single()).values()
    return dict.fromkeys(FIGURES, one)


def of_campaign(analysis, **columns):
    return replace(analysis, campaign=analysis.campaign.assign(**columns))


class Reader(HTMLParser):
    """Reads a page: its elements, its words, and whether every element is closed in order."""

    def __init__(self, text):
        super().__init__()
        self.elements, self.open, self.words = [], [], []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.words.append(data)

    def attributes(self, *names):
        return [attrs[name] for _, attrs in self.elements for name in names if attrs.get(name)]


@pytest.mark.parametrize(
    "make", [full, compared, controlled, costed, several_methods, without_drafts]
)
def test_every_campaign_has_a_whole_page(make, root):
    page = Reader(page_of(make(), root))
    text = "".join(page.words)
    assert "nan" not in re.findall(r"[a-z]+", text.lower())
    ids = page.attributes("id")
    assert len(ids) == len(set(ids))
    anchors = {href[1:] for href in page.attributes("href") if href.startswith("#")}
    assert anchors <= set(ids)
    assert set(" ".join(page.attributes("aria-labelledby")).split()) <= set(ids)


def test_the_demonstration_is_on_the_page_of_a_campaign_that_has_one(root, plain):
    assert 'class="trace"' not in plain
    page = Reader(page_of(full(), root, recording=recording()))
    assert sum(attrs.get("class") == "trace" for _, attrs in page.elements) == 1
    assert sum(tag == "script" for tag, _ in page.elements) == 1
    assert "data/trace.json" in page.attributes("href")
    assert "<script>alert(1)</script>" in "".join(page.words)


def test_nothing_that_was_not_measured_is_on_the_page(root):
    figures = page_figures(without_drafts())
    assert "speedup_by_gamma" not in figures
    page = page_of(without_drafts(), root, figures)
    assert 'id="table-speculation"' not in page
    assert 'id="figure-speedup_by_gamma"' not in page
    assert 'id="table-baselines"' in page


def test_the_page_loads_nothing_and_links_only_to_its_data_and_the_study(root, drawn):
    page = Reader(page_of(full(), root, drawn))
    assert all(address.startswith("data:") for address in page.attributes("src"))
    links = {link for link in page.attributes("href") if not link.startswith(("#", "data/"))}
    assert links == {"data:,", "https://github.com/AtomGradient/speculative-moe-research"}
    names = {link for link in page.attributes("href") if link.startswith("data/")}
    expected = {f"data/{name}.{end}" for name in data_names(full()) for end in ("csv", "parquet")}
    assert names == expected


def test_the_policy_allows_this_script_and_this_style_and_nothing_else(plain):
    heads = [attrs for _, attrs in Reader(plain).elements if "http-equiv" in attrs]
    [policy] = [a["content"] for a in heads if a["http-equiv"] == "Content-Security-Policy"]
    assert policy.startswith("default-src 'none'; img-src data:; ")
    for tag in ("script", "style"):
        [inline] = re.findall(f"<{tag}>(.*?)</{tag}>", plain, re.DOTALL)
        name = b64encode(sha256(inline.encode()).digest()).decode()
        assert f"{tag}-src 'sha256-{name}'" in policy
    assert not re.search(r"<[^>]+\s(style|on\w+)=", plain)


def test_what_a_campaign_is_called_is_shown_and_does_nothing(root, plain):
    label, suite, campaign, chip = names = [f"{n}{HOSTILE}" for n in range(4)]
    analysis = replace(
        relabelled(full(), "moe_q4", label),
        suites=full().suites.assign(title=suite),
        campaign=full().campaign.assign(campaign=campaign, host_chip=chip),
    )
    harmless, planted = Reader(plain), Reader(page_of(analysis, root))
    words = "".join(planted.words)
    assert [name for name in names if name not in words] == []
    assert sum(tag == "script" for tag, _ in planted.elements) == 1
    # No attribute that a page without them does not have.
    known = {name for _, attrs in harmless.elements for name in attrs}
    assert {name for _, attrs in planted.elements for name in attrs} <= known


def ones_own(analysis):
    """Return the analysis as one of models that the study knows nothing of."""
    none = pd.DataFrame()
    own = of_campaign(analysis, of_study=False, synthetic=False)
    return replace(own, claims=none, comparison=none)


def assert_in_order(text, ids):
    places = [text.index(f'id="{name}"') for name in ids.split()]
    assert places == sorted(places)


def words_of(markup):
    return " ".join("".join(Reader(markup).words).split())


def card(page):
    """Return the first answer's card, and its words."""
    markup = page.partition('<ul class="answers">')[2].partition("</ul>")[0]
    return markup, words_of(f"<ul>{markup}</ul>")


def test_a_page_of_ones_own_models_answers_first_and_leaves_the_study_out(root, pictures):
    analysis = advised(ones_own(full()))
    text = page_of(analysis, root, pictures)
    words = "".join(Reader(text).words)
    assert "<title" in text
    assert "Should MoE Q4 use speculative decoding?" in words
    assert "MoE Q4 该用推测解码吗？" in words
    assert_in_order(text, "summary results figure-speedup_by_gamma audit how cite")
    assert 'id="study"' not in text
    assert not re.search(r"study|研究", words.replace("study's own commands", ""))
    assert text.index("llama-server -m a.gguf") < text.index('id="results"')


def test_a_card_names_draft_gamma_gain_and_the_line_to_paste(answered):
    markup, words = card(answered)
    assert "Draft草稿模型 Draft 0.8B, γ = 8" in words
    assert "1.40 × [1.20, 1.60]" in words
    assert "llama-server -m a.gguf" in words
    assert 'data-answer="switch on"' in markup


def test_a_card_says_how_far_the_text_repeats_itself_and_what_a_loop_leaves_open(root, answered):
    shares = {"repetition": 0.95, "looping": 0.97}
    answer = {"answer": "on for looping text", "command": None}
    reason = "the text loops, so nothing is known of text that does not"
    text = page_of(advised(full(), **shares, **answer, reason=reason), root)
    _, words = card(text)
    assert "on for looping text只对循环的文字打开" in words
    assert "repeated 4-grams四元组重复 95 %, in loops循环 97 %" in words
    assert f"{reason}文字在循环" in words
    assert "llama-server" not in words
    assert "Its text" not in answered


SECTIONS = {  # of what it is about: the campaign, what stands on the page in that order, and words
    "levels": (
        with_loads,
        "results levels figure-levels table-levels",
        "Each load keeps so many clients busy",
        "一直有这么多客户端在忙",
    ),
    "side_by_side": (
        compared,
        "advice side_by_side table-compared_campaigns figure-side_by_side table-side_by_side",
    ),
}


@pytest.mark.parametrize("section", SECTIONS)
def test_what_was_measured_has_its_section_and_sentences(section, root, plain, pictures):
    make, ids, *sentences = SECTIONS[section]
    assert f'id="{section}"' not in plain or make is with_loads
    text = page_of(make(), root, pictures)
    assert_in_order(text, ids)
    words = words_of(text)
    assert [sentence for sentence in sentences if sentence not in words] == []


def test_claims_that_twins_decide_are_said_to_be_of_twins(root):
    claims = {name: claim for name, claim in CLAIMS.items() if claim.twins}
    of_twins = of_campaign(with_twins(), of_study=False)
    assert 'id="study"' not in page_of(of_twins, root)
    judged = replace(of_twins, claims=judge_claims(claims, of_twins))
    text = page_of(judged, root)
    assert_in_order(text, "twins study")
    assert "This campaign's models are not the study's." in text


@pytest.mark.parametrize(
    ("repeats", "words"),
    [(7, "More repeats再测遍数7"), (None, "would hardly decide")],
)
def test_a_card_of_an_undecided_target_says_how_many_repeats_would_decide(root, repeats, words):
    undecided = advised(
        full(),
        answer="undecided",
        more_repeats=repeats,
        end_to_end=1.3,
        first_token_ratio=1.2,
        command=None,
    )
    _, text = card(page_of(undecided, root))
    assert words in text
    assert "1.30 ×, first token 20 % later，首个 token 晚 20 %" in text


def test_a_range_whose_ends_print_the_same_is_one_value(root):
    assert span("0.59", "0.59", "–") == "0.59"
    assert span("0.59", "0.60", "–") == "0.59–0.60"
    words = "".join(Reader(page_of(single(), root)).words)
    assert "by a factor of 1.20 (on Code)." in words
    assert "1.20 ×" in words
    assert not re.search(r"(\d+\.\d+) ?(?:–|to|到) ?\1\b", words)


def test_the_first_screen_says_whether_controls_passed_and_nothing_of_those_there_are_none(root):
    def head(analysis):
        return page_of(analysis, root).partition('<section id="summary"')[0]

    assert "had the outcome that was known beforehand" in head(controlled())
    assert "Controls failed." in head(controlled(failed=1))
    assert not re.search(r"[Cc]ontrol|对照", page_of(full(), root).partition("<main")[2][:20000])


def test_a_template_escapes_and_refuses_unknown_names(tmp_path):
    (tmp_path / "a.html.j2").write_text("{{ value }}")
    template = environment(tmp_path).get_template("a.html.j2")
    assert template.render(value="<a href='#'>") == "&lt;a href=&#39;#&#39;&gt;"
    assert template.render(value=None) == "–"
    with pytest.raises(jinja2.UndefinedError):
        template.render()


def test_the_data_are_written_as_they_are_and_a_formula_does_not_run(tmp_path):
    analysis = relabelled(full(), "moe_q4", '=HYPERLINK("x"),\n</script>')
    write_data(analysis, None, tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(
        f"{name}.{end}" for name in data_names(analysis) for end in ("csv", "parquet")
    )
    exact = pd.read_parquet(tmp_path / "models.parquet")
    pd.testing.assert_frame_equal(exact, analysis.models)
    read = pd.read_csv(tmp_path / "models.csv").set_index("model")
    assert read.loc["moe_q4", "label"] == '\'=HYPERLINK("x"),\n</script>'
    assert read.loc["moe_q4", "size_bytes"] == 20_600_000_000
    cells = pd.read_csv(tmp_path / "cells.csv")
    assert list(cells["speedup"]) == pytest.approx(list(analysis.cells["speedup"]))


def test_words_are_kept_from_being_formulas_and_negative_numbers_are_none(tmp_path):
    number = {"what": "-1+2", "source": "text", "relation": "<", "printed": "1", "digits": 1}
    comparison = pd.DataFrame([number | {"recomputed": -1.5, "measured": None}])
    write_data(replace(full(), comparison=comparison), recording(), tmp_path)
    assert (tmp_path / "comparison.csv").read_text().endswith("\n'-1+2,text,<,1,1,-1.5,\n")
    assert Recording.read(tmp_path / "trace.json") == recording()


def test_a_long_table_shows_its_first_rows_and_says_so(root, monkeypatch, plain):
    monkeypatch.setattr(page, "MOST_ROWS", 2)
    short = page_of(full(), root)
    assert "The first 2 of " in short
    assert "只列前 2 行" in short
    assert "The first 2 of " not in plain
    assert short.count("<tr>") < plain.count("<tr>")


def test_the_largest_figures_are_png_where_all_would_make_the_page_heavy(monkeypatch, drawn):
    sizes = {name: len(picture["address"]) for name, picture in drawn.items()}
    largest = max(sizes, key=sizes.__getitem__)
    monkeypatch.setattr(rendered, "MOST_BYTES", sum(sizes.values()) - 1)
    lighter = page_figures(full())
    png = [name for name, one in lighter.items() if one["address"].startswith("data:image/png")]
    assert png == [largest]
    assert lighter[largest]["width"] == drawn[largest]["width"]
