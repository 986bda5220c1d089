"""The plan of a campaign, printed, and kept for jobs in its folder: `plan.json`."""

import json
from pathlib import Path

from specmoe.config.matrix import list_blocks
from specmoe.engine.devices import Device, list_devices
from specmoe.files import read_record, replace_text
from specmoe.plan.bandwidth_probe import probe
from specmoe.plan.campaign import LoadedCampaign
from specmoe.plan.hardware import PROBED
from specmoe.plan.hardware import describe as describe_host
from specmoe.plan.inventory import take_inventory
from specmoe.plan.plan import Plan
from specmoe.plan.plan_text import describe


def plan_campaign(campaign: LoadedCampaign, chips: Path) -> None:
    """Say what a campaign needs, whether that fits, and how long it may take; write it down."""
    config = campaign.config
    host = describe_host(
        campaign.backend,
        config.host.given,
        chips,
        lambda: _probed(campaign.host_file) or probe(),
        _devices(campaign),
    )
    blocks = list_blocks(config, gpu=campaign.gpu)
    found = take_inventory(campaign, blocks)
    plan = Plan(config, blocks, host, campaign.backend, found)
    print(describe(plan), flush=True)
    replace_text(campaign.plan_file, json.dumps(plan.facts) + "\n")


def _devices(campaign: LoadedCampaign) -> list[Device]:
    """Return the devices of a GPU's backend; none before the engine is there to list them."""
    server = campaign.results / "engines" / campaign.engine_id / "bin" / "llama-server"
    environment = campaign.config.measurement.environment
    return (list_devices(server, environment) or []) if campaign.gpu else []


def _probed(host: Path) -> float | None:
    """Return the bandwidth that was measured for the campaign; None if none was."""
    described = read_record(host) if host.exists() else {}
    source = described.get("memory_bandwidth_source") or ""
    return described["memory_bandwidth_bytes_per_second"] if source.startswith(PROBED) else None
