"""Compute every table of the analysis from the runs of a campaign."""

from pathlib import Path

from specmoe.analysis.registry import Analysis
from specmoe.audit.tables import Audit
from specmoe.claims.build import build_analysis
from specmoe.claims.printed_numbers import read_reported
from specmoe.command_line import script
from specmoe.config.schema import read_config
from specmoe.files import read_record
from specmoe.models.card import load_cards
from specmoe.runs.agreement import read_agreement
from specmoe.runs.pass_times import read_pass_times
from specmoe.runs.schema import read_runs


@script
def main(
    runs: Path,
    config: Path,
    models: Path,
    host: Path,
    audit: Path,
    reported: Path,
    out: Path,
    pass_times: Path | None = None,
    agreement: Path | None = None,
    compare_with: tuple[Path, ...] = (),
) -> None:
    analysis = build_analysis(
        read_runs(runs),
        read_config(config),
        load_cards(models),
        read_record(host),
        Audit.read(audit),
        read_pass_times(pass_times),
        read_reported(reported),
        [Analysis.read(folder) for folder in compare_with],
        read_agreement(agreement),
    )
    analysis.write(out)
