"""Print the share of a campaign's wall time in which the engine worked, and a block's overhead.

Usage: python tests/benchmarks/campaign_overhead.py results/synthetic

A benchmark, not a test: it reads the records of a finished campaign and judges nothing. Seconds
belong to one campaign on one machine; compare shares.
"""

import argparse
import json
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any


def main() -> None:
    """Parse the command line and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("campaign", type=Path, help="folder of a finished campaign")
    folder = parser.parse_args().campaign
    for line in table(read_records(folder)):
        print(line)


def read_records(campaign: Path) -> list[dict[str, Any]]:
    """Return the records of a campaign's blocks."""
    return [json.loads(path.read_text()) for path in (campaign / "blocks").rglob("*.json")]


def table(records: list[dict[str, Any]]) -> list[str]:
    """Return the lines to print."""
    jobs_s = sum(record["elapsed_s"] for record in records)
    runs_s = sum(run["wall_ms"] / 1000 for record in records for run in record["runs"])
    warm_up_s = sum(map(warming, records))
    start_s = sum(map(starting, records))
    wall_s = (max(map(end, records)) - min(map(begin, records))).total_seconds()
    parts = {
        "measured requests": runs_s,
        "warm-up requests": warm_up_s,
        "loading models": start_s,
        "rest of the block (tokenizing, counters, shutdown)": jobs_s - runs_s - warm_up_s - start_s,
        "between blocks (snakemake, interpreter, models)": wall_s - jobs_s,
    }
    blocks = len(records)
    engine_s = runs_s + warm_up_s + start_s
    return [
        f"{blocks} blocks in {wall_s:.1f} s; {runs_s / engine_s:.1%} of the engine's time are"
        " measured runs",
        *(
            f"{s:8.1f} s {s / wall_s:6.1%} {s / blocks:7.3f} s a block  {p}"
            for p, s in parts.items()
        ),
        f"a block costs {(wall_s - runs_s - warm_up_s) / blocks:.2f} s beyond the engine's answers",
    ]


def begin(record: dict[str, Any]) -> datetime:
    """Return about when a block's first engine was started."""
    first = min(datetime.fromisoformat(run["started_at"]) for run in record["runs"])
    return first - timedelta(seconds=warming(record) + starting(record))


def warming(record: dict[str, Any]) -> float:
    """Return the seconds of a block's warm-ups."""
    return sum(float(side["warm_up_ms"]) for side in record["sides"]) / 1000


def starting(record: dict[str, Any]) -> float:
    """Return the seconds until the engines of a block's sides had loaded their models."""
    return sum(float(side["start_ms"]) for side in record["sides"]) / 1000


def end(record: dict[str, Any]) -> datetime:
    """Return when a block's last answer came."""
    return max(
        datetime.fromisoformat(run["started_at"]) + timedelta(milliseconds=run["wall_ms"])
        for run in record["runs"]
    )


if __name__ == "__main__":
    main()
