"""Write the speculation profile of a campaign: acceptance by position."""

import json
from pathlib import Path
from typing import Annotated

from specmoe.analysis.build import usual_runs
from specmoe.analysis.profile import speculation_profile
from specmoe.command_line import script
from specmoe.config.schema import read_config
from specmoe.files import replace_text, sha256_of
from specmoe.runs.schema import SCHEMA_VERSION, read_runs
from specmoe.words import counted


@script
def main(
    out: Path,
    runs: Path,
    config: Annotated[Path, "the campaign's config.json"],
) -> None:
    recorded, measured = read_config(config), read_runs(runs)
    about = {
        "campaign": recorded.campaign.name,
        "runs_sha256": sha256_of(runs),
        "schema_version": SCHEMA_VERSION,
        "engine_commit": ", ".join(measured["engine_commit"].unique()),
    }
    profile = speculation_profile(usual_runs(measured, recorded), about)
    replace_text(out, json.dumps(profile, ensure_ascii=False, indent=1) + "\n")
    print(f"{out}: {counted(len(profile['settings']), 'setting')}")
