"""Divergences of speculative runs from their baselines: near ties of the target, or not.

A verification is a batch, and takes other kernels than a single row. The baseline's server
processes the tokens before a divergence again, one by one and in batches as large as the run's. If
the lead of the baseline's token closes in batches alone, they are the cause.
"""

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import accumulate, groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

import pandas as pd

from specmoe.campaign.campaign import LoadedCampaign
from specmoe.config.block import Block
from specmoe.engine.identity import fact
from specmoe.engine.job import Job
from specmoe.engine.server import Server
from specmoe.files import at_home
from specmoe.hardware.machine import machine_id
from specmoe.measure.alone import exclusive_job
from specmoe.measure.arm import prompt_ids

CANDIDATES_ASKED = 1000  # a token that is not among them is no near tie
_WHOLE = "a"
CERTAIN = 1e6  # added to a token's logit, it is sampled; no logit comes near

# A target with a sliding window keeps no more than the window, so it would process a prompt again
# instead of the next batch. With this flag it keeps all, and still looks no farther.
_KEEPS_ALL = "--swa-full"

_logger = logging.getLogger(__name__)


Candidates = dict[int, float]
"""The likeliest tokens, best first, with the natural logarithms of their probabilities."""
Divergence = dict[str, Any]
"""The first token at which a run and its baseline differ, as a record has it.

The `token` at a `position` counted from 0 and the `baseline_token`, behind a `prefix` of both.
"""


def read_in_batches(
    server: Server, prompt: Sequence[int], tokens: Sequence[int], sizes: Iterable[int], asked: int
) -> Iterator[Candidates]:
    """Yield the `asked` likeliest next tokens, best first, after a prompt and after each batch.

    The server processes the prompt as in every run, then `tokens` in batches of `sizes`; batches of
    1 are how it generates without speculation. Raises MeasurementError if it does otherwise.
    """
    # The engine leaves out the candidates of a token that ends within a character, so a whole one
    # is sampled in place of the likeliest.
    [*_, whole] = server.tokenize(_WHOLE)
    read = 0
    for size in (0, *sizes):
        read += size
        answer = server.complete(
            [*prompt, *tokens[:read]],
            n_predict=1,
            temperature=0,
            seed=0,
            n_probs=asked,
            cache_prompt=bool(size),
            logit_bias=[[whole, CERTAIN]],
        )
        processed, due = answer["timings"]["prompt_n"], size or len(prompt)
        if processed != due:
            raise server.error(f"the server read {processed} tokens at once instead of {due}")
        [first] = answer["completion_probabilities"]
        yield {token["id"]: token["logprob"] for token in first["top_logprobs"]}


def find_divergences(rows: Iterable[Mapping[str, Any]], target: str) -> Iterator[Divergence]:
    """Yield where runs of a target differ from their baselines, from rows of `runs.parquet`."""
    by_run = {row["run"]: row for row in rows if row["target"] == target}
    for row in by_run.values():
        baseline = by_run.get(row["baseline"])
        # Without a prefix the tokens are unknown, or expected to differ.
        if baseline is None or pd.isna(row["common_prefix"]):
            continue
        position = int(row["common_prefix"])
        tokens, baseline_tokens = (list(map(int, of["tokens"])) for of in (row, baseline))
        lengths = row["gamma"], row["partner_gamma"]  # of drafts
        if position < min(len(tokens), len(baseline_tokens)):
            yield {
                "run": row["run"],
                "baseline": baseline["run"],
                "baseline_block": baseline["block"],
                "engine_options": baseline["engine_options"],
                "prompt": row["prompt"],
                "gamma": max(int(length) for length in lengths if pd.notna(length)),
                "position": position,
                "token": tokens[position],
                "baseline_token": baseline_tokens[position],
                "prefix": tuple(tokens[:position]),
            }


def batch_sizes(gamma: int, slots: int = 1) -> list[int]:
    """Return the sizes of batches to ask about, up to a full verification of all requests.

    Kernels change at powers of two, and take the remaining rows one by one.
    """
    widest = slots * (gamma + 1)
    return sorted({2**power for power in range(1, widest.bit_length())} | {widest})


