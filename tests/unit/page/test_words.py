"""The page says everything in both languages, and no number of its own."""

import re
from pathlib import Path

import pytest
import yaml

from specmoe.analysis import advice
from specmoe.analysis.advice import Answer, Controls
from specmoe.analysis.latency import Time
from specmoe.audit.checks import CHECKS
from specmoe.claims import judge, method_notes
from specmoe.claims.taxonomy import Literature, Seen, classify
from specmoe.claims.verdicts import Verdict
from specmoe.config.methods import METHODS, Method
from specmoe.page.page import Chinese, pair, translator
from specmoe.paper.latex import command_name
from specmoe.tables import rows
from specmoe.tables.exhibits import read_figures

from ..paper_analyses import full
from ..rendered_tables import ABOUT_FIGURES, TABLES

FIGURES = read_figures(ABOUT_FIGURES)
# Names and dates, the only digits that a passage may have.
NAMES = r"Qwen3\.5(?:-35B-A3B)?|20\d\d(?: 年 \d+ 月)?|--cores 1"


@pytest.fixture(scope="module")
def sources(root):
    return root / "paper/site"


@pytest.fixture(scope="module")
def chinese(sources):
    return yaml.safe_load((sources / "chinese.yaml").read_text())


def passages(sources, language):
    return re.findall(r"macro (\w+)\(\)", (sources / f"{language}.html.j2").read_text())


def test_both_languages_have_the_same_passages_in_the_same_order(sources):
    assert passages(sources, "english") == passages(sources, "chinese")


def test_every_passage_is_on_the_page(sources):
    index = (sources / "index.html.j2").read_text()
    used = {*re.findall(r'both\("(\w+)"\)', index), "title"}
    assert used == set(passages(sources, "english"))


@pytest.mark.parametrize("language", ["english", "chinese"])
def test_a_passage_has_no_number_but_what_is_computed(sources, language):
    text = (sources / f"{language}.html.j2").read_text()
    prose = re.sub(r"\{\{.*?\}\}|\{%.*?%\}|\{#.*?#\}|</?h\d>", "", text, flags=re.DOTALL)
    assert re.findall(r".{0,20}\d.{0,20}", re.sub(NAMES, "", prose)) == []


def test_page_and_supplement_have_the_sections_of_all_tables_and_figures(sources):
    calls = re.findall(r"exhibits\((.*)\) }}", (sources / "index.html.j2").read_text())
    on_page = re.findall(r'"(\w+)"', " ".join(calls))
    asked = re.findall(r"\\(Exhibits\w+)", (sources.parent / "supplement.tex").read_text())
    sections = {about.section for about in [*TABLES.values(), *FIGURES.values()]}
    # How far drafts held is with the ways of drafting, or with the other results.
    assert sorted(on_page) == sorted([*sections, "positions"])
    assert sorted(asked) == sorted(command_name("exhibits", section) for section in sections)


def test_words_of_figures_are_whole_without_numbers_and_the_data_exists():
    for about in FIGURES.values():
        assert all(hasattr(full(), name) for name in about.data)
        # The English note may number an equation.
        words = [*about.title, about.note.zh, *about.alt]
        assert all([*words, about.note.en])
        assert not re.search(r"\d", " ".join(words))


def said():
    """Return what tables say in words of the program, and what templates look up."""
    words = {
        *(check.words for check in CHECKS.values()),
        *(check.meaning for check in CHECKS.values()),
        *(word for word, _ in rows.CONTROLS.values()),
        *map(str, [*Verdict, *Answer, *Controls, *Time]),
        *rows.CONDITIONS.values(),
        *rows.FAMILY_WORDS.values(),
        *("Total", "all", "yes", "no"),
    }
    return sorted(words)


@pytest.mark.parametrize("words", said())
def test_words_of_tables_have_their_chinese(words, chinese):
    assert words in chinese


