"""Write the speculation profile of a campaign or a log: acceptance by position."""

import argparse
import json
from pathlib import Path
from typing import Any

from specmoe import errors
from specmoe.analysis.build import usual_runs
from specmoe.analysis.profile import profile_of_log, speculation_profile
from specmoe.config.schema import read_config
from specmoe.files import replace_text, sha256_of
from specmoe.logs.read import read_log
from specmoe.runs.schema import SCHEMA_VERSION, read_runs
from specmoe.words import counted


def main() -> None:
    """Parse the command line and write the profile."""
    parser = argparse.ArgumentParser(description=__doc__)
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--runs", type=Path)
    source.add_argument("--log", type=Path, nargs="+", help="files of another program's runs")
    parser.add_argument("--config", type=Path, help="the campaign's config.json, with --runs")
    parser.add_argument("--out", required=True, type=Path, help="the profile, JSON")
    args = parser.parse_args()
    profile = _of_logs(args.log) if args.log else _of_runs(args.runs, args.config)
    replace_text(args.out, json.dumps(profile, ensure_ascii=False, indent=1) + "\n")
    print(f"{args.out}: {counted(len(profile['settings']), 'setting')}")


def _of_runs(file: Path, recorded: Path) -> dict[str, Any]:
    config, runs = read_config(recorded), read_runs(file)
    about = {
        "campaign": config.campaign.name,
        "runs_sha256": sha256_of(file),
        "schema_version": SCHEMA_VERSION,
        "engine_commit": ", ".join(runs["engine_commit"].unique()),
    }
    return speculation_profile(usual_runs(runs, config), about)


def _of_logs(files: list[Path]) -> dict[str, Any]:
    rows = [row for file in files for row in read_log(file)]
    about = {"logs": {file.name: sha256_of(file) for file in files}}
    return profile_of_log(rows, about)


if __name__ == "__main__":
    errors.run(main)
