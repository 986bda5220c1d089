"""Say what one suite measured, as plain text."""

from pathlib import Path

from specmoe.analysis.terminal import summarise_suite
from specmoe.command_line import script
from specmoe.config.schema import read_config
from specmoe.runs.schema import read_runs


@script
def main(config: Path, suite: str, runs: Path, out: Path) -> None:
    config = read_config(config)
    text = summarise_suite(read_runs(runs), suite, config)
    out.write_text(text + "\n", encoding="utf-8")
