"""Results of our program `engine/model_passes.cpp`: timed forward passes, draft scores, and rounds.

A greedy target accepts what it would have written itself. So a draft model that scores the target's
output once, token by token, gives the rounds of every draft length (see `audit.draft_rounds`). It
is scored in batches, and some in smaller ones, which shows how far rounding moves the scores.
N-grams follow from the text alone: the program plays their rounds as the server does.
"""

import json
import logging
import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import accumulate, product
from pathlib import Path
from statistics import NormalDist, fmean, median, stdev, variance
from typing import Any

from specmoe.campaign.campaign import LoadedCampaign
from specmoe.config.block import Arm, Block, TimedPasses
from specmoe.engine.job import Job
from specmoe.hardware.disturbance import Budget, Watch, measure_undisturbed
from specmoe.hardware.machine import machine_id
from specmoe.measure.alone import exclusive_job
from specmoe.models.info import load_info

BATCH = 32
# A draft model proposes token by token, after batches of γ + 1.
_NARROWER = (1, 2, 8)
_TOKENS_AGAIN = 256  # of texts that are scored again

BESIDE = ("sampled_ms", "saved_ms", "restored_ms")
"""What a record has of the server's work beside passes, see `read_timings`."""

_logger = logging.getLogger(__name__)


def read_timings(text: str) -> dict[str, Any]:
    """Return what a record has of the passes that the program printed.

    - timings: those of each number of tokens with the same outputs, over all samples, in order.
      `ms` is the median of the last of a row, `first_ms` that of the first, whose graph is new;
      `layers` are the activated experts of each MoE layer, as means over samples, and `experts`
      their mean.
    - deviation: how far identical passes are apart, as a standard deviation of the logarithm of
      time; None for one place. A place's passes of all widths count as one, which takes about as
      long as a run.
    - error: the standard error of the logarithm of an `ms`, pooled over widths; a median has
      √(π/2) times that of a mean.
    - what the server does beside a pass, as medians: `sampled_ms` an output, `saved_ms` and
      `restored_ms` of a recurrent state; None of a model that has none.
    """
    rows, experts = (defaultdict[Any, list[list[float]]](list) for _ in range(2))
    beside, of_places = (defaultdict[Any, list[float]](list) for _ in range(2))
    for line in map(json.loads, text.splitlines()):
        for name in line.keys() & {*BESIDE}:
            beside[name].append(line[name])
        if "ms" in line:
            rows[line["outputs"], line["n_tokens"]].append(line["ms"])
            of_places[line["sample"]].append(math.log(line["ms"][-1]))
        elif "experts" in line:
            experts[line["n_tokens"]].append(line["experts"])
    layers = {
        n_tokens: [*map(fmean, zip(*counts, strict=True))] for n_tokens, counts in experts.items()
    }
    timings = [
        {
            "outputs": outputs,
            "n_tokens": n_tokens,
            "samples": len(samples),
            "ms": median(row[-1] for row in samples),
            "first_ms": median(row[0] for row in samples),
            "experts": fmean(layers[n_tokens]) if layers else None,
            "layers": layers.get(n_tokens),
        }
        for (outputs, n_tokens), samples in sorted(rows.items())
    ]
    record: dict[str, Any] = {"timings": timings, "deviation": None, "error": None}
    record |= {name: median(beside[name]) if beside[name] else None for name in BESIDE}
    if len(of_places) > 1:
        squares = (variance(math.log(row[-1]) for row in samples) for samples in rows.values())
        record["deviation"] = stdev(map(fmean, of_places.values()))
        record["error"] = math.sqrt(fmean(squares) / len(of_places) * math.pi / 2)
    return record


def time_passes_of_model(
    campaign: LoadedCampaign, name: str, passes: TimedPasses, log: Path
) -> dict[str, Any]:
    """Time the forward passes of a model, again if disturbed, and return the record of a name."""
    with exclusive_job(campaign, name, passes.model, log) as job:
        _logger.info("%s: forward passes are timed; the program logs to %s", passes.model, log)
        return measure_passes(passes, job)


def measure_passes(passes: TimedPasses, job: Job) -> dict[str, Any]:
    """Return the record of the passes of the job's target."""
    widest = max(n_tokens for _, n_tokens in passes.passes)
    passes = replace(passes, context=max(passes.context, passes.depth + passes.row * widest))
    places = passes.depth, passes.samples, passes.seconds or "inf"
    words = "time", job.root / passes.text, *places, passes.row, json.dumps(passes.passes)
    printed, attempts = measure_undisturbed(
        lambda: job.run(words, passes, passes.samples),  # each takes about as long as a run
        lambda: Watch(None, job.backend, passes.environment),
        Budget(passes.reruns, 1),
    )
    return {"machine": machine_id()} | attempts | read_timings(printed)


def expected_noise(
    deviations: Iterable[float | None], blocks: Iterable[Block], confidence: float
) -> dict[str, Any]:
    """Return what a machine's noise means for the intervals of a campaign; empty if it is unknown.

    `deviations` are those of models' passes. A setting and its baseline react differently to the
    machine's state, so a ratio of runs deviates as two identical passes do, by d = √2 times the
    root mean square deviation (0.7 and 1.0 of the ratios' own in two recorded series). After R
    repeats of n prompts an interval reaches to ± z d / √(nR), with the normal quantile z.
    """
    known, pairs = [deviation for deviation in deviations if deviation is not None], Counter[Any]()
    for block in blocks:
        if block.speculates and not block.repeat:
            pairs[block.comparison] += len(block.prompts)
    if not known or not pairs:
        return {}
    differ, prompts = math.sqrt(2 * fmean(deviation**2 for deviation in known)), max(pairs.values())
    once = NormalDist().inv_cdf((1 + confidence) / 2) * differ / math.sqrt(prompts)
    return {"differ": differ, "prompts": prompts, "once": once, "thrice": once / math.sqrt(3)}


