"""Join campaigns that differ in their machine alone: one table, machine by method."""

from pathlib import Path

from specmoe.analysis.merged import refuse_unlike
from specmoe.analysis.registry import Analysis
from specmoe.analysis.terminal import describe_merged
from specmoe.command_line import script


@script
def main(analyses: tuple[Path, ...], out: Path) -> None:
    analyses = [Analysis.read(folder) for folder in analyses]
    refuse_unlike(analyses)
    own = analyses[0]
    out.parent.mkdir(parents=True, exist_ok=True)
    own.merged.to_csv(out, index=False)
    print(describe_merged(own), end="")
