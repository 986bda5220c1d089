"""The requests of a measurement: a prompt as token ids, and an answer that is whole."""

import hashlib
import json
from pathlib import Path
from typing import Any, Unpack

from specmoe.config.block import Block, PromptSource, Sending, Stop, Template
from specmoe.config.methods import history_needed
from specmoe.config.prompt_lines import Content, read_content
from specmoe.engine.answers import stopped_by
from specmoe.engine.server import Asked, Server
from specmoe.errors import MeasurementError
from specmoe.files import read_text


def prompt_ids(server: Server, source: PromptSource, block: Block, root: Path) -> list[int]:
    """Return the token ids of a prompt in the target's vocabulary, cut to the prompt's length.

    Raises MeasurementError if the text is shorter than that, if the context is too small for the
    prompt and what the block generates, or if these are too few tokens to look anything up in.
    """
    ids = server.tokenize(_text(server, source, block, root / source.file))
    if source.length is not None:
        if len(ids) < source.length:
            raise MeasurementError(
                f"{source.file} has {len(ids)} tokens in the vocabulary of {block.target}, fewer"
                f" than the {source.length} of prompt {source.prompt}; give a longer passage"
            )
        ids = ids[: source.length]
    gamma = max(side.gamma for side in block.sides)
    if len(ids) + block.n_predict + gamma > block.context:
        raise MeasurementError(
            f"prompt {source.prompt} has {len(ids)} tokens; with {block.n_predict} generated and"
            f" {gamma} drafted they exceed measurement.context = {block.context}"
        )
    for side in block.sides:
        needed = history_needed(side.method, side.n_match or 0, side.gamma)
        if side.speculates and len(ids) + block.n_predict < needed:
            raise MeasurementError(
                f"prompt {source.prompt} has {len(ids)} tokens and {block.n_predict} are generated;"
                f" {side.setting} with γ {side.gamma} never drafts before it has {needed}:"
                " choose smaller lengths, or generate more"
            )
    return ids


def digest_of_tokens(ids: list[int]) -> str:
    """Return the SHA-256 of the ids of a prompt's tokens, as JSON writes them."""
    return hashlib.sha256(json.dumps(ids).encode()).hexdigest()


def _text(server: Server, source: PromptSource, block: Block, file: Path) -> str:
    sending = block.sendings.get(source.workload or "", Sending())
    content: Content
    if source.line is None:
        content = read_text(file).rstrip("\n")
    else:
        content = read_content(file, source.line, sending.prompt_key, sending.messages_key)
    if sending.template == Template.CHAT:
        messages = [{"role": "user", "content": content}] if isinstance(content, str) else content
        text = server.apply_template(messages, sending.thinking)
        asked = str(messages[-1]["content"])
        # Templates may strip a message, or break its lines.
        if "".join(asked.split()) not in "".join(text.split()):
            raise MeasurementError(
                f"the chat template of {block.target} leaves out the last message of prompt"
                f" {source.prompt}, so it asks for something else; give the workload template: raw,"
                " or name a file with another template"
            )
        return text
    assert isinstance(content, str)  # see `config.expand`
    return content


def generate(server: Server, ids: list[int], **asked: Unpack[Asked]) -> dict[str, Any]:
    """Return the server's answer to a prompt of a block, see `Server.complete`.

    Raises MeasurementError unless it read the whole prompt and generated `n_predict` tokens, or
    with `until_end` fewer because the target ended its text.
    """
    answer = server.complete(ids, **asked)
    n_predict, until_end = asked["n_predict"], asked.get("until_end", False)
    generated = len(answer["tokens"])
    ended = until_end and stopped_by(answer) == Stop.EOS and 0 < generated < n_predict
    if generated != n_predict and not ended:
        raise server.fault(f"short output: {generated} tokens instead of {n_predict}")
    if answer["timings"]["prompt_n"] != len(ids):
        raise server.fault(
            f"the server read {answer['timings']['prompt_n']} prompt tokens of {len(ids)}"
        )
    return answer
