"""The package's rooms stand in the order data flows: a later one may import an earlier one."""

import ast

import pytest

from ..conftest import ROOT

PACKAGE = ROOT / "workflow/scripts/specmoe"
ROOMS = [
    *("config", "models", "engine", "plan", "measure", "runs"),
    *("audit", "analysis", "figures", "tables", "paper", "page", "study"),
]
# Either may import all before both, and neither the other.
APART = [{"plan", "measure"}, {"figures", "tables"}]


def imported_rooms(file):
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("specmoe."):
            yield node.module.split(".")[1]


def test_every_folder_of_the_package_is_a_room():
    folders = {path.name for path in PACKAGE.iterdir() if path.is_dir()} - {"__pycache__"}
    assert folders == set(ROOMS)


@pytest.mark.parametrize("room", ROOMS)
def test_a_room_imports_no_later_one(room):
    allowed = set(ROOMS[: ROOMS.index(room) + 1])
    for pair in APART:
        if room in pair:
            allowed -= pair - {room}
    wrong = [
        f"{file.name} imports {of}"
        for file in sorted((PACKAGE / room).glob("*.py"))
        for of in imported_rooms(file)
        if of in ROOMS and of not in allowed
    ]
    assert wrong == []


def test_what_stands_at_the_root_imports_no_room_but_for_the_verbs():
    for file in set(PACKAGE.glob("*.py")) - {PACKAGE / "cli.py"}:
        assert not set(imported_rooms(file)) & set(ROOMS), file
