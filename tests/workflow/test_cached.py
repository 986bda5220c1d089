"""Campaigns that others measured: rendered without an engine, models or a compiler."""

import json
import os
import shutil

import pandas as pd
import pytest
import yaml

from specmoe.paper.pdf import missing_tex
from specmoe.runs.schema import read_runs

from ..tex import needs_tex
from ..unit.published_study import CSV, needs_csv
from .conftest import SOUND_DEMO, pages, untimed_verdicts
from .test_workflow import jobs, words

RENDERED = {"analyse_runs", "audit_runs", "plot_figures", "record_config", "render_tables", "paper"}
RENDERED |= {"claim_paper", "render_share"}
RENDERED |= set() if missing_tex() else {"render_pdf"}


@pytest.fixture
def published(snakemake, tmp_path, root):
    """Run snakemake on the published campaign, with the authors' file given."""
    (tmp_path / "mine.yaml").write_text(yaml.safe_dump({"published": {"file": str(CSV)}}))
    overlay = str(root / "config/published.yaml")

    def run(*args):
        files = ["--configfile", overlay, str(tmp_path / "mine.yaml")]
        return snakemake(*args, *files, folder=tmp_path)

    return run


@needs_csv
def test_the_published_study_is_rendered_from_its_own_rows(published, tmp_path):
    planned = jobs(published("-n", "paper"))
    assert set(planned) == {*RENDERED, "fetch_published", "import_published", "total"}
    done = published("paper")
    assert done.returncode == 0, words(done)
    assert "Audit of campaign published: 306 rows" in words(done)
    audit = pd.read_parquet(tmp_path / "results/published/audit/audit.parquet")
    broken = audit[(audit["check"] == "draft_time") & (audit["verdict"] == "fail")]
    assert broken["suite"].value_counts().to_dict() == {"B": 144, "D": 72}
    assert "MoE Q4" in (tmp_path / "paper/tables/speculation.tex").read_text()
    assert "Nothing to be done" in words(published("paper"))


@needs_csv
def test_the_demo_and_the_published_study_come_on_one_axis(published, snakemake, tmp_path, root):
    overlay = str(root / "resources/campaigns/demo/campaign.yaml")

    def demo(*args):
        compared = ["--config", "compare_with=[published]"]
        return snakemake(*args, "--configfile", overlay, *compared, folder=tmp_path)

    refused = demo("-n", "paper")
    assert refused.returncode != 0
    told = "ConfigError: config: compare_with: there is no results/published/analysis; render"
    first = f"{told} campaign 'published' first: snakemake --cores 1 paper --configfile "
    assert first in words(refused)
    assert published("results/published/analysis").returncode == 0
    assert set(jobs(demo("-n", "paper"))) == {*RENDERED, "total"}
    done = demo("results/demo/analysis")
    assert done.returncode == 0, words(done)
    folder = tmp_path / "results/demo/analysis"
    times = pd.read_parquet(folder / "required_time.parquet")
    assert times["campaign"].value_counts().to_dict() == {"demo": 258, "published": 234}
    compared = pd.read_parquet(folder / "comparison.parquet")
    assert compared[["recomputed", "measured"]].notna().all(axis=None)
    # Both have the study's cells, over the same prompts.
    cells = pd.read_parquet(folder / "side_by_side.parquet")
    assert cells[cells["campaigns"] == 2]["heading"].value_counts().to_dict() == {
        "demo": 18,
        "published": 18,
    }
    # The configuration that rows are measured by has nothing of it.
    assert "compare_with" not in json.loads((tmp_path / "results/demo/config.json").read_text())


