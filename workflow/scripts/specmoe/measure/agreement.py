"""A draft's reading of the texts that its targets wrote alone: what it would have proposed.

A greedy target accepts what it would have written itself. So whether a draft agrees with a token
depends on the text before it alone, and one reading gives the rounds of every draft length (see
`audit.agreement`). Texts are read in batches; some are read again in narrower ones, which tells how
far rounding moves what the draft prefers.
"""

import json
import os
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import Any, NamedTuple

from specmoe.config.block import Block, Protocol, Side
from specmoe.config.environment import engine_environment
from specmoe.config.methods import METHODS, Method
from specmoe.engine.build import READ_AGREEMENT
from specmoe.engine.flags import words_of
from specmoe.engine.identity import Workplace
from specmoe.engine.job import Job, alone_on_its_host, job_of, provenance
from specmoe.engine.machine import host_id, physical_cores
from specmoe.engine.process import run_tool
from specmoe.files import engine_path
from specmoe.measure.side import prompt_ids

WIDTH = 32
# A draft proposes token by token, and has read the text before in batches of γ + 1.
_NARROWER = (1, 2, 8)
_TOKENS_AGAIN = 256  # of texts that are read again


class Text(NamedTuple):
    """The tokens of a prompt, and of what a target wrote after it."""

    prompt: tuple[int, ...]
    tokens: tuple[int, ...]

    def line(self) -> str:
        """Return the text as a line of the program's file of texts."""
        return " ".join(map(str, [len(self.prompt), *self.prompt, *self.tokens]))


class Proposal(NamedTuple):
    """What a draft would propose in place of one token of a text.

    `confidence` is the probability of its token among the ten likeliest, which the engine compares
    with p_min. `lead_nats` is how far its token leads the next one, or the text's own where they
    differ.
    """

    token: int
    agrees: bool
    confidence: float
    lead_nats: float


@dataclass(frozen=True)
class Written:
    """A text that a target wrote alone, and a block in which it did."""

    target: str
    prompt: str
    n_prompt: int
    tokens: tuple[int, ...]
    block: str


@dataclass(frozen=True)
class Reader:
    """A draft that reads texts, and how its program runs: as a block's processes do."""

    program: Path
    draft: Path
    log: Path
    limit_s: float
    block: Block

    def read(self, texts: Sequence[Text], width: int = WIDTH) -> list[list[Proposal]]:
        """Return the draft's proposals for some texts, read in batches of a width.

        Raises MeasurementError, with the end of the program's log, if it fails or hangs.
        """
        file = self.log.with_suffix(".texts")
        file.write_text("".join(f"{text.line()}\n" for text in texts))
        options = {
            "model": engine_path(self.draft),
            "texts": file,
            "threads": self.block.threads or physical_cores(),
            "gpu-layers": self.block.gpu_layers,
            "width": width,
        }
        command = [str(self.program), *words_of(options)]
        environment = engine_environment(self.block.environment, os.environ)
        printed = run_tool(command, self.log, self.limit_s, environment).text
        file.unlink()
        return read_proposals(printed)


def read_proposals(printed: str) -> list[list[Proposal]]:
    """Return what the program printed: of each text, the proposals in the order of its tokens."""
    texts: defaultdict[int, list[Proposal]] = defaultdict(list)
    for line in printed.splitlines():
        one = json.loads(line)
        texts[one["text"]].append(Proposal(*(one[name] for name in Proposal._fields)))
    return [texts[number] for number in sorted(texts)]


def widest_move(one: Iterable[Sequence[Proposal]], other: Iterable[Sequence[Proposal]]) -> float:
    """Return by how many nats two readings of the same texts in other batches differ at most.

    Where they propose different tokens, that is what both leads have to be overcome by.
    """
    moves = [
        abs(a.lead_nats - b.lead_nats) if a.token == b.token else a.lead_nats + b.lead_nats
        for text, again in zip(one, other, strict=True)
        for a, b in zip(text, again, strict=True)
    ]
    return max(moves, default=0.0)


