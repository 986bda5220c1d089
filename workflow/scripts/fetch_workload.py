"""Fetch the prompts of a workload from a data set of the hub, and verify them."""

import shutil
from pathlib import Path
from typing import Annotated

from specmoe.command_line import script
from specmoe.config.parse import parse
from specmoe.config.workloads import HubWorkload
from specmoe.files import written_whole
from specmoe.models.hub import fetch_prompts


@script
def main(
    entry: Annotated[str, "the workload's entry in the config, JSON"],
    out: Path,
    lock: Path = Path("config/models.lock.json"),
    trust: Annotated[str, "config or first-use"] = "config",
) -> None:
    workload = parse(HubWorkload, entry)
    fetched = fetch_prompts(workload, lock, trust)
    out.parent.mkdir(parents=True, exist_ok=True)
    with written_whole(out) as part:
        shutil.copyfile(fetched.path, part)
    print(f"{out}: {workload.repository}, SHA-256 {fetched.sha256}", flush=True)
