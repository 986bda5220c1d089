"""CITATION.cff names what the project stands on; pins agree."""

import re

import yaml

from specmoe.study.study_rows import COMMIT

from ..conftest import ROOT

CITATION = yaml.safe_load((ROOT / "CITATION.cff").read_text())


def test_the_pinned_commits_are_those_that_run(study):
    commits = {work["title"]: work["commit"] for work in CITATION["references"] if "commit" in work}
    [llama_cpp] = [commit for title, commit in commits.items() if title.startswith("llama.cpp")]
    assert llama_cpp == study["engines"]["current"]["commit"]
    assert COMMIT in commits.values()


def test_the_works_are_those_of_the_bibliography():
    text = re.sub(r"[{}]", "", (ROOT / "paper/references.bib").read_text()).casefold()
    for work in CITATION["references"]:
        assert f"= {work['title'].casefold()}," in text
        if "doi" in work:
            assert work["doi"] in text


def test_every_locked_package_has_a_digest_and_jobs_have_the_same_pins(root):
    text = (root / "requirements.txt").read_text()
    entries = re.split(r"\n(?=[a-z0-9])", text)
    assert all("--hash=sha256:" in entry for entry in entries if "==" in entry)
    assert "://" not in text
    assert "--index-url" not in text
    environment = yaml.safe_load((root / "envs/jobs.yaml").read_text())
    [packages] = [entry["pip"] for entry in environment["dependencies"] if isinstance(entry, dict)]
    assert {*packages} <= {*re.findall(r"^[a-z0-9_.-]+==[^\s\\;]+", text, re.MULTILINE)}