def test_what_templates_look_up_has_its_chinese(sources, chinese):
    looked_up = set()
    for name in ("index", "parts"):
        text = (sources / f"{name}.html.j2").read_text()
        looked_up |= set(re.findall(r'\bt\("([^"]+)"\)', text))
        # The second text of a pair is Chinese already.
        alone = re.sub(r'pair\([^{}]*?", "[^"]+"\)|exhibits\(.*\)', "", text)
        looked_up |= set(re.findall(r', "([^"]+)"\) \}\}', alone))
        sections = re.search(r"set sections = \{(.*?)\}", text, re.DOTALL)
        looked_up |= set(re.findall(r': "([^"]+)"', sections[1])) if sections else set()
    assert len(looked_up) > 20
    assert looked_up <= set(chinese)


def test_every_claim_has_its_chinese(root, chinese):
    listed = judge.read_claims(root / "config/claims.yaml").values()
    assert {claim.words for claim in listed} <= set(chinese)


def test_every_word_about_a_way_of_drafting_has_its_chinese(root, chinese):
    literature = Literature.read(
        root / "resources/methods/taxonomy.yaml", root / "paper/references.bib"
    )
    chains = {
        frozenset(map(Method, name.split("+")))
        for system in literature.systems.values()
        for name in system.methods
    }
    words = set()
    for seen in (None, *Seen):
        found = {} if seen is None else dict.fromkeys(chains, seen)
        for source in ("measured", "published"):
            frame = classify(literature, found, source)
            columns = ["name", "draft", "verification", "needs", "hybrids", "remark", "measured"]
            words |= {word for column in columns for word in frame[column].dropna()}
    own_names = {"SpecDec", "DistillSpec", "SpecInfer", "LLMCad", "Draft & Verify", "Medusa"}
    own_names |= {"EAGLE", "EAGLE-2", "EAGLE-3", "GliDe with CaPE", "DFlash", "DSpark", "REST"}
    assert words - set(chinese) == own_names | {"TriForce"}


def test_every_method_whose_name_is_no_name_of_a_system_has_its_chinese(chinese):
    words = {facts.words for facts in METHODS.values()}
    assert words - set(chinese) == {"MTP", "EAGLE-3", "DFlash", "DSpark"}


def test_every_suite_that_ships_has_a_chinese_title(root, chinese):
    titles = set()
    for path in (root / "config").glob("*.yaml"):
        suites = (yaml.safe_load(path.read_text()) or {}).get("suites") or {}
        titles |= {suite["title"] for suite in suites.values() if "title" in suite}
    assert len(titles) > 12
    assert titles <= set(chinese)


@pytest.mark.parametrize("module", [advice, method_notes])
def test_fixed_sentences_of_findings_have_their_chinese(module, chinese):
    text = Path(module.__file__).read_text()
    patterns = {
        advice: r'"((?:no|the|its|every) [a-z][^"]+)"',
        method_notes: r'"([^"]+)": note_',
    }
    sentences = set(re.findall(patterns[module], text))
    assert len(sentences) > 5
    assert sentences <= set(chinese)


def test_every_part_that_a_model_can_have_has_its_chinese(chinese):
    assert {row["role"] for row in rows.models(full()).rows} <= set(chinese)


def test_words_without_chinese_are_shown_as_they_are_and_escaped():
    translate = translator(Chinese({"Target": "目标模型"}))
    assert translate("<b>") == "&lt;b&gt;"
    assert translate("{0.__class__}") == "{0.__class__}"
    assert translate("Target") == pair("Target", "目标模型")


def test_an_entry_with_gaps_translates_what_is_in_them(chinese):
    zh = Chinese(chinese)
    assert zh("n-gram map, by key, n = 3") == "n-gram 映射，按键，n = 3"
    assert zh("Some model (suite B)") == "Some model（B 组）"
    assert zh("live together: 90 blocks") == "同时在线：90 块"


def test_both_languages_of_a_pair_are_escaped_and_say_which_they_are():
    assert pair("<i>", "&") == (
        '<span class="t" lang="en">&lt;i&gt;</span><span class="t" lang="zh-CN">&amp;</span>'
    )
