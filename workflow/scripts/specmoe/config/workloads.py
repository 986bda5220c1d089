"""Workloads, the section `workloads`: named collections of prompts, and how they are sent."""

from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, StringConstraints

from specmoe.config.base import Distinct, InputPath, Name, Positive, Strict
from specmoe.config.block import Sending, Stop, Template
from specmoe.errors import ConfigError
from specmoe.files import json_of, read_text

Message = Mapping[str, Any]
"""A message of a chat: `role` and `content`, and whatever else a template may read."""

Content = str | list[Message]
"""A prompt, or the messages of a chat."""

JSON_SUFFIX = ".jsonl"
_ROLES = ("system", "user", "assistant", "tool")


def numbered_lines(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the lines that are not blank with their numbers, from 1; raises ConfigError."""
    try:
        text = read_text(path)
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read ({error.strerror})") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}: not a text in UTF-8 (byte {error.start})") from error
    # Not `splitlines`: it also breaks lines at characters that JSON may hold as they are.
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            yield number, line


def fields_of_line(line: str, path: Path, number: int) -> Mapping[str, Any]:
    """Return the fields of a line of JSON; raises ConfigError with the file and the line."""
    try:
        fields = json_of(line)
    except ValueError as error:
        raise fault_of_line(path, number, str(error)) from error
    if not isinstance(fields, dict):
        raise fault_of_line(path, number, "no JSON object with a prompt or messages")
    return fields


def content_of(fields: Mapping[str, Any], prompt_key: str, messages_key: str) -> Content:
    """Return the prompt or the messages among the fields of a line; raises ValueError.

    Of a list of turns the first is the prompt: the later ones follow answers that nobody has yet.
    """
    prompt, messages = fields.get(prompt_key), fields.get(messages_key)
    if prompt is None and messages is None:
        raise ValueError(f"neither {prompt_key!r} nor {messages_key!r}")
    if prompt is not None and messages is not None:
        raise ValueError(f"both {prompt_key!r} and {messages_key!r}; one of them is the prompt")
    if messages is not None:
        return _messages(messages, messages_key)
    if isinstance(prompt, list) and prompt:
        prompt = prompt[0]
    return _text(prompt, prompt_key)


def read_content(path: Path, number: int, prompt_key: str, messages_key: str) -> Content:
    """Return the prompt of a line; raises ConfigError if the file has no such line any more.

    A process reads each file once, since a block may have thousands of prompts.
    """
    line = _lines_of(path).get(number)
    if line is None:
        fault = f"{path} has no prompt in line {number}; it was changed while it was used"
        raise ConfigError(fault)
    if path.suffix != JSON_SUFFIX:
        return line
    try:
        return content_of(fields_of_line(line, path, number), prompt_key, messages_key)
    except ValueError as error:
        raise fault_of_line(path, number, str(error)) from error


@cache
def _lines_of(path: Path) -> Mapping[int, str]:
    return dict(numbered_lines(path))


def fault_of_line(path: Path, number: int, fault: str) -> ConfigError:
    """Return the error of a line."""
    return ConfigError(f"{path}, line {number}: {fault}")


def _messages(messages: Any, key: str) -> list[Message]:
    if not isinstance(messages, list) or not messages:
        raise ValueError(f"{key!r} is no list of messages")
    for message in messages:
        if not isinstance(message, dict) or message.get("role") not in _ROLES:
            raise ValueError(f"a message of {key!r} has none of the roles {', '.join(_ROLES)}")
        _text(message.get("content"), "content")
    if messages[-1]["role"] != "user":
        raise ValueError(f"the last message of {key!r} is not the user's, so nothing is asked")
    return messages


def _text(value: Any, key: str) -> str:
    if not isinstance(value, str) or not value.strip():
        raise ValueError(f"{key!r} is no text, or an empty one")
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise ValueError(f"{key!r} has half a character (a lone surrogate)") from error
    return value


Key = Annotated[str, StringConstraints(min_length=1)]
Category = Annotated[
    str, StringConstraints(min_length=1, max_length=60, pattern=r"^[^\x00-\x1f]+$")
]
PromptId = Annotated[Name, StringConstraints(max_length=80)]


class Columns(Strict):
    """What the keys of a line of JSON are called; further keys are ignored."""

    prompt: Key = "prompt"
    """the prompt; of a list of turns the first is sent"""
    messages: Key = "messages"
    """a chat of several turns, each with `role` and `content`; the last is the user's. It needs
    `template: chat`"""
    category: Key = "category"
    """what results are grouped by"""
    id: Key = "id"
    """the prompt's id; a line without one has its number"""


class WorkloadPrompt(Strict):
    """One prompt of a workload."""

    id: PromptId
    """unique in the workload"""
    category: Category | None = None
    """what results are grouped by"""
    line: Positive | None = None
    """line of the file, from 1"""


class WorkloadBase(Strict):
    """The keys that all workloads have."""

    template: Template = Template.RAW
    """`chat` makes a chat of each prompt by the target's own template; `raw` sends it as it is"""
    thinking: bool | None = None
    """`enable_thinking` for templates that know it; without it the template decides"""
    stop: Stop | None = None
    """replaces `measurement.stop`"""
    prompts: list[WorkloadPrompt] = Field(default=[])
    """its prompts, written by specmoe whenever it reads their file; a cached campaign has them
    without the file"""

    @property
    def sending(self) -> Sending:
        """How its prompts are read and sent."""
        return Sending(self.template, self.thinking)


class FileWorkload(WorkloadBase):
    """A file of prompts: of JSON objects if it ends in `.jsonl`, else a prompt a line."""

    kind: Literal["file"]
    file: InputPath
    """path, relative to the workflow's folder or absolute; blank lines are skipped"""
    sample: Positive | None = None
    """takes so many of the prompts, of each category its share. A larger sample with the same seed
    has what a smaller one has, as far as shares allow; ids stay"""
    seed: int = Field(default=0, ge=0)
    """seed of the sample"""
    columns: Columns = Columns()

    @property
    def sending(self) -> Sending:
        """How its prompts are read and sent."""
        columns = self.columns
        return Sending(self.template, self.thinking, columns.prompt, columns.messages)


class TextsWorkload(WorkloadBase):
    """Texts of `prompts.texts`, sent by a template or until the model ends."""

    kind: Literal["texts"]
    texts: Distinct[Name] = Field(min_length=1)
    """names in `prompts.texts`"""


AnyWorkload = FileWorkload | TextsWorkload
Workload = Annotated[AnyWorkload, Field(discriminator="kind")]