def weigh(baseline_token: int, token: int, readings: Mapping[int, Candidates]) -> dict[str, Any]:
    """Return by how many nats the baseline's token leads the one that the run took.

    `readings` holds the likeliest tokens after the common prefix by the size of the batches. With
    size 1, `gap_nats` is negative only if the baseline does not repeat itself, and a lower bound if
    one of the two tokens is not listed; larger batches count only with both.
    """
    gaps = {}
    for n_tokens, candidates in readings.items():
        if n_tokens == 1 or {baseline_token, token} <= candidates.keys():
            last = min(candidates.values())  # no lower than that of a token that is not listed
            gaps[n_tokens] = candidates.get(baseline_token, last) - candidates.get(token, last)
    likeliest = next(iter(readings[1]))  # the baseline's own, unless it does not repeat itself
    return {"likeliest": likeliest, "gap_nats": gaps.pop(1), "gap_nats_by_batch": gaps}


def judge_all(
    divergences: Iterable[Divergence], blocks: Mapping[str, Block], job: Job
) -> dict[str, Any]:
    """Judge the divergences of one target, in a server with the baseline's command line.

    There is a server for each set of options. `blocks` holds the baselines' blocks by id.
    """
    judged, commands, options = [], [], itemgetter("engine_options")
    for number, (_, alike) in enumerate(groupby(sorted(divergences, key=options), options)):
        # The longest first: shorter texts are often its beginnings, read on the way.
        members = sorted(alike, key=lambda one: -one["position"])
        wanted = {(one["prompt"], one["prefix"]) for one in members}
        # Of one request after the other, each whole; large batches stand for requests at once.
        some_block = replace(blocks[members[0]["baseline_block"]], concurrency=None, prompts=())
        log = job.server_log.with_suffix(f".{number}.log") if number else job.server_log
        # Candidates after a prompt and a prefix that was read in batches of a size.
        known: dict[tuple[str, tuple[int, ...], int], Candidates] = {}
        with job.server(some_block, some_block.baseline, log, _KEEPS_ALL) as server:
            asked = some_block.block, len(members)
            _logger.info("asking the baseline of %s about %d divergences", *asked)
            commands.append([*map(at_home, server.command)])
            for divergence in members:
                block = blocks[divergence["baseline_block"]]
                name, prefix = divergence["prompt"], divergence["prefix"]
                [source] = [source for source in block.prompts if source.prompt == name]
                prompt = prompt_ids(server, source, block, job.root)
                readings = {}
                for n_tokens in (1, *batch_sizes(divergence["gamma"], block.slots)):
                    question = name, prefix, n_tokens
                    if question not in known:
                        # Only the first batch may be smaller.
                        rest, full = len(prefix) % n_tokens, len(prefix) // n_tokens
                        sizes = [size for size in (rest, *[n_tokens] * full) if size]
                        read = read_in_batches(server, prompt, prefix, sizes, CANDIDATES_ASKED)
                        for end, candidates in zip(accumulate(sizes, initial=0), read, strict=True):
                            if (name, prefix[:end]) in wanted:
                                known[name, prefix[:end], n_tokens] = candidates
                    readings[n_tokens] = known[question]
                lead = weigh(divergence["baseline_token"], divergence["token"], readings)
                judged.append(divergence | lead)
    return {"machine": machine_id(), "commands": commands, "divergences": judged}


def judge_target(
    campaign: LoadedCampaign, target: str, rows: Iterable[Mapping[str, Any]], log: Path
) -> dict[str, Any]:
    """Judge the divergences of a target's runs, with no other measurement.

    `rows` are those of `runs.parquet`.
    """
    commit = fact(campaign.places.engine_file(campaign.engine_id), "commit")
    facts = {"target": target, "engine": campaign.engine_id, "engine_commit": commit}
    with exclusive_job(campaign, f"divergences/{target}", target, log) as job:
        return facts | judge_all(find_divergences(rows, target), campaign.blocks, job)
