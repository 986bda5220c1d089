"""`site` renders the same page of a campaign every time, with its data beside it."""

import pandas as pd

from .conftest import files_of
from .test_workflow import jobs


def test_the_page_needs_the_analysis_and_its_figures_and_leaves_paper_alone(
    snakemake, tmp_path, root
):
    overlay = str(root / "resources/campaigns/demo/campaign.yaml")
    planned = jobs(snakemake("-n", "site", "--configfile", overlay, folder=tmp_path))
    expected = {"record_campaign", "audit_runs", "analyse_runs", "render_paper", "render_site"}
    expected |= {"site", "total"}
    assert set(planned) == expected


def test_the_same_campaign_gives_the_same_bytes(snakemake, demo_site, root):
    overlay = ["--configfile", str(root / "resources/campaigns/demo/campaign.yaml")]
    assert "Nothing to be done" in snakemake("site", *overlay, folder=demo_site)
    rendered = demo_site / "results/demo/site"
    before = files_of(rendered)
    again = ("--forcerun", "render_site", "render_paper")
    snakemake("site", *again, *overlay, folder=demo_site)
    assert files_of(rendered) == before


def test_every_table_of_the_analysis_with_rows_is_beside_the_page(demo_site):
    data = demo_site / "results/demo/site/data"
    analysis = demo_site / "results/demo/analysis"
    for path in analysis.glob("*.parquet"):
        frame = pd.read_parquet(path)
        assert (data / path.name).exists() == bool(len(frame))
        if len(frame):
            assert len(pd.read_csv(data / f"{path.stem}.csv")) == len(frame)
