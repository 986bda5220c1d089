"""Fetch the prompts of a workload from a data set of the hub, and verify them."""

import argparse
import shutil
from pathlib import Path

from specmoe import errors
from specmoe.config.parse import parse
from specmoe.config.workloads import HubWorkload
from specmoe.files import written_whole
from specmoe.models.hub import fetch_prompts


def main() -> None:
    """Parse the command line and fetch the file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--entry", required=True, help="the workload's entry in the config, JSON")
    parser.add_argument("--lock", type=Path, default=Path("config/models.lock.json"))
    parser.add_argument("--trust", default="config", help="config or first-use")
    parser.add_argument("--out", required=True, type=Path)
    args = parser.parse_args()
    workload = parse(HubWorkload, args.entry)
    fetched = fetch_prompts(workload, args.lock, args.trust)
    args.out.parent.mkdir(parents=True, exist_ok=True)
    with written_whole(args.out) as part:
        shutil.copyfile(fetched.path, part)
    print(f"{args.out}: {workload.repository}, SHA-256 {fetched.sha256}", flush=True)


if __name__ == "__main__":
    errors.run(main)
