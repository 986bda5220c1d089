"""Why a speculative run left its baseline's tokens: a near tie of the target's own, or not.

A verification is a batch of several rows and takes other kernels than a single row, so that of two
tokens that the target holds about equally likely the other may win. The target itself is asked,
without a draft: given the tokens both runs share, how far is the baseline's token ahead of the one
the speculative run took, when those tokens are read one by one as the baseline read them, and when
they are read in batches as wide as that run's? If batches alone close the gap, they are the cause.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from specmoe.config.block import Block
from specmoe.engine.machine_id import host_id, physical_cores
from specmoe.engine.server import Server, server_command
from specmoe.errors import MeasurementError
from specmoe.files import engine_path
from specmoe.measure.batches import Candidate, batches, read_in_batches
from specmoe.measure.paired import prompt_ids

CANDIDATES_ASKED = 1000  # a token that is not among them is no near tie
CANDIDATES_KEPT = 5

_Answers = dict[tuple[str, tuple[int, ...], int], list[Candidate]]


@dataclass(frozen=True)
class Divergence:
    """The first token, counted from 0, that a run and its baseline do not share."""

    run: str
    baseline: str
    baseline_block: str
    prompt: str
    gamma: int
    position: int
    token: int
    baseline_token: int
    prefix: tuple[int, ...]  # what both generated before it


@dataclass(frozen=True)
class Judgement:
    """How far the baseline's token is ahead of the one that was taken, in nats.

    Of a token that is not among the candidates asked for, the gap is `at least` what it says; a
    reading in batches that does not list both tokens is left out.
    """

    gap_nats: float  # read one by one, so below zero only if the baseline does not repeat itself
    gap_is_at_least: bool
    gap_nats_by_width: dict[int, float]  # read in batches of so many tokens
    best: tuple[Candidate, ...]  # read one by one


def find_divergences(rows: Iterable[Mapping[str, Any]], target: str) -> list[Divergence]:
    """Return where the runs of a target left their baselines, among the rows of `runs.parquet`."""
    rows = [row for row in rows if row["target"] == target]
    by_run = {row["run"]: row for row in rows}
    return [
        _divergence(row, by_run[row["baseline"]])
        for row in rows
        if row["baseline"] in by_run and _diverges(row, by_run[row["baseline"]])
    ]


def widths(gamma: int) -> list[int]:
    """Return the widths of batches to ask about: some that a run meets, up to a full verification.

    Kernels change at powers of two, and take the rows that are left over one by one.
    """
    return sorted({2**power for power in range(1, (gamma + 1).bit_length())} | {gamma + 1})


def judge(divergence: Divergence, readings: Mapping[int, list[Candidate]]) -> Judgement:
    """Return what the target's candidates after the common prefix say of a divergence.

    They are best first, by the width of the batches in which the prefix was read; 1 is among them.
    """
    pair = divergence.baseline_token, divergence.token
    gaps = {width: _gap(candidates, *pair) for width, candidates in readings.items()}
    ahead, missing = gaps.pop(1)
    return Judgement(
        gap_nats=ahead,
        gap_is_at_least=missing,
        gap_nats_by_width={width: gap for width, (gap, least) in gaps.items() if not least},
        best=tuple(readings[1][:CANDIDATES_KEPT]),
    )


def judge_all(
    divergences: Iterable[Divergence],
    blocks: Mapping[str, Block],
    *,
    root: Path,
    binary: Path,
    target: Path,
    log: Path,
    start_limit_s: float,
    run_limit_s: float,
    say: Callable[[str], None],
) -> dict[str, Any]:
    """Judge the divergences of one target in one server with the baseline's command line.

    `blocks` holds the baselines' blocks by id; the rest is as in `paired.measure`. Raises
    MeasurementError when a baseline's block is missing or the server fails.
    """
    divergences = list(divergences)
    if not divergences:
        return {"host": host_id(), "command": None, "divergences": []}
    for divergence in divergences:
        if divergence.baseline_block not in blocks:
            raise MeasurementError(
                f"no record of block {divergence.baseline_block}, the baseline of {divergence.run}"
            )
    some_block = blocks[divergences[0].baseline_block]
    command = server_command(
        binary,
        engine_path(target),
        context=some_block.context,
        threads=some_block.threads or physical_cores(),
        gpu_layers=some_block.gpu_layers,
    )
    asked: _Answers = {}
    with Server(command, log, start_limit_s, run_limit_s, some_block.environment) as server:
        say(f"asking the baseline of {some_block.target} about {len(divergences)} divergences")
        for divergence in divergences:
            _ask(server, divergence, blocks[divergence.baseline_block], root, asked)
    judged = [
        asdict(divergence) | asdict(judge(divergence, _readings(divergence, asked)))
        for divergence in divergences
    ]
    return {"host": host_id(), "command": server.command, "divergences": judged}


def _diverges(row: Mapping[str, Any], baseline: Mapping[str, Any]) -> bool:
    if pd.isna(row["common_prefix"]):  # tokens that are not known, or not to be the same
        return False
    return bool(row["common_prefix"] < min(len(row["tokens"]), len(baseline["tokens"])))


def _divergence(row: Mapping[str, Any], baseline: Mapping[str, Any]) -> Divergence:
    position = int(row["common_prefix"])
    tokens, baseline_tokens = (list(map(int, of["tokens"])) for of in (row, baseline))
    return Divergence(
        run=row["run"],
        baseline=row["baseline"],
        baseline_block=baseline["block"],
        prompt=row["prompt"],
        gamma=int(row["gamma"]),
        position=position,
        token=tokens[position],
        baseline_token=baseline_tokens[position],
        prefix=tuple(tokens[:position]),
    )


def _gap(candidates: list[Candidate], ahead: int, behind: int) -> tuple[float, bool]:
    """Return by how many nats one token leads another, and whether one of them is not listed."""
    logprobs = {candidate.token: candidate.logprob for candidate in candidates}
    least = candidates[-1].logprob
    gap = logprobs.get(ahead, least) - logprobs.get(behind, least)
    return gap, not {ahead, behind} <= set(logprobs)


def _readings(divergence: Divergence, asked: _Answers) -> dict[int, list[Candidate]]:
    return {
        width: asked[divergence.prompt, divergence.prefix, width]
        for width in (1, *widths(divergence.gamma))
    }


def _ask(server: Server, divergence: Divergence, block: Block, root: Path, asked: _Answers) -> None:
    """Add what the target says to `asked`, where no run with the same tokens has asked it."""
    [source] = [one for one in block.prompts if one.prompt == divergence.prompt]
    prompt = prompt_ids(server, source, block, root)
    for width in (1, *widths(divergence.gamma)):
        question = divergence.prompt, divergence.prefix, width
        if question not in asked:
            sizes = batches(divergence.position, width)
            *_, asked[question] = read_in_batches(
                server, prompt, divergence.prefix, sizes, CANDIDATES_ASKED
            )
