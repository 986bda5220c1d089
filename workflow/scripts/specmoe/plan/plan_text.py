"""A campaign's plan: printed, and kept for jobs in its folder, as `plan.json`."""

import json
from collections.abc import Iterable
from pathlib import Path

from specmoe.config.matrix import added_runs, list_blocks
from specmoe.engine.machine import list_devices
from specmoe.files import gigabytes, read_record, replace_text
from specmoe.plan.campaign import LoadedCampaign
from specmoe.plan.estimate import assumptions
from specmoe.plan.machine import PROBED, probe
from specmoe.plan.machine import describe as describe_host
from specmoe.plan.plan import Folder, Item, Plan, take_inventory
from specmoe.plan.progress import duration, refusal, seconds_left, total_seconds
from specmoe.words import counted

NO_BANDWIDTH = (
    "No estimate: the memory bandwidth of this GPU is unknown; set host.memory_bandwidth_gb_s"
)


def plan_campaign(campaign: LoadedCampaign, chips: Path) -> None:
    """Say what a campaign needs, whether that fits, and how long it may take; write it down."""
    config, devices = campaign.config, []
    if campaign.gpu:  # none are listed before the engine is there
        server = campaign.engine_file(campaign.engine_id).with_name("bin") / "llama-server"
        devices = list_devices(server, config.measurement.environment) or []
    host = describe_host(
        campaign.backend,
        config.host.model_dump(exclude_none=True),
        chips,
        lambda: _probed(campaign.host_file) or probe(),
        devices,
    )
    blocks = list_blocks(config, gpu=campaign.gpu)
    found = take_inventory(campaign, blocks)
    plan = Plan(config, blocks, host, campaign.backend, found)
    print(describe(plan), flush=True)
    facts = {
        "shortfalls": plan.shortfalls,
        "estimated_s": plan.estimated_s,
        "measured_s": found.measured_s,
        "memory_bytes": plan.memory_bytes,
    }
    replace_text(campaign.plan_file, json.dumps(facts) + "\n")


def _probed(host: Path) -> float | None:
    """Return the bandwidth that was measured for the campaign; None if none was."""
    described = read_record(host) if host.exists() else {}
    source = described.get("memory_bandwidth_source") or ""
    return described["memory_bandwidth_bytes_per_second"] if source.startswith(PROBED) else None


def describe(plan: Plan) -> str:
    """Return the whole plan as text."""
    lines = [
        *_head(plan),
        "",
        *_items("To download from the hub", plan.downloads, plan.found.hub_folder),
        *_items("To make", plan.made, plan.found.models_folder),
    ]
    if plan.memory_needs:
        models, needed = max(plan.memory_needs.items(), key=lambda need: need[1])
        usable = gigabytes(plan.memory_usable)
        lines.append(f"Memory: at most {gigabytes(needed)} ({models}); {usable} are usable")
    # No estimate knows any of them.
    if options := sorted({block.options_text for block in plan.blocks} - {""}):
        lines.append(
            f"The estimates of memory and time leave these options out: {'; '.join(options)}"
        )
    if plan.in_groups:
        lines.append(f"Memory does not hold all sides at once: {'; '.join(plan.in_groups)}")
    if plan.unverified:
        lines.append(
            f"Unverified: the config has no SHA-256 for {', '.join(plan.unverified)};"
            " the download says them"
        )
    lines += ["", *_times(plan)]
    if plan.timed:
        lines.append(
            f"Before each repeat, passes of {counted(len(plan.timed), 'model')} by themselves:"
            f" {duration(plan.timed_s)} in all"
        )
    measured = plan.found.measured_s
    if measured and (missing := len(plan.blocks) - len(measured)):
        left = duration(seconds_left(plan.estimated_s, measured))
        lines.append(
            f"Left: {left} for {counted(missing, 'block')}, at the pace of the measured ones"
        )
    lines += [*_again(plan), "", assumptions(plan.machine) if plan.machine else NO_BANDWIDTH]
    if plan.shortfalls:
        lines += ["", refusal(plan.shortfalls)]
    return "\n".join(lines)


def _head(plan: Plan) -> list[str]:
    campaign, added = plan.config.campaign, added_runs(plan.blocks, plan.config)
    runs = counted(sum(block.runs for block in plan.blocks) - added, "run")
    if added:
        runs += f" and {added} of targets alone beside them"
    lines = [f"Campaign {campaign.name}: {runs}, in {counted(len(plan.blocks), 'block')}"]
    if campaign.left_out:
        lines.append(f"Left out on purpose: {', '.join(campaign.left_out)}")
    bandwidth = ""
    if plan.machine:
        source = plan.host["memory_bandwidth_source"]
        bandwidth = f" {plan.machine.bandwidth / 1e9:.0f} GB/s ({source}),"
    memory = f"{plan.host['memory_bytes'] / 2**30:.0f} GiB of memory"
    machine = f"Machine: {plan.host['chip']}, {memory},{bandwidth} backend {plan.backend}"
    return [*lines, machine]


def _items(title: str, items: list[Item], folder: Folder) -> list[str]:
    if not items:
        return [f"{title}: nothing"]
    known = sum(item.size_bytes or 0 for item in items)
    unknown = sum(item.size_bytes is None for item in items)
    more = f", and {unknown} of unknown size" if unknown else ""
    lines = [
        f"{title}: {gigabytes(known)}{more}, into {folder.path}"
        f" ({gigabytes(folder.free_bytes)} free)"
    ]
    for item in items:
        size = "?" if item.size_bytes is None else gigabytes(item.size_bytes)
        lines.append(f"  {item.model:<14}{size:>10}  {item.source} ({item.basis})")
    return lines


def _times(plan: Plan) -> list[str]:
    """Return the table of estimated and measured times, with a line for the whole."""
    suites = plan.config.campaign.suites
    width = max(6, *map(len, suites))
    lines = [f"{'suite':>{width}}{'blocks':>8}{'runs':>6}{'estimated':>11}  measured"]
    for suite in [*suites, None]:
        runs = {block.block: block.runs for block in plan.blocks if suite in (None, block.suite)}
        known = [block for block in runs if block in plan.found.measured_s]
        measured = "-"
        if known:
            some = f"{counted(len(known), 'block')}: " if len(known) < len(runs) else ""
            taken = duration(sum(plan.found.measured_s[block] for block in known))
            measured = f"{some}{taken} (estimated: {_estimated(plan, known)})"
        lines.append(
            f"{suite or 'all':>{width}}{len(runs):>8}{sum(runs.values()):>6}"
            f"{_estimated(plan, runs):>11}  {measured}"
        )
    return lines


def _estimated(plan: Plan, blocks: Iterable[str]) -> str:
    return duration(total_seconds(plan.estimated_s[block] for block in blocks))


def _again(plan: Plan) -> list[str]:
    """Say which measured blocks are measured again, why, and how long that may take."""
    groups: dict[tuple[str, str], list[str]] = {}
    for block, reason in plan.found.changed.items():
        groups.setdefault((block.partition("/")[0], reason), []).append(block)
    return [
        f"Measured again: {counted(len(blocks), 'block')} of suite {suite}"
        f" ({_estimated(plan, blocks)} by estimate): {reason}"
        for (suite, reason), blocks in groups.items()
    ]
