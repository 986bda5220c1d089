"""The page is one harmless file: it loads nothing, and no name of a campaign runs in it."""

import re
from base64 import b64encode
from dataclasses import replace
from hashlib import sha256
from html.parser import HTMLParser
from json import dumps

import pandas as pd
import pytest

from specmoe.measure.trace import Recording, Round
from specmoe.page import page
from specmoe.page.page import data_names, render_page, whatif_pairs, write_data

from .. import paper_analyses as made
from ..paper_analyses import advised, controlled, costed, full, of_campaign, without_drafts

HOSTILE = """</script><script>planted()</script>" onload='planted()' %&#_ {{ 7 * 7 }} ${7*7}"""
VOID = {"meta", "link", "img", "source", "br", "rect", "path", "input"}


def page_of(analysis, figures=None, recording=None):
    """Return the page of an analysis, without figures and demonstration unless they are given."""
    return render_page(analysis, figures or {}, recording)


def recording(**more):
    """Return a record of a demonstration in which everything happens that can; fields replaced."""
    words = [" one", "two", "\n", "\ufffd", "", "\x1b[31m", "seven", "<b>"]
    made = Recording(
        version=5,
        target="MoE Q4",
        draft="0.8B",
        synthetic=True,
        gamma=4,
        prompt_tokens=3,
        prompt_text="Say  <script>alert(1)</script>\n\x1b[2J now",
        first=7,
        rounds=(
            Round((1, 2, 3, 4), 4, 5),  # all accepted
            Round((1, 2, 3, 8), 2, 6),  # two accepted
            Round((1, 2), 0, 8),  # none accepted
            Round((), 0, 7),  # nothing drafted: there is no room
        ),
        token_texts=dict(enumerate(words, 1)),
    )
    return made.model_copy(update=more)


def test_a_number_without_an_interval_leaves_no_hole_in_a_sentence():
    said = re.findall(r"<p>.*?</p>", page_of(made.with_experiment(wide=True)), re.DOTALL)
    for words in ("too few repeats", "遍数太少，说不准"):
        assert any(f"({words})" in passage for passage in said)
        assert not any(re.search(f"[^(]{words}", passage) for passage in said)


PICTURE = {"address": "data:,wide", "width": 63, "height": 40}


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

    def handle_endtag(self, tag):
        assert tag in VOID or self.open.pop() == tag

    def handle_data(self, data):
        self.words.append(data)

    def attributes(self, *names):
        return [attrs[name] for _, attrs in self.elements for name in names if attrs.get(name)]


@pytest.mark.parametrize(
    "make", [full, made.compared, controlled, costed, made.several_methods, without_drafts]
)
def test_every_campaign_has_a_whole_page(make):
    page = Reader(page_of(make()))
    assert "nan" not in re.findall(r"[a-z]+", "".join(page.words).lower())
    ids = page.attributes("id")
    assert len(ids) == len(set(ids))
    assert {href[1:] for href in page.attributes("href") if href.startswith("#")} <= set(ids)
    assert set(" ".join(page.attributes("aria-labelledby")).split()) <= set(ids)
    assert ("table-speculation" in ids) == (make is not without_drafts)
    assert ("whatif" in ids) == (make is costed)


def test_the_page_loads_nothing_and_links_only_to_its_data():
    page = Reader(page_of(full(), {"speedup_by_gamma": PICTURE}, recording()))
    assert sum(attrs.get("class") == "trace" for _, attrs in page.elements) == 1
    assert sum(tag == "script" for tag, _ in page.elements) == 1
    assert all(address.startswith("data:") for address in page.attributes("src"))
    links = {link for link in page.attributes("href") if not link.startswith(("#", "data/"))}
    assert links == {"data:,", "?lang=zh-CN"}
    assert {link for link in page.attributes("href") if link.startswith("data/")} == {
        *(f"data/{name}.csv" for name in ("columns", *data_names(full()))),
        "data/trace.json",
    }


def test_the_policy_allows_this_script_and_this_style_and_nothing_else():
    plain = page_of(full())
    heads = [attrs for _, attrs in Reader(plain).elements if "http-equiv" in attrs]
    [policy] = [a["content"] for a in heads if a["http-equiv"] == "Content-Security-Policy"]
    assert policy.startswith("default-src 'none'; img-src data:; ")
    for tag in ("script", "style"):
        [inline] = re.findall(f"<{tag}>(.*?)</{tag}>", plain, re.DOTALL)
        name = b64encode(sha256(inline.encode()).digest()).decode()
        assert f"{tag}-src 'sha256-{name}'" in policy
    assert not re.search(r"<[^>]+\s(style|on\w+)=", plain)


def ones_own(analysis):
    """Return the analysis as one of models that the study knows nothing of."""
    none = pd.DataFrame()
    own = of_campaign(analysis, is_study=False, synthetic=False)
    return replace(own, claims=none, comparison=none)


def test_a_page_of_ones_own_models_answers_first_and_leaves_the_study_out():
    text = page_of(advised(ones_own(full())), {"speedup_by_gamma": PICTURE})
    words = "".join(Reader(text).words)
    assert "<title" in text
    assert "MoE Q4 runs 1.40× as fast with Draft 0.8B" in words
    assert "MoE Q4 用 Draft 0.8B 快到 1.40 倍" in words
    ids = ["answers", "why", "figure-speedup_by_gamma", "trust", "data", "how"]
    places = [text.index(f'id="{name}"') for name in ids]
    assert places == sorted(places)
    assert not re.search(r"study|研究", words.replace("the study's protocol", ""))
    assert text.index("llama-server -m a.gguf") < text.index('id="why"')


