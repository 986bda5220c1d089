"""The jobs that measure and keep a record: a block, timed passes, scores, and rounds of n-grams."""

import json
from functools import partial
from pathlib import Path

from specmoe.campaign.asked import Asked
from specmoe.campaign.campaign import LoadedCampaign
from specmoe.campaign.progress import Progress
from specmoe.config.methods import is_ngram
from specmoe.engine.identity import fact
from specmoe.errors import ConfigError, abridged
from specmoe.files import ROOT, replace_text
from specmoe.measure import model_passes
from specmoe.measure.block import measure_block, summary
from specmoe.records import load_kept
from specmoe.text import fill_template


def measure(campaign: LoadedCampaign, block: str) -> None:
    """Measure one block by its protocol, alone on the machine."""
    said, _ = measure_once(campaign, block)
    print(f"{Progress(campaign).describe()}: {block}: {said}", flush=True)


def measure_once(campaign: LoadedCampaign, block: str) -> tuple[str, bool]:
    """Measure what is asked of a block, unless it is; return that in a line, and whether it did."""
    asked, places = Asked(campaign), campaign.places
    left = asked.progress.remaining(block)
    assert left is not None and left.arms
    if left.repeat == 0:  # the other repeats load the same files
        from specmoe.models.chats import look_at_chats  # loads numpy, which no other one needs
        from specmoe.models.gguf import check_pair

        target = places.model_file(left.target)
        for method, model in left.drafting:
            infos = map(places.info, (left.target, model))
            digests = {fact(info, "vocabulary_sha256") for info in infos}
            check_pair(target, places.model_file(model), method, digests)
        told = look_at_chats(left, target, places.root)
        if errors := [words for words, is_error in told if is_error]:
            raise ConfigError(abridged(errors))
    name, request = f"blocks/{block}", asked.block(block)
    measure = partial(measure_block, campaign, left)
    record, fresh = asked.records.measured_once(name, request, measure)
    asked.records.relink(name, request)
    return summary(left, record) if fresh else "kept, as it was measured before", fresh


def time_passes(campaign: LoadedCampaign, repeat: int, log: Path) -> float:
    """Time the passes of each model, alone on the machine; return the seconds that it took."""
    asked, deviations, took_s = Asked(campaign), [], 0.0
    for model, passes in campaign.timed_passes.items():
        name, request = f"pass_times/{model}/r{repeat}", asked.passes(model, repeat)
        measure = partial(model_passes.time_passes_of_model, campaign, name, passes, log)
        timed, _ = asked.records.measured_once(name, request, measure)
        deviations.append(timed.get("deviation"))
        asked.records.relink(name, request)
        took_s += asked.records.seconds(name, request) or 0.0
    if repeat == 0:
        confidence = campaign.config.statistics.confidence
        noise = model_passes.expected_noise(deviations, campaign.blocks.values(), confidence)
        print(fill_template(ROOT / "paper/noise.txt.j2", noise=noise), end="", flush=True)
    return took_s


def score(campaign: LoadedCampaign, record: str, log: Path, blocks: tuple[str, ...] = ()) -> None:
    """Read the texts of all blocks of a record, or of some, see `matrix.list_scoring`."""
    asked, blocks = Asked(campaign), blocks or tuple(campaign.scoring[record])
    played = [block for block in campaign.blocks.values() if record == f"ngrams/{block.target}"]
    arms = [*dict.fromkeys(arm for block in played for arm in block.arms if is_ngram(arm.method))]
    links = {block: asked.records.link(f"blocks/{block}") for block in blocks}
    records = ((campaign.block(block), load_kept(link)[1]) for block, link in links.items())
    read, _ = asked.records.measured_once(
        record,
        asked.rereading(record.partition("/")[2], blocks, arms),
        lambda: model_passes.read_texts(campaign, record, records, arms, log),
    )
    replace_text(campaign.places.folder / f"{record}.json", json.dumps(read) + "\n")
