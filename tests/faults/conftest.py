"""The table of faults, printed after the tests."""

from typing import Any

import pytest

BLOCK = "S/target/r0"


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
