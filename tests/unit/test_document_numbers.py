"""Numbers in documents are those of the shipped campaigns, and each says what it is."""

import re
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import yaml

from specmoe.analysis.advice_text import render_advice
from specmoe.analysis.registry import Analysis
from specmoe.analysis.templates import text_of_experiment
from specmoe.analysis.views import ends, experiment, study_commands
from specmoe.audit.report import audit
from specmoe.cli import analyse

from ..conftest import ROOT, listed, shipped

# What an entry of document_numbers.yaml may be. A document says of the first what it is.
SAID = {"predicted": "predict", "fitted": "fitted"}
# The file that gives the number.
_FILED = {"tested", "benchmark"}
KINDS = {*SAID, *_FILED, "measured", "reported", "setting", "timed", "name", "history"}

_NUMBER = re.compile(
    r"\d+(?:\.\d+)? ?%|\d+\.\d+(?: \[\d+\.\d+, \d+\.\d+\])?|\b\d+ of (?:the study's )?\d+"
    r"|\b\d+ rows\b"
)
_CODE = re.compile(r"```.*?```|`[^`]*`|\]\([^)]*\)", re.DOTALL)

Table = Callable[[str, str], pd.DataFrame]
"""Gives a table of the analysis of a shipped campaign."""


def faults(text: str, entries: list[Mapping[str, Any]], table: Table) -> list[str]:
    """Return what is wrong with the numbers of a document, given its entries."""
    paragraphs = [" ".join(part.split()) for part in _CODE.sub("", text).split("\n\n")]
    whole = " ".join(paragraphs)
    found = []
    for entry in entries:
        says, kind = str(entry["says"]), entry["kind"]
        number = (_NUMBER.search(says) or [says])[0]
        if kind not in KINDS:
            found.append(f"{says}: unknown kind {kind!r}")
        if kind in _FILED and not Path(str(entry.get("file"))).is_file():
            found.append(f"{says}: no file gives it ({entry.get('file')})")
        if says not in whole:
            found.append(f"{says}: no longer in the document")
        word = SAID.get(kind, "")
        if any(says in part and word not in part for part in paragraphs):
            found.append(f"{says}: the document does not say {word!r}")
        if (("campaign" in entry) != (kind in {*SAID, "measured"})) or (
            "campaign" in entry and (now := rendered(entry, table)) != number
        ):
            found.append(f"{says}: not what the campaign says ({entry.get('campaign')}: {now})")
    known = " ".join(str(entry["says"]) for entry in entries)
    numbers = {match.group() for match in _NUMBER.finditer(whole)}
    return found + [f"{number}: from nowhere" for number in sorted(numbers) if number not in known]


def rendered(entry: Mapping[str, Any], table: Table) -> str:
    """Return the number of an entry as its campaign has it now."""
    rows = table(entry["campaign"], entry["table"])
    if "by" in entry:
        rows = rows.groupby(entry["by"]).first()
    chosen = rows.query(entry["where"]) if "where" in entry else rows
    if "rows" in entry:
        return f"{chosen[entry['rows']].sum()} rows"
    if "columns" not in entry:
        return f"{len(chosen)} of {len(rows)}"
    values = chosen[entry["columns"]].drop_duplicates()
    if len(values) != 1:
        return f"{len(values)} values"
    value, *ends = values.to_numpy()[0]
    form = entry.get("form", ".2f")
    text = f"{value:{form}}" + (f" [{ends[0]:{form}}, {ends[1]:{form}}]" if ends else "")
    return text.replace("%", " %")


# Their scripts printed them once.
CHECKED_ELSEWHERE = {"tests/benchmarks/README.md", "resources/drafts/README.md"}
ENTRIES = yaml.safe_load((ROOT / "tests/document_numbers.yaml").read_text())


