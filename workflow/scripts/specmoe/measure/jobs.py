"""The jobs that measure and keep a record: a block, timed passes, and a draft model's scores."""

import json
from functools import partial
from pathlib import Path

from specmoe.files import replace_text
from specmoe.measure import model_passes
from specmoe.measure.block import measure_block, summary
from specmoe.plan.asked import Asked
from specmoe.plan.campaign import ROOT, LoadedCampaign
from specmoe.records import load
from specmoe.text import fill_template


def measure(campaign: LoadedCampaign, block: str) -> None:
    """Measure one block by its protocol, alone on the machine."""
    said, _ = measure_once(campaign, block)
    print(f"{campaign.describe_progress()}: {block}: {said}", flush=True)


def measure_once(campaign: LoadedCampaign, block: str) -> tuple[str, bool]:
    """Measure what is asked of a block, unless it is; return that in a line, and whether it did."""
    one, asked = campaign.remaining(block), Asked(campaign)
    assert one is not None and one.arms
    target = campaign.model_file(one.target)
    drafts = {model: campaign.model_file(model) for model in one.draft_models}
    workplace = campaign.workplace(block, campaign.engine_of_block(block))
    if one.repeat == 0:  # the other repeats load the same files
        from specmoe.models.chats import check_chats  # loads numpy, which no other one needs
        from specmoe.models.gguf import check_made_files

        check_made_files(one, target, drafts)
        check_chats(one, target, campaign.root)
    name, request = f"blocks/{block}", asked.block(block)
    record, fresh = asked.records.measured_once(
        name, request, lambda: measure_block(one, workplace, target, drafts, campaign.log_of(block))
    )
    asked.records.relink(name, request)
    return summary(one, record) if fresh else "kept, as it was measured before", fresh


def time_passes(campaign: LoadedCampaign, repeat: int, log: Path) -> float:
    """Time the passes of each model, alone on the machine; return the seconds that it took."""
    asked, deviations, took_s = Asked(campaign), [], 0.0
    for model, passes in campaign.timed_passes.items():
        name, file = f"pass_times/{model}/r{repeat}", campaign.model_file(model)
        given = passes, campaign.workplace(name), file, log
        request = asked.passes(model, repeat)
        timed, _ = asked.records.measured_once(
            name, request, partial(model_passes.time_passes, *given)
        )
        deviations.append(timed.get("deviation"))
        asked.records.relink(name, request)
        took_s += asked.records.seconds(name, request) or 0.0
    if repeat == 0:
        confidence = campaign.config.statistics.confidence
        noise = model_passes.expected_noise(deviations, campaign.blocks.values(), confidence)
        print(fill_template(ROOT / "paper/noise.txt.j2", noise=noise), end="", flush=True)
    return took_s


def score_draft(
    campaign: LoadedCampaign, draft: str, log: Path, blocks: tuple[str, ...] = ()
) -> None:
    """Score the outputs of a draft model's targets with it, in all blocks or in some."""
    asked, name = Asked(campaign), f"agreement/{draft}"
    blocks = blocks or tuple(campaign.draft_scoring[draft])
    records = (
        (campaign.block(one), load(asked.records.link(f"blocks/{one}"))[1]) for one in blocks
    )
    workplace, file = campaign.workplace(name), campaign.model_file(draft)
    read, _ = asked.records.measured_once(
        name,
        asked.rereading(draft, blocks),
        lambda: {"draft": draft} | model_passes.score_texts(records, workplace, file, log),
    )
    replace_text(campaign.folder / f"{name}.json", json.dumps(read) + "\n")
