"""Snakemake's report of a campaign has every figure and table of the paper with its title."""

import json
from pathlib import Path
from zipfile import ZipFile

import pandas as pd
import pytest

from specmoe.analysis.registry import Analysis
from specmoe.tables.exhibits import read_figures

from ..unit.rendered_tables import filled

FIGURES = "results/demo/paper/figures"


@pytest.fixture(scope="module")
def results(snakemake, demo_site, root):
    """The results that the report of the shipped demo lists, by file name."""
    overlay = str(root / "resources/campaigns/demo/campaign.yaml")
    for report in ([], ["--report", "report.zip"]):
        snakemake("site", *report, "--configfile", overlay, folder=demo_site)
    with ZipFile(demo_site / "report.zip") as archive:
        page = archive.read("report/report.html").decode()
    listed, _ = json.JSONDecoder().raw_decode(
        page.partition('<script id="results">\n    var results = ')[2]
    )
    return {result["name"]: result for result in listed.values()}


def test_every_figure_has_its_title(results, demo_site, root):
    figures = {path.name for path in (demo_site / FIGURES).glob("*.svg")}
    assert {name for name in results if name.endswith(".svg")} == figures
    about = read_figures(root / "paper/figures.yaml")
    for name in figures:
        figure = Path(name).stem
        assert about[figure].title.en in results[name]["caption"]
        assert results[name]["labels"] == {"figure": figure}


def test_every_table_that_has_rows_has_its_title(results, demo_site):
    tables = filled(Analysis.read(demo_site / "results/demo/analysis"))
    assert {name for name in results if name.endswith(".csv")} == {f"{name}.csv" for name in tables}
    for name, table in tables.items():
        assert table.about.title.en in results[f"{name}.csv"]["caption"]


def test_every_table_of_the_analysis_with_rows_is_beside_the_page(demo_site):
    data = demo_site / "results/demo/site/data"
    for path in (demo_site / "results/demo/analysis").glob("*.parquet"):
        frame = pd.read_parquet(path)
        assert (data / path.name).exists() == bool(len(frame))
        if len(frame):
            assert len(pd.read_csv(data / f"{path.stem}.csv")) == len(frame)
