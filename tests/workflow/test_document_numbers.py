"""Numbers in documents are those of the shipped campaigns, and each says what it is."""

import re
import subprocess
from functools import cache

import pandas as pd
import pytest
import yaml

from ..document_numbers import faults, rendered

# Their scripts printed them once.
CHECKED_ELSEWHERE = {"tests/benchmarks/README.md", "resources/drafts/README.md"}


@pytest.fixture(scope="module")
def entries(root):
    return yaml.safe_load((root / "tests/document_numbers.yaml").read_text())


@pytest.fixture(scope="module")
def table(shipped):
    """Read a table of a shipped campaign."""

    @cache
    def read(campaign, name):
        return pd.read_parquet(shipped(campaign) / f"results/{campaign}/analysis/{name}.parquet")

    return read


def test_every_number_of_a_document_comes_from_somewhere(entries, table, root):
    found = {
        document: faults((root / document).read_text(), of, table)
        for document, of in entries.items()
    }
    assert found == {document: [] for document in entries}


def test_a_document_without_entries_has_no_number(entries, table, root):
    tracked = ["git", "ls-files", "*.md"]
    found = subprocess.run(tracked, cwd=root, capture_output=True, text=True, check=True)
    others = set(found.stdout.split()) - CHECKED_ELSEWHERE - set(entries)
    assert "SECURITY.md" in others
    for document in others:
        assert faults((root / document).read_text(), [], table) == [], document


def test_wrong_numbers_are_found(entries, table, root):
    planted = [
        (document, entry) for document, of in entries.items() for entry in of if "campaign" in entry
    ]
    assert 3 * len(planted) >= 20
    for document, entry in planted:
        text = " ".join((root / document).read_text().split())
        says = entry["says"]
        wrong = re.sub(r"\d", lambda digit: str((int(digit[0]) + 1) % 10), says, count=1)
        assert faults(text.replace(says, wrong), entries[document], table), says
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
