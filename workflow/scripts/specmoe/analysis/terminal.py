"""A suite as tables of plain text, for a terminal, and how a measured campaign ended."""

from pathlib import Path

import pandas as pd

from specmoe.analysis.spread import spread_of_cells
from specmoe.analysis.summaries import SETTING, make_pairs, summarise
from specmoe.config.block import NO_DRAFT
from specmoe.config.schema import Config
from specmoe.plan.campaign import ROOT, LoadedCampaign
from specmoe.records import head_of
from specmoe.runs.schema import excluded, read_runs
from specmoe.words import counted, duration, fill_template


def summarise_suite(runs: pd.DataFrame, suite: str, config: Config) -> str:
    """Return a suite's rates, and speedups with their intervals, as a table of plain text.

    `runs` holds the suite's rows and those of the suite that has its baselines.
    """
    own = runs[runs["suite"] == suite]
    pairs = make_pairs(runs, config.audit.unrelated_drafts, {})
    pairs = pairs[pairs["counts"] & (pairs["suite"] == suite)]
    cells = summarise(pairs, SETTING, config.statistics)
    parts = [f"Suite {suite}: {config.suites[suite].title}, {counted(len(own), 'run')}"]
    plain = own[own["draft"] == NO_DRAFT]
    if len(plain):
        varied = ["temperature"] if plain["temperature"].nunique() > 1 else []
        rates = plain.groupby(["target", "n_prompt", "prompt", *varied])["tokens_per_second"]
        table = rates.agg(["mean", "std"]).reset_index()
        table = table.rename(columns={"n_prompt": "tokens", "mean": "tok/s", "std": "sd"})
        parts += ["", "Without a draft", _text(table)]
    if len(cells):
        spread = spread_of_cells(pairs, config.statistics)
        beyond = cells["condition"].astype(object).fillna("")
        table = pd.DataFrame(
            {
                "target": cells["target"],
                "draft": cells["draft"],
                "γ": cells["gamma"],
                **({"at": beyond} if beyond.any() else {}),
                "tok/s": cells["tokens_per_second"],
                "acceptance %": cells["acceptance_rate"] * 100,
                "speedup": cells["speedup"],
                "low": cells["speedup_low"],
                "high": cells["speedup_high"],
                "blocks %": spread["block_sd"] * 100,
                "runs %": spread["within_sd"] * 100,
                "repeats": spread["repeats_needed"],
            }
        )
        parts += [
            "",
            f"With a draft (low, high: {config.statistics.confidence:.0%} interval over blocks;"
            " blocks %, runs %: spread of the speedup",
            "between blocks and within them;"
            f" repeats: how many ±{100 * config.statistics.precision:g}% takes at the spread seen)",
            _text(table),
        ]
    return "\n".join(parts) + "\n"


def _text(table: pd.DataFrame) -> str:
    return table.to_string(index=False, float_format="{:.2f}".format, na_rep="-")


def finish(campaign: LoadedCampaign) -> None:
    """Say how a campaign's measurement ended and where results are; nothing before all is there."""
    runs, records = campaign.data / "runs.parquet", campaign.record_files(campaign.blocks)

    def is_newer(file: Path, than: Path) -> bool:
        return file.exists() and than.exists() and file.stat().st_mtime >= than.stat().st_mtime

    if not all(is_newer(runs, record) for record in records):
        return
    rows, audit = read_runs(runs), campaign.folder / "audit/audit.txt"
    results = (campaign.folder / "site/index.html", Path("paper/main.pdf"), Path("paper/main.tex"))
    text = fill_template(
        ROOT / "paper/finished.txt.j2",
        runs=len(rows),
        time=duration(sum(head.seconds for head in map(head_of, records) if head)),
        again=int((rows["measured_again"] > 0).sum()),
        excluded=len(excluded(rows)),
        audit=audit.read_text().partition("\n")[0] if is_newer(audit, runs) else "",
        results=[file for file in results if is_newer(file, runs)][:2],
    )
    print(text, end="")
