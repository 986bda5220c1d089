"""Write a campaign's speculation profile: acceptance by position of each setting."""

import argparse
import json
from pathlib import Path

from specmoe import errors
from specmoe.analysis.build import usual_runs
from specmoe.analysis.profile import speculation_profile
from specmoe.config.schema import read_config
from specmoe.files import replace_text, sha256_of
from specmoe.runs.schema import SCHEMA_VERSION, read_runs
from specmoe.words import counted


def main() -> None:
    """Parse the command line and write the profile."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", required=True, type=Path)
    parser.add_argument("--config", required=True, type=Path, help="the campaign's config.json")
    parser.add_argument("--out", required=True, type=Path, help="the profile, JSON")
    args = parser.parse_args()
    config, runs = read_config(args.config), read_runs(args.runs)
    about = {
        "campaign": config.campaign.name,
        "runs_sha256": sha256_of(args.runs),
        "schema_version": SCHEMA_VERSION,
        "engine_commit": ", ".join(runs["engine_commit"].unique()),
    }
    profile = speculation_profile(usual_runs(runs, config), about)
    replace_text(args.out, json.dumps(profile, ensure_ascii=False, indent=1) + "\n")
    print(f"{args.out}: {counted(len(profile['settings']), 'setting')}")


if __name__ == "__main__":
    errors.run(main)
