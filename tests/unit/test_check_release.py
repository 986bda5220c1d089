"""A release that is not whole is named, fault by fault."""

import importlib.util
import shutil

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
CITATION = {"version": "1.2.0", "date-released": "2026-11-30"}
HEAD = "0123456789abcdef0123456789abcdef01234567"


@pytest.fixture(scope="module")
def release():
    """The script, which is in no package."""
    spec = importlib.util.spec_from_file_location("release", ROOT / ".ci/check_release.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_sections_have_their_version_date_and_text(release):
    unreleased, newest, older = release.sections_of(CHANGELOG)
    assert unreleased == ("Unreleased", "", "")
    assert newest == ("1.2.0", "2026-11-30", "Rows are of schema version 9.")
    assert older.text == "### Measuring\n\n- It measures."


@pytest.mark.parametrize(
    ("before", "after", "says"),
    [
        ("Unreleased\n", "Unreleased\n\n- New.\n", "move the news under Unreleased to 1.2.0"),
        ("1.2.0 (2026-11-30)", "1.3.0 (2026-11-30)", "the newest version is 1.3.0, not 1.2.0"),
        ("1.2.0 (2026-11-30)", "1.2.0 (soon)", "1.2.0 has no date"),
        ("1.2.0 (2026-11-30)", "1.2.0", "1.2.0 has no date"),
        ("Rows are of schema version 9.\n", "", "nothing is said of 1.2.0"),
    ],
)
def test_a_fault_of_the_changelog_is_named(release, before, after, says):
    assert before in CHANGELOG
    assert release.changelog_faults(CHANGELOG, "1.2.0") == []
    [fault] = release.changelog_faults(CHANGELOG.replace(before, after), "1.2.0")
    assert says in fault


def test_a_changelog_without_a_version_is_named(release):
    [fault] = release.changelog_faults("# Changelog\n\n## Unreleased\n", "1.2.0")
    assert fault == "CHANGELOG.md: the newest version is none, not 1.2.0"


@pytest.mark.parametrize("key", CITATION)
def test_a_citation_of_another_release_is_named(release, key):
    assert release.citation_faults(CITATION, "1.2.0", "2026-11-30") == []
    for wrong in ({}, {key: "2.0.0"}):
        citation = {name: text for name, text in CITATION.items() if name != key} | wrong
        [fault] = release.citation_faults(citation, "1.2.0", "2026-11-30")
        assert fault == f"CITATION.cff: {key} is {citation.get(key)}, not {CITATION[key]}"


def test_rows_of_a_schema_that_the_changelog_leaves_out_are_named(release):
    assert release.schema_faults(CHANGELOG, "9") == []
    # A later release need not say it again.
    assert release.schema_faults("Nothing.\n" + CHANGELOG + "schema version 8", "9") == []
    for version in ("10", "8"):
        [fault] = release.schema_faults(CHANGELOG, version)
        assert fault.endswith(f"of schema version {version}; it says 9")
    [fault] = release.schema_faults("Nothing.", "9")
    assert fault.endswith("it says none")


def test_a_campaign_that_changed_is_named(release, tmp_path):
    folder = tmp_path / "demo"
    shutil.copytree(ROOT / "resources/campaigns/demo", folder)
    assert release.campaign_faults(folder) == []
    (folder / "host.json").write_text("{}")
    [fault] = release.campaign_faults(folder)
    assert fault.startswith(f"{folder / 'host.json'} is not the file that manifest.json names")
    (folder / "manifest.json").unlink()
    assert "is no list of files" in release.campaign_faults(folder)[0]


def test_what_is_not_committed_is_named(release):
    assert release.tree_faults("") == []
    status = " M README.md\n?? notes.txt\n"
    assert release.tree_faults(status) == ["not committed: README.md", "not committed: notes.txt"]


def test_a_version_is_released_once(release):
    assert release.tag_faults(["v1.1.0", "v1.2.0-rc1"], "1.2.0") == []
    assert len(release.tag_faults(["v1.1.0", "v1.2.0"], "1.2.0")) == 1


def test_only_the_commit_to_release_counts_as_tested(release):
    assert release.passed_faults(HEAD, HEAD) == []
    assert release.passed_faults(HEAD[:7], HEAD) == []
    for other in ("f" * 40, HEAD[:6], "", HEAD[1:]):
        assert len(release.passed_faults(other, HEAD)) == 1


def test_this_checkout_lacks_nothing_but_what_a_release_commits(release):
    """The news of the next version may be there; all else is whole at any commit."""
    faults = release.faults_of_release(None)
    allowed = ("not committed: ", "tag v", "CHANGELOG.md: move the news")
    assert [fault for fault in faults if not fault.startswith(allowed)] == []
