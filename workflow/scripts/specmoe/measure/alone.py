"""The job of measuring a model: alone on the campaign's machine, and ended with the workflow."""

import os
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from threading import Thread

import psutil

from specmoe.campaign.campaign import LoadedCampaign
from specmoe.engine.job import Job
from specmoe.hardware.machine import (
    described_machine,
    measuring_lock,
    require_device,
    usable_memory,
)


@cache
def _end_with(pid: int) -> None:
    """End this process when process `pid` has ended, seen to once for all that it measures."""

    def watch() -> None:
        while psutil.pid_exists(pid):
            time.sleep(0.2)
        os._exit(1)

    Thread(target=watch, daemon=True).start()


@contextmanager
def exclusive_job(
    campaign: LoadedCampaign, name: str, target: str, server_log: Path, drafts: Iterable[str] = ()
) -> Iterator[Job]:
    """Give the job of measuring a target, on the campaign's machine and with no other measurement.

    Where machines share a campaign, this one is described under the job's name; that of a block
    tells its engine, others have the campaign's own. The process ends when the workflow does
    (`rules/job.sh`). Raises MeasurementError on another machine, and EngineError if the engine's
    GPU has gone.
    """
    if workflow_pid := os.environ.get("SPECMOE_WORKFLOW_PID"):
        _end_with(int(workflow_pid))
    places, backend, given = campaign.places, campaign.backend, campaign.config.measurement
    shared = campaign.config.campaign.machines == "same"
    description = places.folder / f"machines/{name}.json" if shared else places.machine_file
    machine = described_machine(description) if description.exists() else {}
    usable = usable_memory(psutil.virtual_memory().total, machine.get("gpu_memory_bytes"), backend)
    engine = campaign.engine_of_block(name) if name in campaign.blocks else campaign.engine_id
    binaries = places.engine_file(engine).with_name("bin")
    models = {draft: places.model_file(draft) for draft in drafts}
    files = places.root, binaries, places.model_file(target), models, server_log
    with measuring_lock():
        require_device(backend, binaries / "llama-server", given.environment)
        yield Job(*files, given.time_limit_s, backend, usable)
