"""The trace of one prompt: the rounds in which a draft model proposes the target's own text.

Nothing is timed. Both models have a server of their own, so that each round can be asked for. The
trace is shown round by round, in a terminal (`paper/trace.txt.j2`) and on the page.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, takewhile
from operator import eq
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import BaseModel

from specmoe.campaign.campaign import LoadedCampaign
from specmoe.config.block import Arm, Block, Stop
from specmoe.config.schema import Config
from specmoe.engine.job import Job
from specmoe.engine.server import Server
from specmoe.files import ROOT, named_if_damaged, read_record, replace_text
from specmoe.measure.alone import exclusive_job
from specmoe.measure.arm import check_length, prompt_ids
from specmoe.text import fill_template

_REPLACEMENT = "\N{REPLACEMENT CHARACTER}"  # the server's, for bytes that are no character
_PROMPT_SHOWN = 300  # characters
_SHOWN = {" ": "␣", "\n": "↵", "\t": "⇥"}


def visible(text: str) -> str:
    """Return text with visible white space, and with control characters as their codes."""
    return "".join(
        _SHOWN.get(sign, sign if sign.isprintable() else f"\\u{ord(sign):04x}") for sign in text
    )


@dataclass(frozen=True)
class Round:
    """Draft tokens, how many of the first are the target's too, and the token after these."""

    drafted: tuple[int, ...]
    accepted: int
    own: int  # what the target writes after the accepted ones


def common_prefix(first: Sequence[int], second: Sequence[int]) -> int:
    """Return how many elements two lists share, counted from the start."""
    return sum(takewhile(bool, map(eq, first, second)))


def decode(
    text: Sequence[int], gamma: int, propose: Callable[[Sequence[int], int], Sequence[int]]
) -> Iterator[Round]:
    """Yield the rounds by which a greedy target would have written its text.

    `propose` returns what the draft model writes after the given tokens, so many at most. The first
    token comes from processing the prompt and belongs to no round. Draft tokens leave room for the
    target's own token.
    """
    written = 1
    while written < len(text):
        most = min(gamma, len(text) - written - 1)
        drafted = tuple(propose(text[:written], most)) if most else ()
        accepted = common_prefix(drafted, text[written : written + most])
        yield Round(drafted, accepted, text[written + accepted])
        written += accepted + 1


class Recording(BaseModel, frozen=True):
    """The text that a target writes greedily, and the rounds in which a draft model proposes it."""

    version: Literal[5]
    target: str  # labels
    draft: str
    synthetic: bool
    gamma: int
    prompt_tokens: int
    prompt_text: str
    first: int
    rounds: tuple[Round, ...]
    token_texts: dict[int, str]  # the server's

    @property
    def tokens(self) -> tuple[int, ...]:
        """The text's tokens."""
        given = ((*step.drafted[: step.accepted], step.own) for step in self.rounds)
        return (self.first, *chain.from_iterable(given))

    @property
    def drafted(self) -> int:
        """How many tokens were drafted."""
        return sum(len(step.drafted) for step in self.rounds)

    @property
    def accepted(self) -> int:
        """How many of them were accepted."""
        return sum(step.accepted for step in self.rounds)

    @property
    def prompt_start(self) -> str:
        """The beginning of the prompt in one line, since prompts may be long."""
        text = self.prompt_text
        end = "…" if len(text) > _PROMPT_SHOWN else ""
        return " ".join(map(visible, text[:_PROMPT_SHOWN].split())) + end

    def outcomes(self, step: Round) -> list[tuple[str, str]]:
        """Return the draft tokens of a round and the target's own, as text after their outcomes."""
        outcomes = ["accepted"] * step.accepted + ["rejected"] * (len(step.drafted) - step.accepted)
        texts = map(self.text_of, (*step.drafted, step.own))
        return list(zip((*outcomes, "own"), texts, strict=True))

    def text_of(self, token: int) -> str:
        """Return a token as readable text that is safe on a terminal; `⟨id⟩` if it is no text."""
        text = self.token_texts[token]
        return visible(text) if text and _REPLACEMENT not in text else f"⟨{token}⟩"

    @classmethod
    def read(cls, path: Path) -> Self:
        """Return the record in a file; raises DamagedFileError for another one, or version."""
        with named_if_damaged(path):
            return cls.model_validate(read_record(path))


def record_trace(campaign: LoadedCampaign, log: Path) -> None:
    """Decode one prompt with a target, and record the draft tokens of every round."""
    block = campaign.demonstration
    assert block is not None
    with exclusive_job(campaign, "trace", block.target, log, block.draft_models) as job:
        recording = record(block, job, campaign.config)
    replace_text(campaign.places.trace_file, recording.model_dump_json(indent=1) + "\n")


def show_trace(trace: Path, log: Path) -> None:
    """Show round by round how one prompt is decoded with a draft model, and log it."""
    text = fill_template(ROOT / "paper/trace.txt.j2", trace=Recording.read(trace))
    log.write_text(text, encoding="utf-8")
    print(text, end="")


def record(block: Block, job: Job, config: Config) -> Recording:
    """Return the rounds by which the draft model would have given the target's own text.

    Raises MeasurementError when a server fails.
    """
    [source], [arm] = block.prompts, block.arms
    assert arm.draft_model
    of_draft, log = replace(job, target=job.drafts[arm.draft_model]), job.server_log
    with (
        job.server(block, Arm(engine_args=arm.words), log) as target,
        of_draft.server(block, Arm(), log.with_suffix(".draft.log")) as draft,
    ):

        def answered(server: Server, after: Sequence[int], n_predict: int) -> dict[str, Any]:
            return server.complete(
                [*prompt, *after],
                n_predict=n_predict,
                temperature=0,
                seed=block.seed,
                until_end=until_end,
                cache_prompt=True,
            )

        prompt, until_end = prompt_ids(target, source, block, job.root), block.stop == Stop.EOS
        answer = answered(target, [], block.n_predict)
        check_length(target, prompt, answer, block.n_predict, until_end=until_end)
        text: list[int] = answer["tokens"]
        rounds = tuple(decode(text, arm.gamma, lambda *asked: answered(draft, *asked)["tokens"]))
        known = sorted({*text, *(token for step in rounds for token in step.drafted)})
        return Recording(
            version=5,
            target=config.label(block.target),
            draft=config.label(arm.draft_model),
            synthetic=any("random" in config.weights(model) for model in block.models),
            gamma=arm.gamma,
            prompt_tokens=len(prompt),
            prompt_text=target.detokenize(prompt),
            first=text[0],
            rounds=rounds,
            token_texts={token: target.detokenize([token]) for token in known},
        )
