"""The page says everything in both languages, and no number of its own."""

import re
from pathlib import Path

import pytest
import yaml

from specmoe.analysis import advice, views
from specmoe.analysis.advice import Controls
from specmoe.analysis.decision import Answer
from specmoe.analysis.follow_up import Need
from specmoe.audit.checks import CHECKS
from specmoe.config.methods import METHODS
from specmoe.page.page import Chinese, pair
from specmoe.paper.documents import DOCUMENTS
from specmoe.study.headline import CLAIMS
from specmoe.study.judge import Outcome
from specmoe.tables.exhibits import read_figures

from ...conftest import ROOT
from ..paper_analyses import full
from ..rendered_tables import TABLES

SITE = ROOT / "paper/site"
FIGURES = read_figures()
# Names and dates, the only digits that a passage may have.
NAMES = r"Qwen3\.5(?:-35B-A3B)?|20\d\d(?: 年 \d+ 月)?|--cores 1"
CHINESE = yaml.safe_load((SITE / "chinese.yaml").read_text())


def test_both_languages_have_the_passages_of_the_page_in_the_same_order():
    english, chinese = (
        re.findall(r"macro (\w+)\(\)", (SITE / f"{language}.html.j2").read_text())
        for language in ("english", "chinese")
    )
    assert english == chinese
    used = re.findall(r'both\("(\w+)"\)', (SITE / "index.html.j2").read_text())
    assert {*used, "headline"} == set(english)


def test_a_passage_has_no_number_but_what_is_computed():
    for language in ("english", "chinese"):
        text = (SITE / f"{language}.html.j2").read_text()
        prose = re.sub(r"\{\{.*?\}\}|\{%.*?%\}|\{#.*?#\}|</?h\d>", "", text, flags=re.DOTALL)
        assert re.findall(r".{0,20}\d.{0,20}", re.sub(NAMES, "", prose)) == []


def test_every_table_and_figure_has_one_place_in_paper_or_supplement():
    texts = [(SITE.parent / f"{name}.tex.j2").read_text() for name in DOCUMENTS]
    sections = {about.section for about in [*TABLES.values(), *FIGURES.values()]}
    assert sorted(re.findall(r'<< exhibits\("(\w+)"\) >>', "".join(texts))) == sorted(sections)


def test_words_of_tables_and_figures_are_whole_and_without_numbers():
    words = [word for about in FIGURES.values() for word in (*about.title, *about.alt)]
    words += [word for about in TABLES.values() for word in about.title]
    assert not re.search(r"\d", " ".join(words))
    # Heads and captions may have some.
    words += [word for about in TABLES.values() for one in about.columns for word in one.head]
    assert all([*words, *(about.caption for about in FIGURES.values())])


def program():
    """Return what tables say in words of the program, and what templates look up by name."""
    return {
        *(name.replace("_", " ") for name in CHECKS),
        *(check.meaning for check in CHECKS.values()),
        *views.CONTROLS.values(),
        *map(str, [*Outcome, *Answer, *Controls, *Need]),
        *views.FAMILY_WORDS.values(),
        *views.models(full())["role"],
        *("yes", "no"),
    }


def templates():
    texts = [(SITE / f"{name}.html.j2").read_text() for name in ("index", "parts")]
    return {words for text in texts for words in re.findall(r'\b(?:t|fact)\("([^"]+)"', text)}


def names():
    """Return the words of claims, methods, and the fixed sentences of the advice's reasons."""
    methods = {facts.label for facts in METHODS.values()} - {"MTP", "EAGLE-3", "DFlash", "DSpark"}
    said = Path(advice.__file__).read_text()
    reasons = re.findall(r'"((?:no|the|its|every|most|for) [a-z][^"]+)"', said)
    return {claim.statement for claim in CLAIMS.values()} | methods | {*reasons}


@pytest.mark.parametrize(("said", "least"), [(program, 30), (templates, 12), (names, 18)])
def test_what_is_said_has_its_chinese(said, least):
    words = said()
    assert len(words) >= least
    assert words - set(CHINESE) == set()


def test_words_are_translated_with_what_is_in_their_gaps_and_escaped():
    zh = Chinese(CHINESE)
    assert zh("n-gram map, by key, n = 3") == "n-gram 映射，按键，n = 3"
    assert zh("Some model (suite B)") == "Some model（B 组）"
    assert zh.beside("<b>") == "&lt;b&gt;"
    assert zh.beside("Speedup") == pair("Speedup", "加速比")
