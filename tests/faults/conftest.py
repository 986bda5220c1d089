"""The table of faults, printed after the tests, and a small campaign whose files are damaged."""

import json
from copy import deepcopy
from typing import Any

import pytest

from specmoe.runs.collect import collect_records
from specmoe.runs.expected import refuse_other_runs
from specmoe.runs.schema import read_runs

from ..made_record import DESCRIBED, small_blocks, small_config

BLOCK = "S/target/draft/r0"


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print a line for each fault: what was injected, how the workflow ended, what it said."""
    reports = [*terminalreporter.getreports("passed"), *terminalreporter.getreports("failed")]
    told: list[dict[str, Any]] = [dict(report.user_properties) for report in reports]
    rows = sorted((row for row in told if "fault" in row), key=lambda row: row["fault"])
    if not rows:
        return
    terminalreporter.section("faults")
    for row in rows:
        terminalreporter.write_line(f"{row['fault']:45} {row['ended']:10} {row['line'][:140]}")


class Small:
    """A small campaign: its configuration, the block of its comparison, and a folder of its own."""

    def __init__(self, study, folder):
        self.folder, self.config = folder, small_config(deepcopy(study))
        self.block = small_blocks(self.config)[BLOCK]

    def collected(self, record, described=DESCRIBED):
        """Return the rows of a record by their runs, as far as it is believed."""
        file = self.folder / "r0.json"
        file.write_text(json.dumps(record))
        rows, _ = collect_records({file: self.block}, self.config.campaign.name)
        refuse_other_runs(rows, self.config, described, [self.block], "measure again")
        return {row["run"]: row for row in rows}

    def packed(self, file):
        """Return the rows of a table of runs, as far as it is believed."""
        frame = read_runs(file)
        rows = frame.to_dict("records")
        refuse_other_runs(rows, self.config, DESCRIBED, [self.block], "get it again")
        return frame


@pytest.fixture(scope="module")
def small(_study, module_folder):
    return Small(_study, module_folder)
