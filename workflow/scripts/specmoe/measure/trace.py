"""Decode one prompt with a draft and without on the real server, and record every round.

The rounds come from the log of a server at the debug level. That level costs time, so the record
holds no times; the generated tokens are the same at every level.
"""

import logging
from collections.abc import Mapping
from pathlib import Path

from specmoe.config.block import Block, Side
from specmoe.config.trace import Demonstration
from specmoe.engine.counters import ACCEPTED, DRAFTED, ROUNDS
from specmoe.engine.debug_log import Round, check_counters, count, read_rounds
from specmoe.engine.job import Job
from specmoe.engine.server import Server
from specmoe.errors import MeasurementError
from specmoe.measure.live_side import generate, prompt_ids
from specmoe.measure.trace_record import VERSION, Provenance, Recording

_VERBOSITY = "--log-verbosity"
_DEBUG = "5"
_COUNTERS = {"rounds": ROUNDS, "drafted": DRAFTED, "accepted": ACCEPTED}

_logger = logging.getLogger(__name__)


def record(
    demonstration: Demonstration, job: Job, plain_log: Path, provenance: Provenance
) -> Recording:
    """Decode the prompt with the job's draft, then without, and return the record of both.

    `plain_log` receives the output of the server without the draft. Raises MeasurementError when a
    server fails, or when the log of the rounds contradicts the tokens or the server's counters.
    """
    block = demonstration.block
    [source] = block.prompts
    command = _at_debug_level(job.command(block, demonstration.side))
    _logger.info("decoding %d tokens after %s with %s", block.n_predict, source.prompt, block.draft)
    with job.server(command, block, job.server_log) as server:
        prompt = prompt_ids(server, source, block, job.root)
        tokens = _tokens(server, block, prompt)
        counters = server.metrics()
        prompt_text, text = server.detokenize(prompt), server.detokenize(tokens)
    rounds = _rounds(server, tokens, counters)
    _logger.info("decoding the same without a draft")
    with job.server(job.command(block, Side()), block, plain_log) as server:
        plain = _tokens(server, block, prompt)
        drafted = [guess.token for one in rounds for guess in one.drafted]
        vocabulary = sorted({*tokens, *plain, *drafted})
        token_texts = {token: server.detokenize([token]) for token in vocabulary}
    return Recording(
        version=VERSION,
        demonstration=demonstration,
        provenance=provenance,
        command=tuple(command),
        prompt_tokens=len(prompt),
        prompt_text=prompt_text,
        tokens=tuple(tokens),
        text=text,
        rounds=tuple(rounds),
        plain_tokens=tuple(plain),
        token_texts=token_texts,
    )


def _rounds(server: Server, tokens: list[int], counters: Mapping[str, float]) -> list[Round]:
    """Return the rounds from the log of a server that has ended, and so has written all of it."""
    if not counters.get(DRAFTED):
        raise server.fault("the server drafted nothing; its draft is not in use")
    rounds = read_rounds(server.log_text(), tokens)
    check_counters(count(rounds), {name: counters.get(of, 0) for name, of in _COUNTERS.items()})
    return rounds


def _at_debug_level(command: list[str]) -> list[str]:
    level = command.index(_VERBOSITY) + 1
    return [*command[:level], _DEBUG, *command[level + 1 :]]


def _tokens(server: Server, block: Block, prompt: list[int]) -> list[int]:
    tokens: list[int] = generate(server, block, prompt, block.n_predict, block.seed)["tokens"]
    if server.decode_failures():
        raise MeasurementError(f"the server failed to decode {server.decode_failures()} times")
    return tokens
