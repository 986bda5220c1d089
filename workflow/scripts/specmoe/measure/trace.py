"""Let a target write after one prompt, and ask a draft model what it would have proposed.

Nothing is timed. Both models are servers of their own, so that each round can be asked for.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from specmoe.config.block import Side, Stop
from specmoe.config.trace import Demonstration
from specmoe.engine.identity import Workplace
from specmoe.engine.job import Job, alone_on_its_host
from specmoe.engine.server import Asked, Server
from specmoe.files import replace_text
from specmoe.measure.requests import generate, prompt_ids
from specmoe.measure.trace_record import VERSION, Recording, decode


def record(demonstration: Demonstration, job: Job) -> Recording:
    """Return the rounds by which the draft model would have given the target's own text.

    Raises MeasurementError when a server fails.
    """
    block = demonstration.block
    [source], [side] = block.prompts, block.sides
    assert side.draft_model
    of_draft = replace(job, target=job.drafts[side.draft_model]).command(block, Side())
    with (
        job.server(job.command(block, Side()), block, job.server_log) as target,
        job.server(of_draft, block, job.server_log.with_suffix(".draft.log")) as draft,
    ):

        def written(server: Server, after: Sequence[int], n_predict: int) -> list[int]:
            ends = block.stop == Stop.EOS
            asked = Asked(n_predict=n_predict, temperature=0.0, seed=block.seed, until_end=ends)
            tokens: list[int] = generate(server, [*prompt, *after], **asked)["tokens"]
            return tokens

        prompt = prompt_ids(target, source, block, job.root)
        text = written(target, [], block.n_predict)
        rounds = tuple(decode(text, side.gamma, partial(written, draft)))
        known = sorted({*text, *(token for one in rounds for token in one.drafted)})
        return Recording(
            version=VERSION,
            target=demonstration.target_label,
            draft=demonstration.draft_label,
            synthetic=demonstration.synthetic,
            gamma=side.gamma,
            prompt_tokens=len(prompt),
            prompt_text=target.detokenize(prompt),
            first=text[0],
            rounds=rounds,
            token_texts={token: target.detokenize([token]) for token in known},
        )


def record_trace(demonstration: Demonstration, workplace: Workplace, job: Job, out: Path) -> None:
    """Decode the demonstration's prompt, alone on the machine, and write its record."""
    with alone_on_its_host(workplace, demonstration.block.environment):
        recording = record(demonstration, job)
    replace_text(out, recording.to_json())
