"""Why a speculative run left its baseline's tokens: a near tie of the target's own, or not.

A verification is a batch of several rows and takes other kernels than a single row, so that of two
tokens that the target holds about equally likely the other may win. The baseline itself is asked:
given the tokens both runs share, how far behind its best candidate is the one the speculative run
took?
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from specmoe.block import Block
from specmoe.errors import MeasurementError
from specmoe.files import engine_path
from specmoe.host import host_id, physical_cores
from specmoe.paired import prompt_ids
from specmoe.server import Server, server_command

CANDIDATES_ASKED = 1000  # a token that is not among them is no near tie
CANDIDATES_KEPT = 5


@dataclass(frozen=True)
class Divergence:
    """The first token, counted from 0, that a run and its baseline do not share."""

    run: str
    baseline: str
    baseline_block: str
    prompt: str
    position: int
    token: int
    baseline_token: int
    prefix: tuple[int, ...]  # what both generated before it


@dataclass(frozen=True)
class Candidate:
    """A token, and the natural logarithm of its probability."""

    token: int
    logprob: float


@dataclass(frozen=True)
class Judgement:
    """How far the baseline's best candidate is ahead of the tokens that were taken.

    Of a token that is not among the candidates asked for, the gap is `at least` what it says.
    """

    gap_nats: float
    gap_is_at_least: bool
    baseline_gap_nats: float  # 0 but where reading the prefix in one batch turns a tie itself
    best: tuple[Candidate, ...]


def find_divergences(rows: Iterable[Mapping[str, Any]], target: str) -> list[Divergence]:
    """Return where the runs of a target left their baselines, among the rows of `runs.parquet`."""
    rows = [row for row in rows if row["target"] == target]
    by_run = {row["run"]: row for row in rows}
    return [
        _divergence(row, by_run[row["baseline"]])
        for row in rows
        if row["baseline"] in by_run and _diverges(row, by_run[row["baseline"]])
    ]


def judge(divergence: Divergence, candidates: Iterable[Candidate]) -> Judgement:
    """Return what the baseline's candidates after the common prefix, best first, say of it."""
    listed = list(candidates)
    logprobs = {candidate.token: candidate.logprob for candidate in listed}
    best, least = listed[0].logprob, listed[-1].logprob
    return Judgement(
        gap_nats=best - logprobs.get(divergence.token, least),
        gap_is_at_least=divergence.token not in logprobs,
        baseline_gap_nats=best - logprobs.get(divergence.baseline_token, least),
        best=tuple(listed[:CANDIDATES_KEPT]),
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

    `blocks` holds the baselines' blocks by id; the rest is as in `specmoe.paired.measure`. Raises
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
    with Server(command, log, start_limit_s, run_limit_s) as server:
        say(f"asking the baseline of {some_block.target} about {len(divergences)} divergences")
        asked = _ask_once_each(server, divergences, blocks, root)
    judged = [
        asdict(divergence) | asdict(judge(divergence, asked[_question(divergence)]))
        for divergence in divergences
    ]
    return {"host": host_id(), "command": server.command, "divergences": judged}


def _diverges(row: Mapping[str, Any], baseline: Mapping[str, Any]) -> bool:
    if row["tokens"] is None or baseline["tokens"] is None:
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
        position=position,
        token=tokens[position],
        baseline_token=baseline_tokens[position],
        prefix=tuple(tokens[:position]),
    )


def _question(divergence: Divergence) -> tuple[str, tuple[int, ...]]:
    return divergence.prompt, divergence.prefix


def _ask_once_each(
    server: Server, divergences: Iterable[Divergence], blocks: Mapping[str, Block], root: Path
) -> dict[tuple[str, tuple[int, ...]], list[Candidate]]:
    answers = {}
    for divergence in divergences:
        question = _question(divergence)
        if question not in answers:
            block = blocks[divergence.baseline_block]
            [source] = [one for one in block.prompts if one.prompt == divergence.prompt]
            ids = [*prompt_ids(server, source, block, root), *divergence.prefix]
            answers[question] = _candidates(server, ids, block)
    return answers


def _candidates(server: Server, ids: list[int], block: Block) -> list[Candidate]:
    answer = server.complete(
        ids, n_predict=1, temperature=0, seed=block.seed, n_probs=CANDIDATES_ASKED
    )
    [first] = answer["completion_probabilities"]
    return [Candidate(candidate["id"], candidate["logprob"]) for candidate in first["top_logprobs"]]