@pytest.mark.parametrize(
    ("answer", "missing", "headline"),
    [
        ("switch on", None, "MoE Q4 runs 1.40× as fast with Draft 0.8B on code"),
        ("leave off at these γ", None, "No setting tested makes MoE Q4 faster on code: 1.40×"),
        ("leave off at these γ", 1, "1.40×; 1 of 3 settings could not be compared"),
        ("little to gain", None, "MoE Q4: little to gain; the best settings reach 1.40×"),
        ("undecided", None, "MoE Q4: undecided; the best settings reach 1.40×"),
        (
            "not known",
            2,
            "MoE Q4: not known; the best settings reach 1.40×; 2 of 3 settings could not",
        ),
    ],
)
def test_the_headline_says_the_answer_and_what_it_is_without(answer, missing, headline):
    text = page_of(advised(ones_own(full()), answer=answer, not_compared=missing))
    assert headline in text.partition("<h1>")[2].partition("</h1>")[0]


def test_what_is_excluded_on_purpose_is_named_in_both_languages():
    text = page_of(of_campaign(full(), excluded_runs=2, excluded="N/draft"))
    assert "Excluded by the configuration: 2 runs, of N/draft." in text
    assert "配置排除了 2 次运行：N/draft" in text


def test_passes_stand_beside_upcycled_pairs_with_their_share_of_reading():
    text = page_of(made.with_upcycled_pairs(), {"upcycled_pairs": PICTURE})
    table = text.partition('id="table-pass_times"')[2].partition("</table>")[0]
    assert re.findall(r"<tr>.*?</tr>", table, re.DOTALL)[-1].count("<td") == 5
    assert "Reading (%)" in table
    assert "Each pass had a new graph" in text
    assert "a new graph" not in page_of(costed())
    assert "how much of a pass's time reading takes" in text
    assert "the kernel that multiplies by experts" in text


def test_a_single_repeat_is_shown_without_a_word_of_intervals():
    once = advised(of_campaign(made.single(), repeats=1), target="dense_4b")
    assert "interval" not in re.sub("<script>.*?</script>", "", page_of(once), flags=re.DOTALL)


def test_an_axis_holds_all_intervals_and_one():
    ends = [{"speedup": 0.5, "speedup_high": 0.6}, {"speedup": 2.0, "speedup_high": float("nan")}]
    top, ticks = page.scale(ends)
    assert 2 < top < 2.2
    assert ticks == [0.5, 1.0, 1.5, 2.0]
    assert page.scale([]) == (pytest.approx(1.272), [])
    # One that is too wide to be printed runs off it.
    assert page.scale([{"speedup": 0.5, "speedup_high": 200.0}])[0] == pytest.approx(2.12)


def test_the_first_screen_says_whether_controls_passed_and_nothing_of_those_there_are_none():
    def head(analysis):
        lead = page_of(analysis).partition('<div class="lead">')[2].partition("<nav")[0]
        return " ".join("".join(Reader(f"<div>{lead}").words).split())

    assert "controls passed" in head(controlled())
    assert "controls FAILED" in head(controlled(failed=1))
    assert not re.search(r"[Cc]ontrol|对照", head(full()))
    assert "Controls failed." in page_of(controlled(failed=1))


def test_the_data_are_written_as_they_are_and_a_formula_does_not_run(tmp_path):
    analysis = made.relabelled(full(), "moe_q4", '=HYPERLINK("x"),\n</script>')
    analysis = replace(analysis, models=analysis.models.assign(experts=-1))
    write_data(analysis, recording(), tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {
        *(f"{name}.{end}" for name in data_names(analysis) for end in ("csv", "parquet")),
        "columns.csv",
        "trace.json",
    }
    said = pd.read_csv(tmp_path / "columns.csv").set_index(["table", "column"])
    assert said.loc[("models", "experts"), ["type", "meaning"]].tolist() == ["count", "of a layer"]
    pd.testing.assert_frame_equal(pd.read_parquet(tmp_path / "models.parquet"), analysis.models)
    read = pd.read_csv(tmp_path / "models.csv").set_index("model").loc["moe_q4"]
    assert read["label"] == '\'=HYPERLINK("x"),\n</script>'
    assert (read["size_bytes"], read["experts"]) == (20_600_000_000, -1)
    assert Recording.read(tmp_path / "trace.json") == recording()


def test_a_long_table_shows_its_first_rows_and_says_so(monkeypatch):
    plain = page_of(full())
    monkeypatch.setattr(page, "MOST_ROWS", 2)
    short = page_of(full())
    assert ">2 of " in short
    assert "只列 2 行" in short
    assert ">2 of " not in plain
    assert short.count("<tr>") < plain.count("<tr>")


def test_a_single_repeat_is_null_in_the_json():
    costs = costed().fitted_costs
    once = replace(
        costed(), fitted_costs=costs[costs["without_repeat"] == 0].assign(quantile=float("nan"))
    )
    pairs = [*whatif_pairs(once)]
    assert [(pair["quantile"], pair["without"]) for pair in pairs] == [(None, [])] * 2
    dumps(pairs, allow_nan=False)


def test_measured_settings_are_those_of_the_pair():
    moe, dense = whatif_pairs(costed())
    assert [setting["gamma"] for setting in moe["settings"]] == [4, 16]
    assert [setting["gamma"] for setting in dense["settings"]] == [4]
    assert all(setting["own"] and 0 < setting["rate"] < 1 for setting in moe["settings"])
