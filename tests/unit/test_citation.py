"""CITATION.cff follows the Citation File Format 1.2.0, and names what the project stands on."""

import re
import tomllib
from datetime import date

import pytest
import yaml

from ..conftest import ROOT

REQUIRED = {"cff-version", "message", "title", "authors"}
# Of the format's keys and types, those used here; a new one is to be looked up there.
KEYS = REQUIRED | {"type", "abstract", "license", "version", "date-released", "keywords"}
KEYS |= {"references"}
REFERENCE = {"type", "title", "authors", "year", "month", "commit", "repository-code", "journal"}
REFERENCE |= {"volume", "start", "doi", "notes"}
TYPES = {"software", "article", "unpublished"}


@pytest.fixture(scope="module")
def citation():
    return yaml.safe_load((ROOT / "CITATION.cff").read_text())


def test_it_has_the_keys_of_the_format(citation):
    assert REQUIRED <= set(citation) <= KEYS
    assert (citation["cff-version"], citation["type"]) == ("1.2.0", "software")
    assert date.fromisoformat(citation["date-released"])
    for reference in citation["references"]:
        assert {"type", "title", "authors"} <= set(reference) <= REFERENCE
        assert reference["type"] in TYPES


def test_it_has_the_package_s_version_and_license(citation):
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert (citation["version"], citation["license"]) == (project["version"], project["license"])


def test_the_pinned_commits_are_those_that_run(citation, study):
    commits = {work["title"]: work["commit"] for work in citation["references"] if "commit" in work}
    [llama_cpp] = [commit for title, commit in commits.items() if title.startswith("llama.cpp")]
    assert llama_cpp == study["engines"]["current"]["commit"]
    assert study["published"]["commit"] in commits.values()


def test_the_works_are_those_of_the_bibliography(citation):
    text = re.sub(r"[{}]", "", (ROOT / "paper/references.bib").read_text()).casefold()
    for work in citation["references"]:
        assert f"= {work['title'].casefold()}," in text
        if "doi" in work:
            assert work["doi"] in text
