"""Workloads, the section `workloads`: named collections of prompts, how they are read and sent."""

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from specmoe.config.base import Distinct, InputPath, Name, Positive, Strict, first_error
from specmoe.config.block import Sending, Stop, Template
from specmoe.errors import ConfigError, listed
from specmoe.files import json_of, read_text

Message = Mapping[str, Any]
Content = str | list[Message]
"""A prompt, or the messages of a chat."""

_Text = Annotated[str, StringConstraints(pattern=r"\S")]


class _Message(BaseModel):
    """A message of a chat; a template may read more of it."""

    role: Literal["system", "user", "assistant", "tool"]
    content: _Text


class _Content(BaseModel):
    """What a line holds one of."""

    prompt: _Text | None
    messages: Annotated[list[_Message], Field(min_length=1)] | None


def numbered_lines(path: Path) -> dict[int, str]:
    """Return the lines that are not blank by their numbers, from 1; raises ConfigError."""
    try:
        text = read_text(path)
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read ({error.strerror})") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}: not a text in UTF-8 (byte {error.start})") from error
    # Not `splitlines`: it also breaks lines at characters that JSON may hold as they are.
    return {number: line for number, line in enumerate(text.split("\n"), 1) if line.strip()}


_lines_once = cache(numbered_lines)


def _fields_of(path: Path, line: str, prompt_key: str) -> Mapping[str, Any]:
    """Return the fields of a line; that of a text file is a prompt."""
    fields = json_of(line) if path.suffix == ".jsonl" else {prompt_key: line}
    if not isinstance(fields, dict):
        raise ValueError("no JSON object with a prompt or messages")
    return fields


def content_of(fields: Mapping[str, Any], sending: Sending) -> Content:
    """Return the prompt or the messages among the fields of a line; raises ValueError.

    Of a list of turns the first is the prompt: the later ones follow answers that nobody has yet.
    """
    prompt, messages = fields.get(sending.prompt_key), fields.get(sending.messages_key)
    if isinstance(prompt, list) and prompt:
        prompt = prompt[0]
    _Content.model_validate({"prompt": prompt, "messages": messages})
    if (prompt is None) == (messages is None):
        raise ValueError(f"give either {sending.prompt_key!r} or {sending.messages_key!r}")
    if messages is None:
        return str(prompt)
    chat: list[Message] = messages
    if sending.template == Template.RAW:
        raise ValueError(
            f"{sending.messages_key!r} need the workload's key `template: chat`; raw texts have no"
            " turns"
        )
    if chat[-1]["role"] != "user":
        raise ValueError("the last message is not the user's, so nothing is asked")
    return chat


def read_content(path: Path, number: int, sending: Sending) -> Content:
    """Return the prompt of a line; raises ConfigError if the file has no such line any more.

    A process reads each file once, since a block may have thousands of prompts.
    """
    line = _lines_once(path).get(number)
    if line is None:
        raise ConfigError(f"{path} has no prompt in line {number}; it was changed while in use")
    try:
        return content_of(_fields_of(path, line, sending.prompt_key), sending)
    except ValueError as error:
        raise ConfigError(f"{path}, line {number}: {first_error(error)}") from error


Category = Annotated[
    str, StringConstraints(min_length=1, max_length=60, pattern=r"^[^\x00-\x1f]+$")
]


class WorkloadPrompt(Strict):
    """One prompt of a workload."""

    model_config = ConfigDict(coerce_numbers_to_str=True, str_strip_whitespace=True)

    id: Name = Field(max_length=80)
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
    """written by specmoe whenever it reads their file; a shipped campaign has them without it"""


class FileWorkload(WorkloadBase):
    """A file of prompts: of JSON objects if it ends in `.jsonl`, else a prompt a line."""

    kind: Literal["file"]
    file: InputPath
    """path, relative to the workflow's folder or absolute; blank lines are skipped"""
    sample: Positive | None = None
    """takes so many of the prompts, spread evenly over the file; ids stay"""
    columns: dict[Literal["prompt", "messages", "category", "id"], _Text] = Field(default={})
    """keys of a line of JSON that have other names, such as `{prompt: turns, id: question_id}`:
    `prompt` (of a list of turns the first is sent), `messages` (a chat of several turns, each with
    `role` and `content`, the last one the user's; it needs `template: chat`), `category`, and `id`
    (a line without one has its number). Further keys are ignored"""


class TextsWorkload(WorkloadBase):
    """Texts of `prompts.texts`, sent by a template or until the model ends."""

    kind: Literal["texts"]
    texts: Distinct[Name] = Field(min_length=1)
    """names in `prompts.texts`"""


AnyWorkload = FileWorkload | TextsWorkload
Workload = Annotated[AnyWorkload, Field(discriminator="kind")]


def sending_of(workload: AnyWorkload) -> Sending:
    """Return how a workload's prompts are read and sent."""
    keys = workload.columns if isinstance(workload, FileWorkload) else {}
    names = keys.get("prompt", "prompt"), keys.get("messages", "messages")
    return Sending(workload.template, workload.thinking, *names)


def prompts_of_file(workload: FileWorkload, file: Path) -> list[WorkloadPrompt]:
    """Return the prompts that a workload takes from its file; raises ConfigError."""
    found: dict[str, WorkloadPrompt] = {}
    errors = []
    for number, line in numbered_lines(file).items():
        try:
            prompt = _prompt(workload, line, number)
        except ValueError as error:
            errors.append(f"{file}, line {number}: {first_error(error)}")
            continue
        twin = found.setdefault(prompt.id, prompt)
        if twin is not prompt:
            errors.append(
                f"{file}: lines {twin.line} and {number} have the same id {prompt.id!r}; a line"
                " without an id has its number"
            )
    if errors:
        raise ConfigError(listed(errors))
    if len(found) < (wanted := workload.sample or 1):
        raise ConfigError(f"{file} has {len(found)} prompts, and its workload wants {wanted}")
    prompts, count = [*found.values()], workload.sample or len(found)
    return [prompts[len(prompts) * place // count] for place in range(count)]


def _prompt(workload: FileWorkload, line: str, number: int) -> WorkloadPrompt:
    sending = sending_of(workload)
    fields = _fields_of(Path(workload.file), line, sending.prompt_key)
    content_of(fields, sending)  # checks it
    name, category = (fields.get(workload.columns.get(one, one)) for one in ("id", "category"))
    name = str(number) if name in (None, "") else name
    return WorkloadPrompt(id=name, category=category, line=number)
