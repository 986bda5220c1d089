"""Messages that send their reader to a section of a document name one that is there."""

import ast
import re

from ..conftest import ROOT

# "(README, A section)" or "(config/README.md, A section)".
REFERENCE = re.compile(r"\(((?:\w+/)?README)(?:\.md)?, ([^)]+)\)")


def texts(file):
    """Return the texts of a program, each with its parts joined."""
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def references(text):
    return REFERENCE.findall(" ".join(text.split()))


def headings(document):
    return re.findall(r"^#+ (.+)$", document.read_text(), re.MULTILINE)


def is_there(document, section):
    return any(heading.startswith(section) for heading in headings(ROOT / f"{document}.md"))


def test_every_section_that_a_message_names_is_there():
    found = {
        reference
        for file in (ROOT / "workflow/scripts").rglob("*.py")
        for text in texts(file)
        for reference in references(text)
    }
    rules = [ROOT / "Snakefile", *(ROOT / "rules").glob("*.smk")]
    found |= {reference for file in rules for reference in references(file.read_text())}
    assert ("README", "Rendered in a minute") in found
    assert [reference for reference in found if not is_there(*reference)] == []


def test_a_section_that_is_gone_is_found():
    [reference] = references("render a campaign (README, The\n reviewer's path). Or not (README).")
    assert not is_there(*reference)