def test_campaigns_of_ones_own_come_side_by_side_if_this_release_rendered_them(
    snakemake, tmp_path, root
):
    def rendered(name, *targets, compare_with=()):
        overlay = str(root / f"resources/campaigns/{name}/campaign.yaml")
        given = ["--config", f"compare_with=[{','.join(compare_with)}]"]
        return snakemake(*targets, "--configfile", overlay, *given, folder=tmp_path)

    results = tmp_path / "results"
    assert rendered("mechanism", "results/mechanism/analysis").returncode == 0
    newest = results / "mechanism/analysis/side_by_side.parquet"
    kept = newest.read_bytes()
    newest.unlink()
    refused = rendered("demo", "site", compare_with=["mechanism"])
    told = "SchemaError: results/mechanism/analysis/side_by_side.parquet is not there; render that"
    assert refused.returncode != 0
    assert told in words(refused)
    assert "Traceback" not in words(refused)
    newest.write_bytes(kept)
    done = rendered("demo", "site", "paper/tables/side_by_side.tex", compare_with=["mechanism"])
    assert done.returncode == 0, words(done)
    assert 'id="table-side_by_side"' in (results / "demo/site/index.html").read_text()
    assert "mechanism" in (tmp_path / "paper/tables/side_by_side.tex").read_text()
    done = rendered("demo", "site")
    assert done.returncode == 0, words(done)
    assert "side_by_side" not in (results / "demo/site/index.html").read_text()


def test_the_shipped_demo_breaks_no_check_of_the_audit_that_does_not_rest_on_time(
    snakemake, tmp_path, root
):
    overlay = str(root / "resources/campaigns/demo/campaign.yaml")
    done = snakemake("results/demo/audit", "--configfile", overlay, folder=tmp_path)
    assert done.returncode == 0, words(done)
    assert untimed_verdicts(tmp_path / "results/demo") == SOUND_DEMO


@pytest.mark.parametrize(
    ("name", "rows", "targets", "true_shape"),
    [
        ("true-shape", 147, {"moe_q4", "dense_4b"}, True),
        ("mechanism", 669, {"moe_q4", "moe_q8", "dense_4b", "dense_9b"}, False),
    ],
)
def test_a_shipped_campaign_of_costs_passes_its_audit_and_tells_what_passes_cost(
    snakemake, tmp_path, root, name, rows, targets, true_shape
):
    overlay = str(root / f"resources/campaigns/{name}/campaign.yaml")
    done = snakemake(f"results/{name}/analysis", "--configfile", overlay, folder=tmp_path)
    assert done.returncode == 0, words(done)
    assert f"Audit of campaign {name}: {rows} rows" in words(done)
    assert "No row breaks a bound" in words(done)
    assert "Controls: passed" in words(done)
    folder = tmp_path / f"results/{name}/analysis"
    passes = pd.read_parquet(folder / "verification.parquet")
    assert set(passes["target"]) == targets
    assert {2, 3, 5, 9, 17} <= set(passes["width"])
    campaign = pd.read_parquet(folder / "campaign.parquet")
    assert campaign["synthetic"].all()
    assert (campaign["true_shape"] == true_shape).all()


@needs_tex
@pytest.mark.parametrize("name", ["true-shape", "mechanism"])
def test_the_paper_of_a_shipped_campaign_is_as_long_as_one_that_is_submitted(
    snakemake, tmp_path, root, name
):
    overlay = str(root / f"resources/campaigns/{name}/campaign.yaml")
    done = snakemake("paper/main.pdf", "--configfile", overlay, folder=tmp_path)
    assert done.returncode == 0, words(done)
    assert 6 <= pages(tmp_path / "paper/main.pdf") <= 10


def test_the_shipped_demo_is_advised_without_an_engine(snakemake, tmp_path, root):
    overlay = str(root / "resources/campaigns/demo/campaign.yaml")
    done = snakemake("advise", "--configfile", overlay, folder=tmp_path)
    assert done.returncode == 0, words(done)
    advice = json.loads((tmp_path / "results/demo/advice.json").read_text())
    told = {"switch on": "switch it on", "leave off": "leave it off"}
    answers = {row["target"]: row["answer"] for row in advice["targets"] if row["settings"]}
    assert set(answers) == {"moe_q4", "moe_q8", "dense_4b", "dense_9b"}
    for target, answer in answers.items():
        assert f"({target}): {told[answer]}" in words(done)


