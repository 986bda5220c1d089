"""The packages stand in the order data flows: a later one may import an earlier one."""

import ast
import re

import pytest

from ..conftest import ROOT

SOURCE = ROOT / "workflow/scripts/specmoe"
PACKAGES = [
    *("config", "models", "hardware", "engine", "campaign", "plan", "measure", "runs"),
    *("audit", "analysis", "figures", "tables", "paper", "page", "study"),
]
# Either may import all before both, and neither the other.
APART = {"figures", "tables"}


def imported_packages(file):
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("specmoe."):
            yield node.module.split(".")[1]


def test_every_folder_is_a_package_that_says_what_comes_in_and_what_goes_out():
    signs = {file.parent.name: file.read_text() for file in SOURCE.glob("*/__init__.py")}
    assert set(signs) == set(PACKAGES)
    for text in signs.values():
        assert re.fullmatch(r'"""[A-Za-z].*\.\n\nIn: .*\.\nOut: .*\.\n"""\n', text)


@pytest.mark.parametrize("package", PACKAGES)
def test_a_package_imports_no_later_one(package):
    allowed = set(PACKAGES[: PACKAGES.index(package) + 1])
    if package in APART:
        allowed -= APART - {package}
    wrong = [
        f"{file.name} imports {other}"
        for file in sorted((SOURCE / package).glob("*.py"))
        for other in imported_packages(file)
        if other in PACKAGES and other not in allowed
    ]
    assert wrong == []


def test_modules_beside_the_packages_import_none_but_for_the_verbs():
    for file in set(SOURCE.glob("*.py")) - {SOURCE / "cli.py"}:
        assert not set(imported_packages(file)) & set(PACKAGES), file
