"""One prompt decoded with a draft and without, by the real server: for what its rounds were.

A server at the debug level logs what was drafted. That costs time, so no time is taken here; what
it generates is what it would generate otherwise.
"""

from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path

from specmoe.config.block import Block
from specmoe.config.trace import Demonstration
from specmoe.engine.counters import ACCEPTED, DRAFTED, ROUNDS
from specmoe.engine.debug_log import count, hold_against, read_rounds
from specmoe.engine.machine_id import physical_cores
from specmoe.engine.server import Server, server_command
from specmoe.errors import MeasurementError
from specmoe.files import engine_path
from specmoe.measure.paired import generate, prompt_ids
from specmoe.measure.trace_record import VERSION, Provenance, Recording

_VERBOSITY = "--log-verbosity"
_DEBUG = "5"
_COUNTERS = {"rounds": ROUNDS, "drafted": DRAFTED, "accepted": ACCEPTED}


def record(
    what: Demonstration,
    *,
    root: Path,
    binary: Path,
    target: Path,
    draft: Path,
    logs: tuple[Path, Path],
    start_limit_s: float,
    run_limit_s: float,
    provenance: Provenance,
    say: Callable[[str], None],
) -> Recording:
    """Decode the prompt with the draft, then without, and return the record of both.

    `root` is the folder that prompt files are relative to, `binary` is llama-server; `logs` receive
    the output of the server with the draft and of the one without, `say` is told what is done.
    Raises MeasurementError when a server fails, or what the first logs of its rounds does not fit
    what it generated and counted.
    """
    block = what.block
    [source] = block.prompts
    command = partial(
        server_command,
        binary,
        engine_path(target),
        context=block.context,
        threads=block.threads or physical_cores(),
        gpu_layers=block.gpu_layers,
    )
    speculative = _at_debug_level(
        command(draft=engine_path(draft), method=block.method, gamma=block.gamma)
    )
    say(f"decoding {block.n_predict} tokens after {source.prompt} with {block.draft}")
    with Server(speculative, logs[0], start_limit_s, run_limit_s, block.environment) as server:
        prompt = prompt_ids(server, source, block, root)
        tokens = _tokens(server, block, prompt)
        counters = server.metrics()
        prompt_text, text = server.detokenize(prompt), server.detokenize(tokens)
    if not counters.get(DRAFTED):
        raise server.fault("the server drafted nothing; its draft is not in use")
    rounds = read_rounds(server.log_text(), tokens)
    hold_against(count(rounds), {name: counters.get(of, 0) for name, of in _COUNTERS.items()})
    say("decoding the same without a draft")
    with Server(command(), logs[1], start_limit_s, run_limit_s, block.environment) as server:
        plain = _tokens(server, block, prompt)
        drafted = [guess.token for one in rounds for guess in one.drafted]
        token_texts = _texts(server, {*tokens, *plain, *drafted})
    return Recording(
        version=VERSION,
        demonstration=what,
        provenance=provenance,
        command=tuple(speculative),
        prompt_tokens=len(prompt),
        prompt_text=prompt_text,
        tokens=tuple(tokens),
        text=text,
        rounds=tuple(rounds),
        plain_tokens=tuple(plain),
        token_texts=token_texts,
    )


def _at_debug_level(command: list[str]) -> list[str]:
    level = command.index(_VERBOSITY) + 1
    return [*command[:level], _DEBUG, *command[level + 1 :]]


def _tokens(server: Server, block: Block, prompt: list[int]) -> list[int]:
    tokens: list[int] = generate(server, block, prompt)["tokens"]
    if server.decode_failures():
        raise MeasurementError(f"the server failed to decode {server.decode_failures()} times")
    return tokens


def _texts(server: Server, tokens: Iterable[int]) -> dict[int, str]:
    return {token: server.detokenize([token]) for token in sorted(tokens)}
