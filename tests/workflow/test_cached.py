"""Cached and published campaigns are rendered without an engine, models or a compiler."""

import json
import os
import re
import shutil
from collections import defaultdict

import pandas as pd
import pytest
import yaml

from specmoe.paper.pdf import missing_tex
from specmoe.runs.schema import read_runs

from ..tex import needs_tex
from ..unit.published_study import CSV, needs_csv
from .conftest import SOUND_DEMO, files_of, pages, untimed_verdicts
from .test_workflow import jobs

RENDERED = {"analyse_runs", "audit_runs", "plot_figures", "record_config", "render_tables", "paper"}
RENDERED |= {"claim_paper", "render_share"}
RENDERED |= set() if missing_tex() else {"render_pdf"}


@pytest.fixture(scope="module")
def shipped(snakemake, root, tmp_path_factory):
    """Render a shipped campaign, once for all tests; return its folder and all that was printed."""
    folder, printed = tmp_path_factory.mktemp("shipped"), defaultdict(str)

    def run(name, *targets):
        overlay = str(root / f"resources/campaigns/{name}/campaign.yaml")
        (folder / name).mkdir(exist_ok=True)
        printed[name] += snakemake(*targets, "--configfile", overlay, folder=folder / name)
        return folder / name, printed[name]

    return run


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
    assert "Audit of campaign published: 306 rows" in published("paper")
    audit = pd.read_parquet(tmp_path / "results/published/audit/audit.parquet")
    broken = audit[(audit["check"] == "draft_time") & (audit["verdict"] == "fail")]
    assert broken["suite"].value_counts().to_dict() == {"B": 144, "D": 72}
    assert "MoE Q4" in (tmp_path / "paper/tables/speculation.tex").read_text()
    assert "Nothing to be done" in published("paper")


@needs_csv
def test_the_demo_and_the_published_study_share_an_axis(published, snakemake, tmp_path, root):
    overlay = str(root / "resources/campaigns/demo/campaign.yaml")

    def demo(*args, **options):
        compared = ["--config", "compare_with=[published]"]
        files = ["--configfile", overlay]
        return snakemake(*args, *files, *compared, folder=tmp_path, **options)

    refused = demo("-n", "paper", fails=True)
    fault = "ConfigError: config: compare_with: there is no results/published/analysis; render"
    first = f"{fault} campaign 'published' first: snakemake --cores 1 paper --configfile "
    assert first in refused
    published("results/published/analysis")
    assert set(jobs(demo("-n", "paper"))) == {*RENDERED, "total"}
    demo("results/demo/analysis")
    folder = tmp_path / "results/demo/analysis"
    times = pd.read_parquet(folder / "required_time.parquet")
    assert times["campaign"].value_counts().to_dict() == {"demo": 336, "published": 234}
    compared = pd.read_parquet(folder / "comparison.parquet")
    assert compared[["recomputed", "measured"]].notna().all(axis=None)
    # Both have the study's cells, over the same prompts.
    cells = pd.read_parquet(folder / "side_by_side.parquet")
    assert cells[cells["campaigns"] == 2]["heading"].value_counts().to_dict() == {
        "demo": 18,
        "published": 18,
    }
    # The recorded configuration of the measurements has no such key.
    assert "compare_with" not in json.loads((tmp_path / "results/demo/config.json").read_text())


def test_own_campaigns_are_compared_if_this_release_rendered_them(
    snakemake, shipped, tmp_path, root
):
    overlay = str(root / "resources/campaigns/demo/campaign.yaml")

    def rendered(*targets, compare_with="mechanism", fails=False):
        given = ["--config", f"compare_with=[{compare_with}]"]
        files = ["--configfile", overlay]
        return snakemake(*targets, *files, *given, folder=tmp_path, fails=fails)

    results = tmp_path / "results"
    mechanism, _ = shipped("mechanism", "results/mechanism/analysis")
    shutil.copytree(mechanism / "results", results)
    newest = results / "mechanism/analysis/side_by_side.parquet"
    kept = newest.read_bytes()
    newest.unlink()
    table = "paper/tables/side_by_side.tex"
    refused = rendered(table, fails=True)
    fault = "results/mechanism/analysis/side_by_side.parquet is not there; render that"
    assert f"SchemaError: {fault}" in refused
    assert "Traceback" not in refused
    newest.write_bytes(kept)
    rendered(table)
    assert "mechanism" in (tmp_path / table).read_text()
    rendered(table, compare_with="")
    assert "Not measured in this campaign" in (tmp_path / table).read_text()