@pytest.fixture(scope="module")
def analysed(module_folder):
    """Return the analysis of a shipped campaign, in this process."""

    @cache
    def of_campaign(name):
        campaign = shipped(name, module_folder)
        audit(campaign)
        analyse(campaign)
        return Analysis.read(campaign.places.folder / "analysis")

    return of_campaign


@pytest.fixture(scope="module")
def table(analysed):
    """Read a table of the analysis of a shipped campaign."""
    return lambda campaign, name: getattr(analysed(campaign), name)


def test_documents_say_what_answers_papers_and_pages_say(analysed, root):
    answer = render_advice(analysed("demo"), root / "paper/advice.txt.j2", Path()).split()
    rows = re.findall("^SmolLM2 .* %$", (root / "README.md").read_text(), re.MULTILINE)
    assert [" ".join(row.split()) in " ".join(answer) for row in rows] == [True, True]
    words = " ".join((root / "ARTIFACT.md").read_text().split())
    for name in ("demo", "coder"):
        assert text_of_experiment(experiment(analysed(name))).rstrip(".") in words


def test_every_number_of_a_document_comes_from_somewhere(table, root):
    found = {
        document: faults((root / document).read_text(), of, table)
        for document, of in ENTRIES.items()
    }
    assert found == {document: [] for document in ENTRIES}


@pytest.mark.parametrize(
    ("campaign", "number", "always", "inflated", "gains"),
    [
        ("artefact", 14, [1.3, 2.5], [1.0, 1.0, 1.3, 2.5], [8]),
        ("artefact-again", 18, [0.8, 2.8], [0.8, 1.0, 1.4, 2.8], [16, 8, 4]),
    ],
)
def test_failed_decodes_inflate_a_speed(campaign, number, always, inflated, gains, analysed):
    commands = study_commands(analysed(campaign))
    assert commands["inflated"] == pytest.approx(always, abs=0.05)
    failing = pd.DataFrame(commands["failing"])
    assert len(failing) == number
    own = failing["control"] == "self"  # the 8M drafts for itself too
    others = failing[~own]
    found = [*ends(failing.loc[own, "inflation"]), *ends(others["inflation"])]
    assert found == pytest.approx(inflated, abs=0.05)
    assert [len(others), own[0]] == [12, False]
    gaining = others[others["speedup_low"] > 1]
    assert [*gaining["gamma"]] == gains and {*gaining["suite"]} == {"march_tools"}
    assert campaign != "artefact" or gaining["speedup_low"].max() < 1.02


def test_a_document_without_entries_has_no_number(table, root):
    others = {*listed("*.md")} - CHECKED_ELSEWHERE - set(ENTRIES)
    assert "SECURITY.md" in others
    for document in others:
        assert faults((root / document).read_text(), [], table) == [], document


def test_wrong_numbers_are_found(table, root):
    planted = [
        (document, entry) for document, of in ENTRIES.items() for entry in of if "campaign" in entry
    ]
    assert 3 * len(planted) >= 20
    for document, entry in planted:
        text = " ".join((root / document).read_text().split())
        says = entry["says"]
        wrong = re.sub(r"\d", lambda digit: str((int(digit[0]) + 1) % 10), says, count=1)
        assert faults(text.replace(says, wrong), ENTRIES[document], table), says
        assert faults(text, [{**entry, "says": wrong}], table), says
        # A campaign that was measured again has other numbers.
        assert rendered(entry, lambda *of: perturbed(table(*of))) != rendered(entry, table), says


def test_a_number_without_an_entry_or_kind_is_found(table):
    assert faults("It gains 1.23 [1.10, 1.40].", [], table) == ["1.23 [1.10, 1.40]: from nowhere"]
    entry = {"says": "2.5", "kind": "guessed"}
    assert faults("It takes 2.5 s.", [entry], table) == ["2.5: unknown kind 'guessed'"]


def perturbed(frame):
    numbers = frame.select_dtypes("number").columns
    return frame.assign(**{name: frame[name] * 1.5 + 0.5 for name in numbers})