def test_for_a_shipped_campaign_nobody_looks_for_the_binaries_of_an_engine(
    snakemake, tmp_path, root
):
    (tmp_path / "llama-server").write_text("what a stranger has there")
    mine = {"source": "path", "path": str(tmp_path)}
    overlay = {"engines": {"mine": mine}, "campaign": {"engine": "mine"}}
    (tmp_path / "mine.yaml").write_text(yaml.safe_dump(overlay))
    shipped = str(root / "resources/campaigns/demo/campaign.yaml")
    files = ["--configfile", shipped, str(tmp_path / "mine.yaml")]
    planned = jobs(snakemake("-n", *files, folder=tmp_path))
    assert set(planned) == {*RENDERED, "total"}
    assert not (tmp_path / "results/engines").exists()


def test_another_file_than_the_authors_is_refused(snakemake, tmp_path, root):
    (tmp_path / "other.csv").write_text("job_id\n")
    (tmp_path / "mine.yaml").write_text(yaml.safe_dump({"published": {"file": "other.csv"}}))
    overlay = str(root / "config/published.yaml")
    files = ["--configfile", overlay, str(tmp_path / "mine.yaml")]
    done = snakemake("paper", *files, folder=tmp_path)
    assert done.returncode != 0
    assert "DownloadError: other.csv: SHA-256 " in words(done)
    assert not (tmp_path / "paper").exists()


def test_a_packed_campaign_is_rendered_to_the_same_bytes(
    measured, tiny, campaign, snakemake, root, tmp_path_factory
):
    done = campaign(tiny, "pack_campaign")
    assert done.returncode == 0, words(done)
    before = {
        path.relative_to(measured): path.read_bytes()
        for path in (measured / "paper").rglob("*")
        if path.is_file()
    }
    # A workflow that ships the campaign.
    shipped = tmp_path_factory.mktemp("shipped")
    for name in ("Snakefile", "config", "envs", "paper", "rules", "resources", "workflow"):
        (shutil.copytree if (root / name).is_dir() else shutil.copy)(root / name, shipped / name)
    shutil.copytree(measured / "results/tiny/cached", shipped / "resources/campaigns/tiny")
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    overlay = str(shipped / "resources/campaigns/tiny/campaign.yaml")
    bare = {key: value for key, value in os.environ.items() if key != "SPECMOE_TEST_ENGINE"}
    args = ["--snakefile", str(shipped / "Snakefile"), "paper", "--configfile", overlay]
    assert set(jobs(snakemake("-n", *args, folder=elsewhere))) == {*RENDERED, "total"}
    done = snakemake(*args, folder=elsewhere, env=bare)
    assert done.returncode == 0, words(done)
    assert before == {path: (elsewhere / path).read_bytes() for path in before}
    damaged = shipped / "resources/campaigns/tiny/runs.parquet"
    damaged.write_bytes(damaged.read_bytes()[:-10])
    done = snakemake(*args, folder=elsewhere, env=bare)
    assert done.returncode != 0
    assert "resources/campaigns/tiny/runs.parquet is not a readable parquet file" in words(done)


def test_every_shipped_campaign_is_whole_and_of_this_schema(root):
    for folder in sorted((root / "resources/campaigns").glob("*/")):
        runs = read_runs(folder / "runs.parquet")
        assert set(runs["campaign"]) == {folder.name}
        host, models = (
            json.loads((folder / f"{name}.json").read_text()) for name in ("host", "models")
        )
        assert set(runs["host"]) == {host["id"]}
        assert set(runs["target"]) <= set(models)
        assert (
            yaml.safe_load((folder / "campaign.yaml").read_text())["campaign"]["source"] == "cached"
        )
