"""A plan as text for a terminal."""

from collections.abc import Iterable

from specmoe.config.matrix import added_runs
from specmoe.config.methods import Method, engine_type, is_ngram
from specmoe.config.models import TruncateModel
from specmoe.files import gigabytes
from specmoe.plan.estimate import ACCEPTANCE, assumptions
from specmoe.plan.fit import refusal
from specmoe.plan.inventory import Folder
from specmoe.plan.plan import Item, Plan
from specmoe.plan.progress import duration, seconds_left, total_seconds
from specmoe.words import counted

NO_BANDWIDTH = (
    "No estimate: the memory bandwidth of this GPU is unknown; set host.memory_bandwidth_gb_s"
)


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
    if plan.unestimated:
        texts = "; ".join(plan.unestimated)
        lines.append(f"The estimates of memory and time leave these options out: {texts}")
    if plan.in_turn:
        lines.append(
            "Memory does not hold all sides at once, so one follows the other:"
            f" {'; '.join(plan.in_turn)}"
        )
    if plan.unverified:
        lines.append(
            f"Unverified: the config has no SHA-256 for {', '.join(plan.unverified)};"
            " --config trust=first-use records them"
        )
    lines += [*_ways(plan), *_unknown_beforehand(plan)]
    lines += ["", *_times(plan)]
    if plan.timed:
        lines.append(
            f"Before each repeat, passes of {counted(len(plan.timed), 'model')} by themselves:"
            f" {duration(plan.timed_s)} in all"
        )
    missing = len(plan.blocks) - len(plan.found.measured_s)
    if 0 < missing < len(plan.blocks):
        left = duration(plan.left_s)
        lines.append(
            f"Left: {left} for {counted(missing, 'block')}, at the pace of the measured ones"
        )
    lines += [
        *_again(plan),
        "",
        assumptions(plan.machine) if plan.machine else NO_BANDWIDTH,
    ]
    if plan.shortfalls:
        lines += ["", refusal(plan.shortfalls)]
    return "\n".join(lines)


def _head(plan: Plan) -> list[str]:
    memory = plan.host["memory_bytes"]
    assert isinstance(memory, int)
    bandwidth = ""
    if plan.machine:
        source = plan.host["memory_bandwidth_source"]
        bandwidth = f" {plan.machine.bandwidth / 1e9:.0f} GB/s ({source}),"
    campaign, added = plan.config.campaign, added_runs(plan.blocks, plan.config)
    runs = counted(sum(block.runs for block in plan.blocks) - added, "run")
    if added:
        runs += f" and {added} of targets alone beside them"
    lines = [f"Campaign {campaign.name}: {runs}, in {counted(len(plan.blocks), 'block')}"]
    if campaign.left_out:
        lines.append(f"Left out on purpose: {', '.join(campaign.left_out)}")
    for suite in campaign.suites:
        texts = [setting.text for setting in plan.config.option_settings(suite)]
        if any(texts):
            options = "; ".join(text or "none" for text in texts)
            lines.append(f"Options of the engine in suite {suite}: {options}")
    return [
        *lines,
        f"Machine: {plan.host['chip']}, {memory / 2**30:.0f} GiB of memory,{bandwidth}"
        f" backend {plan.backend}",
    ]


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


def _ways(plan: Plan) -> list[str]:
    """Return what drafts for the targets that have several methods, a line each."""
    config, lines = plan.config, []
    # A draft that is the target itself, or has nothing in common with it, is a control.
    controls = config.audit.unrelated_drafts
    for target in dict.fromkeys(block.target for block in plan.blocks):
        blocks = [block for block in plan.blocks if block.target == target and block.method]
        blocks = [one for one in blocks if one.draft_model not in (target, *controls)]
        if len({block.method for block in blocks}) > 1:
            ways = [f"{config.draft_label(one)} ({engine_type(one.method)})" for one in blocks]
            lines.append(
                f"What drafts for {config.label(target)}: {', '.join(dict.fromkeys(ways))}"
            )
    return lines


def _unknown_beforehand(plan: Plan) -> list[str]:
    """Return what the plan cannot know of drafts, or estimates too well."""
    config, lines = plan.config, []
    methods: dict[str, set[Method]] = {}
    for block in plan.blocks:
        if block.method and block.target not in plan.found.cards:
            methods.setdefault(block.target, set()).add(block.method)
    for target, own in methods.items():
        if any(map(is_ngram, own)) and Method.MTP not in own and not config.is_synthetic(target):
            lines.append(
                f"Whether {config.label(target)} has an MTP block is known once its file is here"
                " (`snakemake models`): plan again then"
            )
    for draft in dict.fromkeys(block.draft_model for block in plan.blocks if block.draft_model):
        if isinstance(config.models[draft], TruncateModel) and not config.is_synthetic(draft):
            lines.append(
                f"{config.label(draft)} is cut and not trained: a target accepts little of such a"
                f" draft, far less than the {ACCEPTANCE:.0%} that the time assumes"
            )
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
    lines = []
    for (suite, reason), blocks in groups.items():
        times = {block: plan.estimated_s[block] for block in blocks}
        lines.append(
            f"Measured again: {counted(len(blocks), 'block')} of suite {suite}"
            f" ({duration(seconds_left(times, {}))} by estimate): {reason}"
        )
    if lines:
        lines.append(
            "A block is measured as a whole, so that its sides and prompts are comparable."
        )
    return lines