def texts_to_read(
    rows: Iterable[Mapping[str, Any]], draft: str, targets: Collection[str]
) -> list[Written]:
    """Return the texts behind which a draft's greedy runs lie, from rows of `runs.parquet`.

    Those are the runs of `config.matrix.list_readings`. Repeats of a text are one.
    """
    by_run = {row["run"]: row for row in rows}
    texts = {}
    for row in by_run.values():
        drafted = row["draft_model"] == draft and row["method"] == METHODS[Method.DRAFT].engine
        greedy = row["protocol"] == Protocol.PAIRED and row["temperature"] == 0
        baseline = by_run.get(row["baseline"])
        asked = row["target_model"] in targets and drafted
        if not (asked and greedy) or row["engine_options"] or baseline is None:
            continue
        tokens = tuple(map(int, baseline["tokens"]))
        key = (baseline["target_model"], baseline["prompt"], tokens)
        texts[key] = Written(*key[:2], int(baseline["n_prompt"]), tokens, baseline["block"])
    return [texts[key] for key in sorted(texts)]


def read(
    texts: Sequence[Written],
    blocks: Mapping[str, Block],
    jobs: Mapping[str, Job],
    draft: Path,
    program: Path,
) -> dict[str, Any]:
    """Return the record of a draft's reading: of each text its proposals, and how they move.

    `blocks` holds the blocks of the texts, `jobs` is by target. Raises MeasurementError when an
    engine fails, or if a prompt has other tokens than it had.
    """
    prompts = {
        (target, prompt): ids
        for target in dict.fromkeys(text.target for text in texts)
        for prompt, ids in _prompts(target, texts, blocks, jobs[target]).items()
    }
    listed = [Text(tuple(prompts[text.target, text.prompt]), text.tokens) for text in texts]
    job, block = next(iter(jobs.values())), blocks[texts[0].block]
    limit_s = job.start_limit_s + job.run_limit_s * len(texts)
    reader = Reader(program, draft, job.server_log, limit_s, block)
    found = reader.read(listed)
    again = _some(listed)
    moved = max(
        widest_move(
            [found[number] for number in again],
            reader.read([listed[number] for number in again], width),
        )
        for width in _NARROWER
    )
    return {
        "host": host_id(),
        "moved_nats": moved,
        "texts": [
            {"target": text.target, "prompt": text.prompt, "tokens": text.tokens}
            | {name: [getattr(one, name) for one in of_text] for name in Proposal._fields[1:]}
            for text, of_text in zip(texts, found, strict=True)
        ],
    }


def _some(texts: Sequence[Text]) -> list[int]:
    """Return the numbers of some texts, of the shortest prompts: narrow batches take long."""
    shortest = sorted(range(len(texts)), key=lambda number: len(texts[number].prompt))
    ends = accumulate(len(texts[number].tokens) for number in shortest)
    some = [number for number, end in zip(shortest, ends, strict=True) if end <= _TOKENS_AGAIN]
    return some or shortest[:1]


def _prompts(
    target: str, texts: Sequence[Written], blocks: Mapping[str, Block], job: Job
) -> dict[str, list[int]]:
    """Return the token ids of a target's prompts, from a server that makes them as it measured."""
    own = {text.prompt: text for text in texts if text.target == target}
    some_block = blocks[next(iter(own.values())).block]
    command = job.command(some_block, Side())
    prompts = {}
    with job.server(command, some_block, job.server_log) as server:
        for name, text in own.items():
            block = blocks[text.block]
            [source] = [one for one in block.prompts if one.prompt == name]
            prompts[name] = prompt_ids(server, source, block, job.root)
    return prompts


def read_texts(
    draft: str,
    rows: Iterable[Mapping[str, Any]],
    blocks: Mapping[str, Block],
    workplace: Workplace,
    file: Path,
    targets: Mapping[str, Path],
    log: Path,
) -> dict[str, Any]:
    """Read what targets wrote alone with a draft, alone on the machine; return its proposals.

    `rows` are those of `runs.parquet`, `blocks` the campaign's by id; `log` receives the engine's
    output.
    """
    made_by = provenance(workplace.engine, file)
    texts = texts_to_read(rows, draft, targets.keys())
    with alone_on_its_host(workplace, blocks[texts[0].block].environment):
        jobs = {target: job_of(workplace, model, log) for target, model in targets.items()}
        record = read(texts, blocks, jobs, file, workplace.engine.with_name(READ_AGREEMENT))
    facts = {"engine": made_by["engine"], "draft_sha256": made_by["target_sha256"]}
    return {"draft": draft, **facts, **record}
