"""A million examples of the properties of `tests/faults/test_anything.py`; prints their counts.

A batch is one property with one seed, in a process of its own with 8 GB of memory at most. A
property that fails is named with its seed and the last line of its output, which stays in FOLDER.
Finished batches are skipped when it is started again.

Usage: python tests/benchmarks/properties.py FOLDER [--seeds 9] [--examples 12500] [--at-once 2]

A property that takes a quarter of a second for an example, instead of milliseconds, gets a share of
the examples in each batch. A benchmark, not a test: the default takes 90 minutes on two cores.
Linux.
"""

import argparse
import os
import re
import resource
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from pathlib import Path

import pandas as pd

ROOT = Path(__file__).resolve().parents[2]
TESTS = "tests/faults/test_anything.py"
PYTEST = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
MEMORY = 8_000_000_000
SHARES = {
    "test_rows_of_the_schema_are_audited": 0.02,
    "test_a_damaged_record_is_refused_or_changes_no_number_but_measured_ones": 0.2,
    "test_a_damaged_row_is_refused_or_changes_no_number_but_measured_ones": 0.2,
    "test_damaged_descriptions_of_a_campaign_are_refused_or_say_the_same": 0.2,
}


def list_properties() -> list[str]:
    """Return the names of the tests that hypothesis draws examples for."""
    listed = subprocess.run(
        [*PYTEST, "--collect-only", "-m", "hypothesis", TESTS],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    return re.findall(r"::(test_\w+)$", listed.stdout, re.MULTILINE)


def run_batch(name: str, seed: int, examples: int, folder: Path) -> dict[str, object]:
    """Try the examples of one batch, unless its finished output is there."""
    examples = round(examples * SHARES.get(name, 1))
    output = folder / f"{name}-{seed}-{examples}.txt"
    if not output.exists():
        started = time.monotonic()
        tried = subprocess.run(
            [*PYTEST, f"--hypothesis-seed={seed}", f"{TESTS}::{name}"],
            cwd=ROOT,
            env={**os.environ, "SPECMOE_EXAMPLES": str(examples)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        seconds = time.monotonic() - started
        output.write_text(f"{tried.stdout}\nexit {tried.returncode}, {seconds:.0f} s\n")
    *_, said, last = [line for line in output.read_text().splitlines() if line]
    [(code, seconds)] = re.findall(r"exit (-?\d+), (\d+) s", last)
    failed = code != "0"
    if failed:
        print(f"{name}, seed {seed}: {said}; see {output}", flush=True)
    return {"property": name, "examples": examples, "failed": failed, "seconds": int(seconds)}


def main() -> None:
    """Run all batches and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seeds", type=int, default=9)
    parser.add_argument("--examples", type=int, default=12_500)
    parser.add_argument("--at-once", type=int, default=2)
    args = parser.parse_args()
    args.folder.mkdir(parents=True, exist_ok=True)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    batches = product(range(1, args.seeds + 1), list_properties())
    with ThreadPoolExecutor(args.at_once) as pool:
        done = pool.map(lambda one: run_batch(one[1], one[0], args.examples, args.folder), batches)
        table = pd.DataFrame(done).groupby("property").sum()
    print(pd.concat([table, table.sum().rename("all").to_frame().T]).to_string())
    if table["failed"].any():
        sys.exit(1)


if __name__ == "__main__":
    main()
