"""Decode one prompt with drafts and without on the real server, and record every round.

The rounds come from a log at the debug level. That costs time, so the record holds no times.
"""

import logging
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from specmoe.config.block import Block, Side, Stop
from specmoe.config.methods import METHODS, chain_name
from specmoe.config.trace import Demonstration
from specmoe.engine.answers import ACCEPTED, DRAFTED, ROUNDS, stopped_by
from specmoe.engine.debug_log import BATCHES, Round, check_counters, count, read_rounds
from specmoe.engine.job import Job
from specmoe.engine.server import Asked, Server
from specmoe.errors import MeasurementError
from specmoe.files import at_home
from specmoe.measure.live_side import drafting_as_asked
from specmoe.measure.requests import generate, prompt_ids
from specmoe.measure.trace_record import VERSION, Provenance, Recording

_VERBOSITY = "--log-verbosity"
_DEBUG = "5"
_FEWEST = 3  # tokens: the prompt's pass gives the first, and a draft leaves room for the target's
_COUNTERS = {"rounds": ROUNDS, "drafted": DRAFTED, "accepted": ACCEPTED}

_logger = logging.getLogger(__name__)


def record(
    demonstration: Demonstration, job: Job, plain_log: Path, provenance: Provenance
) -> Recording:
    """Decode the prompt with drafts, then without, and return the record of both.

    A text that may end is decoded to its end. `plain_log` receives the output of the server without
    drafts. Raises MeasurementError when a server fails or does not draft, or when the log of the
    rounds contradicts the tokens or the server's counters.
    """
    block, side = demonstration.block, demonstration.side
    if block.stop == Stop.EOS:
        block = replace(block, n_predict=_own_length(block, job, plain_log))
    [source] = block.prompts
    command = _at_debug_level(job.command(block, side))
    logging_batches = replace(block, environment={**block.environment, **BATCHES})
    _logger.info("decoding %d tokens after %s with %s", block.n_predict, source.prompt, block.draft)
    server = job.server(command, logging_batches, job.server_log)
    with drafting_as_asked(server, block, side), server:
        prompt = prompt_ids(server, source, block, job.root)
        tokens = _tokens(server, block, prompt)
        counters = server.metrics()
        prompt_text, text = server.detokenize(prompt), server.detokenize(tokens)
    rounds = _rounds(server, block, side, tokens, counters)
    _logger.info("decoding the same without a draft")
    with job.server(job.command(block, Side()), block, plain_log) as server:
        plain = _tokens(server, block, prompt)
        read = [token for one in rounds for pass_ in one.passes for token in pass_.read]
        vocabulary = sorted({*tokens, *plain, *read})
        token_texts = {token: server.detokenize([token]) for token in vocabulary}
    return Recording(
        version=VERSION,
        demonstration=demonstration,
        provenance=provenance,
        command=tuple(map(at_home, command)),
        prompt_tokens=len(prompt),
        prompt_text=prompt_text,
        tokens=tuple(tokens),
        text=text,
        rounds=tuple(rounds),
        plain_tokens=tuple(plain),
        token_texts=token_texts,
    )


def _own_length(block: Block, job: Job, log: Path) -> int:
    """Return how many tokens the target alone writes before it ends, three at least.

    A round that ends within its draft has more tokens in the log than in the answer, so the text is
    decoded to a known length.
    """
    with job.server(job.command(block, Side()), block, log) as server:
        prompt = prompt_ids(server, block.prompts[0], block, job.root)
        answer = generate(server, prompt, **_asked(block, until_end=True))
    return max(len(answer["tokens"]) - (stopped_by(answer) == Stop.EOS), _FEWEST)


def _rounds(
    server: Server, block: Block, side: Side, tokens: list[int], counters: Mapping[str, float]
) -> list[Round]:
    """Return the rounds from the log of a server that has ended, and so has written all of it."""
    steady = any(METHODS[method].always_drafts for method in block.methods)
    if steady and not (side.p_min or side.n_min or counters.get(DRAFTED)):
        raise server.fault(f"the server drafted nothing; {chain_name(block.methods)} is not in use")
    rounds = read_rounds(server.log_text(), tokens)
    check_counters(count(rounds), {name: counters.get(of, 0) for name, of in _COUNTERS.items()})
    return rounds


def _at_debug_level(command: list[str]) -> list[str]:
    level = command.index(_VERBOSITY) + 1
    return [*command[:level], _DEBUG, *command[level + 1 :]]


def _tokens(server: Server, block: Block, prompt: list[int]) -> list[int]:
    tokens: list[int] = generate(server, prompt, **_asked(block))["tokens"]
    if server.decode_failures():
        raise MeasurementError(f"the server failed to decode {server.decode_failures()} times")
    return tokens


def _asked(block: Block, *, until_end: bool = False) -> Asked:
    return Asked(
        n_predict=block.n_predict,
        temperature=block.temperature,
        seed=block.seed,
        until_end=until_end,
    )
