"""Documents, docstrings and captions in plain English, with one word for one thing."""

import ast
import re

import pytest

from specmoe.tables.exhibits import read_figures

from ..conftest import ROOT, listed
from .rendered_tables import TABLES

FIGURES = read_figures()
MOST_WORDS = 25
# A question or a clause says what a reader would ask, and not what is there.
CLAUSES = ("What", "How", "Whether", "Who", "Which", "When", "Where", "Why", "In what")
# Each: what documents do not say, as a regular expression, and what they say instead.
BANNED = {
    r"\b(?:a|an|the|no|each|every|any|another|other|its|two) drafts?\b(?!-time| (?:model|token|"
    r"length|scor|head|catch|tree|time|and verif))": "draft model, draft tokens, no speculation",
    r"\btargets? alone\b": "baseline",
    r"\b(?:is|are|audit) mark(?:s|ed)\b|\bthe audit marks\b": "flagged",
    r"\bcells?\b": "setting",
    r"\btwins?\b": "dense counterpart, upcycled pair",
    r"\bsittings?\b": "session",
    r"\bstrangers?\b": "unrelated",
    r"\bways? of drafting\b": "drafting method",
    r"\bset aside\b|\bleft out on purpose\b": "excluded",
    r"\btrue (?:run|size|speed|shape)s?\b": "valid run, full size",
    r"\bmemory binds\b": "memory bandwidth is the limit",
    r"\bequal experts\b": "identical experts",
    r"\banew\b|\bseldom\b|\blikewise\b|\bof before\b": "again, rarely, in the same way, earlier",
}
LINES = {"README.md": 120, "config/README.md": 320}
MOST_LINES = 100  # of other documents: two screens


def shipped(*endings):
    return [one for one in listed() if one.endswith(endings) and (ROOT / one).is_file()]


# The history, what is generated from docstrings, and what a model wrote.
APART = ("CHANGELOG.md", "config/reference.md", "resources/drafts/", "resources/prompts/")
DOCUMENTS = [name for name in shipped(".md") if not name.startswith(APART)]
TEMPLATES = [name for name in shipped(".j2") if "chinese" not in name]


def prose(name):
    """Return the text of a document or template, without code, commands and values."""
    text = (ROOT / name).read_text()
    patterns = [r"```.*?```", r"`[^`\n]*`", r"<#.*?#>|\{#.*?#\}", r"<%.*?%>|\{%.*?%\}"]
    patterns += [r"<<.*?>>|\{\{(?! pair).*?\}\}"]
    for pattern in patterns:
        text = re.sub(pattern, " ", text, flags=re.DOTALL)
    return " ".join(text.split())


@pytest.mark.parametrize("name", [*DOCUMENTS, *TEMPLATES])
def test_a_document_has_one_word_for_one_thing(name):
    text = prose(name)
    found = {
        text[max(match.start() - 30, 0) : match.end() + 20]: instead
        for banned, instead in BANNED.items()
        for match in re.finditer(banned, text, re.IGNORECASE)
    }
    assert found == {}


@pytest.mark.parametrize("name", DOCUMENTS)
def test_a_document_is_short_and_so_are_its_sentences(name):
    text = (ROOT / name).read_text()
    assert len(text.splitlines()) <= LINES.get(name, MOST_LINES)
    text = re.sub(r"```.*?```", "", text, flags=re.DOTALL)
    text = re.sub(r"^(?:\||#|!).*$", "", text, flags=re.MULTILINE)
    sentences = [one.split() for one in re.split(r"(?<=[.:;?])\s+|\n\n|\n\s*- ", text)]
    lengths = [len(words) for words in sentences if words]
    assert sum(lengths) / max(len(lengths), 1) < 17


def test_captions_are_of_25_words_and_so_is_each_of_their_notes():
    captions = [about.caption for about in [*TABLES.values(), *FIGURES.values()]]
    for caption in captions:
        while note := re.search(r"<% if [^%]*%>(?:(?!<% if).)*?<% endif %>", caption, re.DOTALL):
            notes = re.sub(r"<%.*?%>", " ", note[0])
            assert len(notes.split()) <= MOST_WORDS, notes
            caption = caption[: note.start()] + caption[note.end() :]
        assert len(caption.split()) <= MOST_WORDS, caption


@pytest.mark.parametrize("name", shipped(".py"))
def test_a_modules_docstring_is_a_noun_phrase(name):
    text = ast.get_docstring(ast.parse((ROOT / name).read_text())) or ""
    assert not re.match(rf"(?:{'|'.join(CLAUSES)})\b", text)


@pytest.mark.parametrize("name", DOCUMENTS)
def test_a_file_that_a_document_names_exists(name):
    folders = "config|envs|profiles|resources|rules|tests|workflow"
    named = re.findall(rf"`((?:{folders})/[\w./-]+)`", (ROOT / name).read_text())
    beside = (ROOT, ROOT / "tests", ROOT / "workflow/scripts/specmoe")
    made = "config/my-models.yaml"
    lost = [one for one in named if not any((folder / one).exists() for folder in beside)]
    assert set(lost) <= {made}