def test_the_shipped_demo_passes_every_check_of_the_audit_that_uses_no_times(demo_site):
    assert untimed_verdicts(demo_site / "results/demo") == SOUND_DEMO


@pytest.mark.parametrize(
    ("name", "rows", "targets", "true_shape"),
    [
        ("true-shape", 156, {"moe_q4", "dense_4b"}, True),
        ("mechanism", 885, {"moe_q4", "moe_q8", "dense_4b", "dense_9b"}, False),
    ],
)
def test_a_shipped_campaign_of_costs_passes_its_audit_and_has_the_cost_of_passes(
    shipped, name, rows, targets, true_shape
):
    rendered, said = shipped(name, f"results/{name}/analysis")
    assert f"Audit of campaign {name}: {rows} rows" in said
    assert "no row is impossible, no row is implausible" in said
    assert "Controls: passed" in said
    folder = rendered / f"results/{name}/analysis"
    passes = pd.read_parquet(folder / "verification.parquet")
    assert set(passes["target"]) == targets
    assert {2, 3, 5, 9, 17} <= set(passes["width"])
    campaign = pd.read_parquet(folder / "campaign.parquet")
    assert campaign["synthetic"].all()
    assert (campaign["true_shape"] == true_shape).all()


@needs_tex
@pytest.mark.parametrize("name", ["true-shape", "mechanism"])
def test_the_paper_of_a_shipped_campaign_has_the_length_of_a_submission(shipped, name):
    rendered, _ = shipped(name, "paper/main.pdf")
    assert 6 <= pages(rendered / "paper/main.pdf") <= 10


def test_the_shipped_demo_is_advised_without_an_engine(snakemake, demo_site, root):
    overlay = str(root / "resources/campaigns/demo/campaign.yaml")
    printed = snakemake("advise", "--configfile", overlay, folder=demo_site)
    advice = json.loads((demo_site / "results/demo/advice.json").read_text())
    advised = {"switch on": "switch it on", "leave off": "leave it off", "undecided": "undecided"}
    answers = {row["target"]: row["answer"] for row in advice["targets"] if row["settings"]}
    assert set(answers) == {"moe_q4", "moe_q8", "dense_4b", "dense_9b"}
    for target, answer in answers.items():
        assert f"({target}): {advised[answer]}" in printed


def intervals(text):
    """Return the estimates with intervals that a document prints, such as 0.77 [0.64, 0.93]."""
    return set(re.findall(r"\d\.\d\d \[\d\.\d\d, \d\.\d\d\]", " ".join(text.split())))


def printed(frame, *columns):
    """Return the rows of a frame as a document prints an estimate and its interval."""
    rows = frame[list(columns)].dropna().drop_duplicates().itertuples(index=False)
    return {f"{value:.2f} [{low:.2f}, {high:.2f}]" for value, low, high in rows}


def test_the_documents_numbers_are_those_of_the_shipped_campaigns(shipped, demo_site, root):
    def frame(name, table):
        folder = demo_site if name == "demo" else shipped(name, f"results/{name}/analysis")[0]
        return pd.read_parquet(folder / f"results/{name}/analysis/{table}.parquet")

    advised = [frame(name, "advice") for name in ("demo", "mechanism")]
    rendered = set.union(*(printed(one, "speedup", "joint_low", "joint_high") for one in advised))
    ceiling = ("ceiling", "ceiling_low", "ceiling_high")
    rendered |= printed(frame("true-shape-mtp", "break_even"), *ceiling)
    passes = frame("true-shape", "verification").query("target == 'moe_q4' and width == 17")
    rendered |= printed(passes, "steps", "steps_low", "steps_high")
    artefact = (root / "ARTIFACT.md").read_text()
    assert len(intervals(artefact)) == 11
    assert intervals(artefact) <= rendered

    summary = " ".join((root / "README.md").read_text().partition("![")[0].split())
    assert len(intervals(summary)) == 5
    assert intervals(summary) <= rendered
    settings = frame("true-shape", "break_even").groupby(["target", "draft", "gamma"]).first()
    never = f"{settings['break_even'].isna().sum()} of {len(settings)} combinations"
    assert never in summary
    assert never in " ".join(artefact.split())
    assert f"takes the MoE {passes['steps'].item():.1f} times as long" in summary


