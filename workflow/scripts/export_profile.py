"""Write the speculation profile of a campaign or a log: acceptance by position."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any

from specmoe.analysis.build import usual_runs
from specmoe.analysis.profile import profile_of_log, speculation_profile
from specmoe.command_line import script
from specmoe.config.schema import read_config
from specmoe.files import replace_text, sha256_of
from specmoe.logs.read import read_log
from specmoe.runs.schema import SCHEMA_VERSION, read_runs
from specmoe.words import counted


def _of_runs(file: Path, recorded: Path) -> dict[str, Any]:
    config, runs = read_config(recorded), read_runs(file)
    about = {
        "campaign": config.campaign.name,
        "runs_sha256": sha256_of(file),
        "schema_version": SCHEMA_VERSION,
        "engine_commit": ", ".join(runs["engine_commit"].unique()),
    }
    return speculation_profile(usual_runs(runs, config), about)


def _of_logs(files: Iterable[Path]) -> dict[str, Any]:
    rows = [row for file in files for row in read_log(file)]
    about = {"logs": {file.name: sha256_of(file) for file in files}}
    return profile_of_log(rows, about)


@script
def main(
    out: Path,
    runs: Path | None = None,
    config: Annotated[Path | None, "the campaign's config.json, with --runs"] = None,
    log: Annotated[tuple[Path, ...], "files of another program's runs, in their place"] = (),
) -> None:
    profile = _of_runs(runs, config) if runs and config else _of_logs(log)
    replace_text(out, json.dumps(profile, ensure_ascii=False, indent=1) + "\n")
    print(f"{out}: {counted(len(profile['settings']), 'setting')}")
