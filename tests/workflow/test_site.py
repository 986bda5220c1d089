"""`site` renders the page of a campaign, with its data beside it, and the same every time."""

import pandas as pd
import yaml

from specmoe.analysis.build import Analysis
from specmoe.page.tables import page_tables
from specmoe.paper.tables import TABLES

from ..unit.page.test_tables import numbers_of_page, numbers_of_paper
from ..unit.published_study import CSV, needs_csv
from .test_workflow import jobs, words


def files_of(folder):
    """Return what stands in a folder, by name."""
    return {
        path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()
    }


def test_the_page_needs_the_analysis_and_neither_figures_nor_tables_of_the_paper(
    snakemake, tmp_path, root
):
    overlay = str(root / "resources/campaigns/demo/campaign.yaml")
    planned = jobs(snakemake("-n", "site", "--configfile", overlay, folder=tmp_path))
    expected = {"record_config", "audit_runs", "analyse_runs", "render_site", "render_share"}
    expected |= {"site", "total"}
    assert set(planned) == expected


def test_the_same_campaign_gives_the_same_bytes(snakemake, demo_site, root):
    overlay = str(root / "resources/campaigns/demo/campaign.yaml")
    again = snakemake("site", "--configfile", overlay, folder=demo_site)
    assert "Nothing to be done" in words(again)
    before = files_of(demo_site / "results/demo/site")
    forced = ["--forcerun", "render_site", "--configfile", overlay]
    assert snakemake("site", *forced, folder=demo_site).returncode == 0
    assert files_of(demo_site / "results/demo/site") == before


def test_what_is_pasted_elsewhere_has_the_same_bytes_every_time(snakemake, demo_site, root):
    overlay = str(root / "resources/campaigns/demo/campaign.yaml")
    before = files_of(demo_site / "results/demo/share")
    assert {str(path) for path in before} == {"speedup.png", "speedup.md"}
    forced = ["--forcerun", "render_share", "--configfile", overlay]
    assert snakemake("site", *forced, folder=demo_site).returncode == 0
    assert files_of(demo_site / "results/demo/share") == before


def test_beside_the_page_is_every_table_of_the_analysis_that_has_rows(demo_site):
    data = demo_site / "results/demo/site/data"
    analysis = demo_site / "results/demo/analysis"
    for path in analysis.glob("*.parquet"):
        frame = pd.read_parquet(path)
        assert (data / path.name).exists() == bool(len(frame))
        if len(frame):
            assert len(pd.read_csv(data / f"{path.stem}.csv")) == len(frame)


def test_every_number_of_the_demos_paper_is_on_its_page(demo_site, root):
    analysis = Analysis.read(demo_site / "results/demo/analysis")
    tables = page_tables(analysis)
    for name in TABLES:
        assert not numbers_of_paper(name, analysis, root) - numbers_of_page(name, tables), name


@needs_csv
def test_the_published_rows_have_a_page_that_says_whose_they_are(snakemake, tmp_path, root):
    (tmp_path / "mine.yaml").write_text(yaml.safe_dump({"published": {"file": str(CSV)}}))
    files = [str(root / "config/published.yaml"), str(tmp_path / "mine.yaml")]
    done = snakemake("site", "--configfile", *files, folder=tmp_path)
    assert done.returncode == 0, words(done)
    page = (tmp_path / "results/published/site/index.html").read_text()
    assert "Measured by others." in page
    assert "Synthetic models." not in page
