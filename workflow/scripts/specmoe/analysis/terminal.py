"""Text for the terminal: what a suite measured, and the end of a measurement."""

from pathlib import Path

import pandas as pd

from specmoe.analysis import summaries, views
from specmoe.analysis.registry import Analysis
from specmoe.analysis.summaries import SETTING, make_pairs
from specmoe.analysis.templates import analysis_templates, text_of_experiment, unescaped
from specmoe.campaign.campaign import LoadedCampaign
from specmoe.campaign.progress import Progress
from specmoe.config.block import NO_DRAFT
from specmoe.config.schema import Config
from specmoe.files import ROOT
from specmoe.records import head_of
from specmoe.runs.schema import excluded, read_runs
from specmoe.text import counted, duration


def text_of_suite(runs: pd.DataFrame, suite: str, config: Config) -> str:
    """Return the rates of a suite's runs, and speedups with their intervals, as plain text."""
    plain = runs[runs["draft"] == NO_DRAFT]
    rates = plain.groupby(["target", "prompt", "temperature"])["tokens_per_second"]
    pairs = make_pairs(runs, config.audit.unrelated_drafts, {})
    setting = [*SETTING, "condition"]
    settings = summaries.summarise(pairs, setting, config.statistics)
    shown = [*setting[1:], "tokens_per_second", "acceptance_rate"]
    shown += ["speedup", "speedup_low", "speedup_high"]
    tables = [rates.agg(["mean", "std"]).reset_index(), settings.reindex(columns=shown)]
    printed = [
        table.dropna(axis="columns", how="all").to_string(index=False, float_format="%.2f")
        for table in tables
        if len(table)
    ]
    head = f"Suite {suite}: {config.suites[suite].title}, {counted(len(runs), 'run')}"
    return "\n\n".join([head, *printed]) + "\n"


def summarise_suite(campaign: LoadedCampaign, suite: str) -> None:
    """Print what one suite measured."""
    rows = read_runs(campaign.places.folder / f"suites/{suite}.parquet")
    print(text_of_suite(rows, suite, campaign.config))


def finish(campaign: LoadedCampaign) -> None:
    """Print how a campaign's measurement ended and where results are, once all are there."""
    folder, runs = campaign.places.folder, campaign.places.data / "runs.parquet"
    records = campaign.places.record_files(Progress(campaign).measured_blocks)

    def is_newer(file: Path, than: Path) -> bool:
        return file.exists() and than.exists() and file.stat().st_mtime >= than.stat().st_mtime

    if not records or not all(is_newer(runs, record) for record in records):
        return
    rows, audit = read_runs(runs), folder / "audit/audit.txt"
    results = (folder / "page/index.html", Path("paper/main.pdf"), Path("paper/main.tex"))
    tables = folder / "analysis"
    analysed = is_newer(tables / "upcycled_pairs.parquet", runs)
    env = analysis_templates(ROOT / "paper", unescaped)
    text = env.get_template("finished.txt.j2").render(
        experiment=text_of_experiment(views.experiment(Analysis.read(tables)) if analysed else {}),
        runs=len(rows),
        time=duration(sum(head.seconds for head in map(head_of, records) if head)),
        again=int((rows["reruns"] > 0).sum()),
        excluded=len(excluded(rows)),
        audit=audit.read_text().partition("\n")[0] if is_newer(audit, runs) else "",
        results=[file for file in results if is_newer(file, runs)][:2],
    )
    print(text, end="")