Ids = tuple[tuple[int, ...], tuple[int, ...]]
"""The tokens of a prompt, and those after it."""
Text = tuple[str, str, Ids]
"""A target, a prompt, and the tokens of both: what the target wrote after the prompt."""
Proposal = dict[str, Any]
"""What a draft model would propose in place of one token: a line that the program prints.

`token` is its likeliest token, `agrees` whether that is the text's own, `confidence` its
probability among the ten likeliest, which the engine compares with p_min. `lead_nats` is how far it
leads the next one, or the text's own where they differ.
"""


def texts_of(records: Iterable[tuple[Block, Mapping[str, Any]]]) -> list[Text]:
    """Return the outputs of baselines, from blocks with their records, each once."""
    texts = set()
    for block, record in records:
        prompts = next(filter(None, (arm["prompts"] for arm in record["arms"])))
        runs = {run["run"]: run for run in record["runs"]}
        for source, group in product(block.prompts, range(len(record["groups"]))):
            tokens = runs[block.run_id(Arm(), source.prompt, group)]["answer"]["tokens"]
            texts.add((block.target, source.prompt, (tuple(prompts[source.prompt]), tuple(tokens))))
    return sorted(texts)


def score(
    texts: Sequence[Ids], block: Block, job: Job, n_tokens: int = BATCH
) -> list[list[Proposal]]:
    """Return the scores of texts by a draft model, the job's, in batches of `n_tokens`.

    Our program runs as the processes of `block` do. Raises MeasurementError if it fails or hangs.
    """
    proposals: list[list[Proposal]] = [[] for _ in texts]
    for proposal in _read("score", texts, (n_tokens,), block, job):
        proposals[proposal.pop("text")].append(proposal)
    return proposals


def _read(
    task: str, texts: Sequence[Ids], words: Iterable[object], block: Block, job: Job
) -> Iterator[dict[str, Any]]:
    """Yield the lines that our program prints in a task that reads texts."""
    file = job.server_log.with_suffix(".texts")
    file.write_text(json.dumps([(len(prompt), (*prompt, *tokens)) for prompt, tokens in texts]))
    longest = max(len(prompt) + len(tokens) for prompt, tokens in texts)
    alone = replace(block, context=longest, engine_args=())
    printed = job.run((task, file, *words), alone, len(texts))
    file.unlink()
    yield from map(json.loads, printed.splitlines())


def play(
    texts: Sequence[Text], arms: Sequence[Arm], block: Block, job: Job, *, replays: bool
) -> list[dict[str, Any]]:
    """Return texts of the job's target with the steps in which n-grams draft, by setting.

    They are written as by a baseline of `block`; `replays`: whether the target replays rounds.
    """
    words = block.n_predict, int(replays), json.dumps([job.flags(block, arm) for arm in arms])
    played = [{"prompt": prompt, "token": ids[1], "steps": {}} for _, prompt, ids in texts]
    for line in _read("play", [ids for *_, ids in texts], words, block, job):
        played[line["text"]]["steps"][arms[line["setting"]].name] = line["steps"]
    return played


def widest_move(first: Iterable[Sequence[Proposal]], second: Iterable[Sequence[Proposal]]) -> float:
    """Return by how many nats two scorings of the same texts in other batches differ at most.

    Where they propose different tokens, both leads have to be overcome.
    """
    moves = [
        abs(a["lead_nats"] - b["lead_nats"] * (1 if a["token"] == b["token"] else -1))
        for text, again in zip(first, second, strict=True)
        for a, b in zip(text, again, strict=True)
    ]
    return max(moves, default=0.0)


def score_texts(texts: Sequence[Text], block: Block, job: Job) -> dict[str, Any]:
    """Return what a record has of texts that a draft model, the job's, scores."""
    # Upcycled models write what their dense one does. Shortest prompts first: narrow batches take
    # long, so those of the first texts.
    distinct = sorted({ids for *_, ids in texts}, key=lambda ids: len(ids[0]))
    ends = accumulate(len(tokens) for _, tokens in distinct)
    again = max(1, sum(end <= _TOKENS_AGAIN for end in ends))
    scores = score(distinct, block, job)
    moves = [
        widest_move(scores[:again], score(distinct[:again], block, job, n_tokens))
        for n_tokens in _NARROWER
    ]
    of_ids = dict(zip(distinct, scores, strict=True))
    kept = ("agrees", "confidence", "lead_nats")
    return {
        "machine": machine_id(),
        "moved_nats": max(moves),
        "texts": [
            {"target": target, "prompt": prompt, "token": ids[1]}
            | {name: [proposal[name] for proposal in of_ids[ids]] for name in kept}
            for target, prompt, ids in texts
        ],
    }


def read_texts(
    campaign: LoadedCampaign,
    name: str,
    records: Iterable[tuple[Block, Mapping[str, Any]]],
    ngrams: Sequence[Arm],
    log: Path,
) -> dict[str, Any]:
    """Return the record of a name: a draft model scores texts, or a target's `ngrams` are played.

    `records` are those of blocks with a baseline; `log` receives the program's output.
    """
    model, blocks = name.partition("/")[2], [*records]
    texts, block, info = texts_of(blocks), blocks[0][0], load_info(campaign.places.info(model))
    files = {arm.draft_model for arm in ngrams if arm.draft_model}
    with exclusive_job(campaign, name, model, log, files) as job:
        if ngrams:
            read = {"target": model, "texts": play(texts, ngrams, block, job, replays=info.replays)}
        else:
            read = {"draft": model, "draft_sha256": info.sha256} | score_texts(texts, block, job)
    return {"engine": campaign.engine_id} | read
