"""Shipped campaigns and the study's rows are rendered without an engine, models or a compiler."""

import json
import os
import re
import shutil
import subprocess

import pandas as pd
import yaml

from specmoe.analysis.registry import Analysis
from specmoe.paper.documents import render_documents
from specmoe.paper.pdf import missing_tex
from specmoe.runs.schema import read_runs

from ..conftest import CSV, copied, copied_workflow, needs_csv, needs_tex
from .test_workflow import jobs

RENDERED = {"analyse_runs", "audit", "ask", "fill_paper", "render_paper", "paper"}
# The demo's models in the roles of the study's.
OF_STUDY = {
    **{"moe_q4": "smollm2-moe8-f32", "dense_4b": "smollm2-135m-f32"},
    "draft_0.8b": "smollm2-135m-q4",
}
RENDERED |= set() if missing_tex() else {"fill_pdf", "render_pdf"}


@needs_csv
def test_the_published_study_is_analysed_and_shares_an_axis_with_a_shipped_campaign(
    snakemake, demo, tmp_path, root
):
    # Older than what it is compared with, so it is analysed again.
    copied(demo / "results", tmp_path / "results")
    (tmp_path / "mine.yaml").write_text(yaml.safe_dump({"study_rows": str(CSV)}))
    own = [str(root / "config/atomgradient.yaml"), str(tmp_path / "mine.yaml")]
    overlay = str(root / "resources/campaigns/demo/campaign.yaml")
    about_it = f"campaign={{compare_with_study: {json.dumps(OF_STUDY)}}}"
    compared = ["--configfile", overlay, "--config", "compare_with=[atomgradient]", about_it]

    def published(*args):
        return snakemake(*args, "--configfile", *own, folder=tmp_path)

    planned = jobs(published("-n", "paper"))
    assert set(planned) == {*RENDERED, "fetch_study_rows", "import_study_rows", "total"}
    printed = published("results/atomgradient/analysis")
    assert "audit of atomgradient: 306 runs, 216 impossible" in printed
    audit = pd.read_parquet(tmp_path / "results/atomgradient/audit/audit.parquet")
    broken = audit[(audit["check"] == "draft_time") & (audit["verdict"] == "fail")]
    assert broken["suite"].value_counts().to_dict() == {
        "moe_speculative": 144,
        "dense_speculative": 72,
    }

    # A round of the study takes less the more it drafts.
    text = render_documents(Analysis.read(tmp_path / "results/atomgradient/analysis"), [])["main"]
    words = " ".join(text.split())
    assert "9B BF16, a round at $\\gamma$ of 4, 8 and 16 takes 33.3, 19.6 and 15.7~ms" in words
    assert "a round takes 14.1 to 16.1~ms on all targets" in words
    assert "a single token takes them 14.9 to 29.9~ms" in words

    snakemake("results/demo/analysis", *compared, folder=tmp_path)
    folder = tmp_path / "results/demo/analysis"
    times = pd.read_parquet(folder / "required_time.parquet")
    assert times["campaign"].value_counts().to_dict() == {"demo": 468, "atomgradient": 234}
    comparison = pd.read_parquet(folder / "comparison.parquet")
    assert comparison["recomputed"].notna().all()
    assert comparison["measured"].notna().any()
    settings = pd.read_parquet(folder / "compared_settings.parquet")
    assert set(settings["heading"]) == {"demo", "atomgradient"}
    # The recorded configuration of the measurements has no such key.
    assert "compare_with" not in json.loads((tmp_path / "results/demo/campaign.json").read_text())


@needs_tex
def test_the_paper_and_its_supplement_compile_without_a_complaint(demo):
    for document in ("main", "supplement"):
        log = demo / f"results/demo/logs/render_pdf/{document}.tex.log"
        # Undefined references, labels defined twice, and boxes that stand out by 5 pt or more.
        seen = r"Warning: .*(?:undefined on|multiply)|Overfull \\[hv]box \((?:[5-9]|\d\d+)\."
        assert not re.search(seen, log.read_text())
    told = subprocess.check_output(["pdfinfo", demo / "paper/main.pdf"], text=True)
    [pages] = re.findall(r"^Pages: +(\d+)$", told, re.MULTILINE)
    assert 6 <= int(pages) <= 12  # with references and claims


def test_every_shipped_campaign_is_complete_and_documents_count_its_rows(root):
    counts = {}
    for folder in sorted((root / "resources/campaigns").glob("*/")):
        runs = read_runs(folder / "runs.parquet")
        counts[folder.name] = len(runs)
        assert set(runs["campaign"]) == {folder.name}
        assert set(runs["machine"]) == {json.loads((folder / "machine.json").read_text())["id"]}
        assert set(runs["target"]) <= set(json.loads((folder / "models.json").read_text()))
        overlay = yaml.safe_load((folder / "campaign.yaml").read_text())
        assert overlay["campaign"]["source"] == "shipped"
    for line in (root / "ARTIFACT.md").read_text().splitlines():
        named = re.search(r"resources/campaigns/(\S+)/campaign.yaml", line)
        counted = re.search(r"\b(\d+) rows", line)
        if named and counted:
            assert int(counted[1]) == counts.pop(named[1])
    assert not counts


def test_a_packed_campaign_is_rendered_to_the_same_bytes(
    measured, tiny, campaign, snakemake, root, tmp_path_factory
):
    campaign(tiny, "pack_campaign")
    made = [path.relative_to(measured) for path in measured.glob("paper/**/*") if path.is_file()]
    # This copy of the workflow ships the campaign.
    shipped = copied_workflow(tmp_path_factory.mktemp("shipped"))
    shutil.copytree(measured / "results/tiny/packed", shipped / "resources/campaigns/tiny")
    sealed = json.loads((measured / "results/tiny/packed/manifest.json").read_text())
    assert "trace.json" not in sealed  # no demonstration was asked for
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    overlay = str(shipped / "resources/campaigns/tiny/campaign.yaml")
    bare = {key: value for key, value in os.environ.items() if key != "SPECMOE_TEST_ENGINE"}
    there = ["--snakefile", str(shipped / "Snakefile"), "--configfile", overlay]
    assert set(jobs(snakemake("-n", "paper", *there, folder=elsewhere))) == {*RENDERED, "total"}
    asked = ["tables", "paper/figures", *there]
    snakemake(*asked, folder=elsewhere, env=bare)
    for file in made:
        assert (elsewhere / file).read_bytes() == (measured / file).read_bytes(), file
    damaged = shipped / "resources/campaigns/tiny/runs.parquet"
    damaged.write_bytes(damaged.read_bytes()[:-10])
    printed = snakemake(*asked, folder=elsewhere, env=bare, fails=True)
    assert "campaigns/tiny/runs.parquet is not the file that manifest.json names" in printed