def test_the_documents_count_the_rows_of_the_shipped_campaigns(root):
    counts = {
        folder.name: len(read_runs(folder / "runs.parquet"))
        for folder in (root / "resources/campaigns").iterdir()
    }
    assert f"measures {counts['demo']} runs" in (root / "README.md").read_text()
    for line in (root / "ARTIFACT.md").read_text().splitlines():
        named = re.search(r"resources/campaigns/(\S+)/campaign.yaml|make demo", line)
        counted = re.search(r"\b(\d+) rows", line)
        if named and counted:
            assert int(counted[1]) == counts.pop(named[1] or "demo")
    assert not counts


def test_a_shipped_campaign_needs_no_binaries_of_an_engine(snakemake, tmp_path, root):
    (tmp_path / "llama-server").write_text("what a stranger has there")
    mine = {"source": "path", "path": str(tmp_path)}
    overlay = {"engines": {"mine": mine}, "campaign": {"engine": "mine"}}
    (tmp_path / "mine.yaml").write_text(yaml.safe_dump(overlay))
    shipped = str(root / "resources/campaigns/demo/campaign.yaml")
    files = ["--configfile", shipped, str(tmp_path / "mine.yaml")]
    planned = jobs(snakemake("-n", *files, folder=tmp_path))
    assert set(planned) == {*RENDERED, "total"}
    assert not (tmp_path / "results/engines").exists()


def test_a_file_that_differs_from_the_authors_is_refused(snakemake, tmp_path, root):
    (tmp_path / "other.csv").write_text("job_id\n")
    (tmp_path / "mine.yaml").write_text(yaml.safe_dump({"published": {"file": "other.csv"}}))
    overlay = str(root / "config/published.yaml")
    files = ["--configfile", overlay, str(tmp_path / "mine.yaml")]
    refused = snakemake("paper", *files, folder=tmp_path, fails=True)
    assert "DownloadError: other.csv: SHA-256 " in refused
    assert not (tmp_path / "paper").exists()


def test_a_packed_campaign_is_rendered_to_the_same_bytes(
    measured, tiny, campaign, snakemake, root, tmp_path_factory
):
    campaign(tiny, "pack_campaign")
    before = files_of(measured / "paper")
    # This copy of the workflow ships the campaign.
    shipped = tmp_path_factory.mktemp("shipped")
    for name in ("Snakefile", "config", "envs", "paper", "rules", "resources", "workflow"):
        (shutil.copytree if (root / name).is_dir() else shutil.copy)(root / name, shipped / name)
    shutil.copytree(measured / "results/tiny/cached", shipped / "resources/campaigns/tiny")
    sealed = json.loads((measured / "results/tiny/cached/manifest.json").read_text())
    assert "ro-crate-metadata.json" in sealed
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    overlay = str(shipped / "resources/campaigns/tiny/campaign.yaml")
    bare = {key: value for key, value in os.environ.items() if key != "SPECMOE_TEST_ENGINE"}
    args = ["--snakefile", str(shipped / "Snakefile"), "paper", "--configfile", overlay]
    assert set(jobs(snakemake("-n", *args, folder=elsewhere))) == {*RENDERED, "total"}
    snakemake(*args, folder=elsewhere, env=bare)
    assert before == {path: (elsewhere / "paper" / path).read_bytes() for path in before}
    damaged = shipped / "resources/campaigns/tiny/runs.parquet"
    damaged.write_bytes(damaged.read_bytes()[:-10])
    printed = snakemake(*args, folder=elsewhere, env=bare, fails=True)
    assert "campaigns/tiny/runs.parquet is not the file that manifest.json names" in printed


def test_every_shipped_campaign_is_complete_and_of_this_schema(root):
    for folder in sorted((root / "resources/campaigns").glob("*/")):
        runs = read_runs(folder / "runs.parquet")
        assert set(runs["campaign"]) == {folder.name}
        assert set(runs["host"]) == {json.loads((folder / "host.json").read_text())["id"]}
        assert set(runs["target"]) <= set(json.loads((folder / "models.json").read_text()))
        overlay = yaml.safe_load((folder / "campaign.yaml").read_text())
        assert overlay["campaign"]["source"] == "cached"
