"""CITATION.cff follows its format 1.2.0 and names what the project stands on; pins agree."""

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


def test_it_has_the_package_s_license(citation):
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert citation["license"] == project["license"]


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


def pins(text: str) -> dict[str, str]:
    return dict(re.findall(r"^([a-z0-9_.-]+)==([^\s\\;]+)", text, re.MULTILINE))


def test_the_environment_of_jobs_has_the_pins_of_requirements_txt(root):
    locked = pins((root / "requirements.txt").read_text())
    environment = yaml.safe_load((root / "envs/jobs.yaml").read_text())
    [packages] = [entry["pip"] for entry in environment["dependencies"] if isinstance(entry, dict)]
    for package, version in pins("\n".join(packages)).items():
        assert locked[package] == version
    assert len(pins("\n".join(packages))) == len(packages)


def test_every_locked_package_has_a_digest_and_no_host_is_named(root):
    text = (root / "requirements.txt").read_text()
    entries = re.split(r"\n(?=[a-z0-9])", text)
    assert all("--hash=sha256:" in entry for entry in entries if "==" in entry)
    assert "://" not in text
    assert "--index-url" not in text
