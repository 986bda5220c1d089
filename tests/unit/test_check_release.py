"""A release that is not whole is named, error by error."""

import re
from runpy import run_path

import pytest

from ..conftest import ROOT

CHANGELOG = """# Changelog

## Unreleased

## 1.2.0 (2026-11-30)

Rows are of schema version 9.

## 1.1.0 (2026-10-01)

### Measuring

- It measures.
"""
HEAD = "0123456789abcdef0123456789abcdef01234567"
# What the script defines, which is in no package.
SCRIPT = run_path(str(ROOT / ".ci/check_release.py"))


def news(before, after):
    """Return what `changelog_faults` is given: the changelog with a change, and the version."""
    assert before in CHANGELOG
    return CHANGELOG.replace(before, after), "1.2.0"


RELEASED = "1.2.0", "2026-11-30"


@pytest.mark.parametrize(
    ("check", "given", "says"),  # the faults, as regular expressions
    [
        ("changelog", news("Unreleased\n", "Unreleased\n\n- New.\n"),
            [r"CHANGELOG\.md: move the news under Unreleased to 1\.2\.0"]),
        ("changelog", news("1.2.0 (2026-11-30)", "1.3.0 (2026-11-30)"),
            ["the newest version is 1.3.0, not 1.2.0"]),
        ("citation", ({"version": "2.0.0"}, *RELEASED),
            [r"CITATION\.cff: version is 2\.0\.0, not 1\.2\.0", "date-released is None, not 2026"]),
        ("schema", (CHANGELOG, "10"), ["of schema version 10; it says 9"]),
        ("tree", (" M README.md\n?? notes.txt\n",),
            ["not committed: README.md", "not committed: notes.txt"]),
        ("tag", (["v1.1.0", "v1.2.0"], "1.2.0"), ["tag v1.2.0 exists"]),
        ("passed", (HEAD[1:], HEAD), [r"CI_PASSED names .*, and the commit to release is 0123"]),
    ],
)  # fmt: skip
def test_faults_of_a_release_are_named(check, given, says):
    found = SCRIPT[f"{check}_faults"](*given)
    assert len(found) == len(says)
    assert all(map(re.search, says, found)), found


def test_this_checkout_lacks_nothing_but_what_a_release_commits():
    """The news of the next version may be there; all else is whole at any commit."""
    faults = SCRIPT["faults_of_release"](None)
    allowed = ("not committed: ", "tag v", "CHANGELOG.md: move the news")
    assert [fault for fault in faults if not fault.startswith(allowed)] == []
