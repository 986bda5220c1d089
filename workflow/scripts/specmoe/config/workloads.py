"""Workloads, the section `workloads`: named collections of prompts, how they are read and sent."""

import csv
import io
import json
import re
import reprlib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, PositiveInt, StringConstraints

from specmoe.config.base import Distinct, InputPath, Name, Strict, first_error, resource
from specmoe.config.block import Sending, Stop, Template
from specmoe.errors import ConfigError, abridged
from specmoe.files import json_of, read_text

Message = Mapping[str, Any]
Content = str | list[Message]
"""A prompt, or the messages of a chat."""

_Text = Annotated[str, StringConstraints(pattern=r"\S")]

_KINDS = ("", ".txt", ".jsonl", ".json", ".csv", ".tsv")
# How JSON starts, and a line that names columns.
_NO_PROMPT = re.compile(r"""\s*[\[{]\s*(["{\[]|$)|["\w]+([,;\t]["\w]+)+$""", re.ASCII)


def place_of(path: Path, number: int | None) -> str:
    """Return where a prompt is, in words."""
    entry = "entry" if path.suffix.lower() == ".json" else "line"
    return f"{path}, {entry} {number}" if number else str(path)


def numbered_entries(path: Path) -> dict[int, str]:
    """Return what a file of prompts has, by number from 1, each as a text; raises ConfigError.

    That is a line of a text or of JSON lines, the JSON of a value of an array, or a row of a table
    as JSON, by the number of its line.
    """
    try:
        if (kind := path.suffix.lower()) not in _KINDS:
            raise ValueError(f"no file of prompts; they end in {', '.join(filter(None, _KINDS))}")
        return _entries(read_text(path), kind)
    except (ValueError, csv.Error) as error:
        raise ConfigError(f"{path}: {error}") from error


def _entries(text: str, kind: str) -> dict[int, str]:
    if kind in (".csv", ".tsv"):
        return _rows(text, ",;\t" if kind == ".csv" else "\t")
    if kind == ".json":
        with suppress(ValueError):
            whole = json_of(text)
            values = whole if isinstance(whole, list) else [whole]
            return {number: json.dumps(value) for number, value in enumerate(values, 1)}
    # Not `splitlines`: it also breaks lines at characters that JSON may hold as they are.
    lines = {number: line for number, line in enumerate(text.split("\n"), 1) if line.strip()}
    first = next(iter(lines.values()), "")
    if kind in (".json", ".jsonl"):  # many a data set has lines of JSON in a .json
        if first.lstrip().startswith("["):
            json_of(text)  # says where an array is broken
            raise ValueError("a JSON array; let its name end in .json")
    elif _NO_PROMPT.match(first):
        raise ValueError("no prompts but JSON, or a table; let it end in .jsonl, .json or .csv")
    return lines


def _rows(text: str, delimiters: str) -> dict[int, str]:
    """Return the rows of a table, whose first line names its columns."""
    above = 0  # lines above the names
    if told := re.match(r"sep=(.)\r?\n", text):  # so Excel is told the delimiter
        above, delimiters, text = 1, told[1], text[told.end() :]
    delimiter = max(delimiters, key=text.partition("\n")[0].count)
    reader, rows = csv.DictReader(io.StringIO(text), delimiter=delimiter, strict=True), {}
    names = [name for name in reader.fieldnames or () if name]  # spreadsheets add empty columns
    if twins := [name for name in names if names.count(name) > 1]:
        raise ValueError(f"two columns have the name {twins[0]!r}; rename one")
    for row in reader:
        if None in row:
            raise ValueError(
                f"line {above + reader.line_num} has more cells than the first line, which names"
                f" the columns; a text with {delimiter!r} in it needs quotes"
            )
        rows[above + reader.line_num] = json.dumps(row)
    return rows


_entries_once, _text_once = cache(numbered_entries), cache(read_text)


def text_of_prompt(path: Path, number: int | None) -> str:
    """Return an entry of a file, or without a number its text; raises ConfigError.

    A process reads a file once: what it sends is what it was asked for.
    """
    text = _entries_once(path).get(number) if number else _text_once(path)
    if text is None:
        raise ConfigError(
            f"{place_of(path, number)}: the prompt is gone; the file was changed while in use"
        )
    return text


def _fields_of(path: Path, entry: str, prompt_key: str) -> Mapping[str, Any]:
    """Return the fields of an entry; that of a text file is a prompt."""
    fields = entry if path.suffix.lower() in (".txt", "") else json_of(entry)
    fields = {prompt_key: fields} if isinstance(fields, str) else fields
    if not isinstance(fields, dict):
        raise ValueError(f"no JSON object with a prompt or messages, but {reprlib.repr(fields)}")
    return fields


def _at(fields: Mapping[str, Any], key: str) -> Any:
    """Return the value of a key, or of a path of keys such as `body.messages`; else None."""
    first, _, rest = key.partition(".")
    inside = fields.get(first)
    return _at(inside, rest) if rest and isinstance(inside, dict) else fields.get(key)


def content_of(fields: Mapping[str, Any], sending: Sending) -> Content:
    """Return the prompt or the messages among the fields of an entry; raises ValueError.

    Of a list of turns the user's first is the prompt: later ones follow answers that nobody has
    yet. Messages end with the last of the user or of a tool: the model is to write what follows.
    """
    keys = sending.prompt_key, sending.messages_key
    given = [(key, value) for key in keys if (value := _at(fields, key)) is not None]
    if len(given) != 1:
        raise ValueError(_which_to_send(fields, sending, both=bool(given)))
    [(key, value)] = given
    is_chat = key == sending.messages_key
    if is_chat and sending.template == Template.RAW:
        raise ValueError(f"{key!r} is a chat, which needs the workload's key `template: chat`")
    role = "" if is_chat else "user"
    turns = [_turn(turn, role) for turn in (value if isinstance(value, list) else [value])]
    asked = [place for place, turn in enumerate(turns) if turn["role"] == "user"]
    if not asked:
        raise ValueError(f"in {key!r} the user asks nothing; leave it out of the file")
    if not is_chat:
        return str(turns[asked[0]]["content"])
    last = max(place for place, turn in enumerate(turns) if turn["role"] in ("user", "tool"))
    return turns[: last + 1]


def turns_of(messages: Sequence[Message]) -> list[Sequence[Message]]:
    """Return what is sent of a chat turn by turn: all up to each place where an answer is due.

    The messages are those of `content_of`. Raises ValueError for a turn that has no answer: only
    the file's own, which are equal for all arms, are sent.
    """
    roles, sent = [*(str(message["role"]) for message in messages), "assistant"], []
    for end, (role, after) in enumerate(pairwise(roles), 1):
        if role in ("user", "tool") and after == "user":
            raise ValueError(
                f"message {end} has no answer behind it; a workload with `turns: true` sends the"
                " answers that its file has, whatever is generated"
            )
        if role in ("user", "tool") and after == "assistant":
            sent.append(messages[:end])
    return sent


def _which_to_send(fields: Mapping[str, Any], sending: Sending, *, both: bool) -> str:
    """Return what an entry has in place of a prompt or messages, and how to name one of them."""
    keys = sending.prompt_key, sending.messages_key
    if both:
        choice = "`columns: {prompt: no}` sends the messages, and `{messages: no}` the prompt"
        return f"both {keys[0]!r} and {keys[1]!r}; {choice}"
    hint = "name the key of the prompt: `columns: {prompt: ...}`"
    for key, layout in resource("prompts/data_sets").items():
        if key in fields:
            named = (f"{name}: {of}" for name, of in layout.items() if _at(fields, of) is not None)
            hint = f"if it is like {layout['like']}, give `columns: {{{', '.join(named)}}}`"
            keyed = {f"{name}_key": layout[name] for name in layout.keys() & {"prompt", "messages"}}
            try:
                content_of(fields, replace(sending, **keyed))
            except ValueError as error:
                hint += f"; then {error}"
            break
    present = ", ".join(str(key)[:40] for key in list(fields)[:12]) or "nothing"
    return f"neither {keys[0]!r} nor {keys[1]!r}, but {present}; {hint}"


def _turn(given: Any, role: str = "") -> Message:
    """Return a turn of a chat as a message, with whatever else a template may read of it.

    `role` is that of turns that name none. Raises ValueError.
    """
    turn = dict(given) if isinstance(given, dict) else {"content": given}
    known = resource("prompts/turns")
    role = known["roles"].get(str(turn.pop("from", turn.get("role", role))), "")
    text, shown = turn.pop("value", turn.get("content", turn.get("text"))), reprlib.repr(given)
    if isinstance(text, list) and all(isinstance(part, dict) for part in text):
        if others := {str(part.get("type")) for part in text if "text" not in part}:
            raise ValueError(f"a part of type {', '.join(others)}, and texts alone are sent")
        text = "\n".join(str(part["text"]) for part in text)
    # An agent's turn may be its calls alone, and what a tool gives may be nothing.
    if text in (None, "") and role in ("assistant", "tool"):
        return turn | {"role": role, "content": text}
    if not isinstance(text, str) or not text.strip():
        raise ValueError(f"{shown} where a text belongs")
    for pattern, why in known["no_prompts"].items():
        if re.match(pattern, text, re.DOTALL):
            raise ValueError(f"{shown} is {why}")
    if not role:
        raise ValueError(
            f"{shown} needs a role ({', '.join(known['roles'])}); of turns without roles the first"
            " is sent: let `columns` name them `prompt`"
        )
    return turn | {"role": role, "content": text}


def _request_of(
    fields: Mapping[str, Any], sending: Sending
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return what an entry tells a template beside a chat, and what it has that is not sent.

    They stand where its messages are. Raises ValueError for what llama-server would refuse.
    """
    place = _at(fields, sending.messages_key.rpartition(".")[0])
    beside, known = place if isinstance(place, dict) else fields, resource("prompts/turns")
    given = {key: value for key, value in beside.items() if value not in (None, "", [], {})}
    told = {key: given[key] for key in known["told"] if key in given}
    for key, kind, due in (("tools", list, "a list"), ("chat_template_kwargs", dict, "an object")):
        if not isinstance(told.get(key, kind()), kind):
            raise ValueError(f"{key}: {reprlib.repr(told[key])} where {due} belongs")
    changing = known["not_sent"].items() - {(sending.prompt_key, None)}
    lost = {key: given[key] for key, same in changing if given.get(key, same) != same}
    return (told, lost) if sending.template == Template.CHAT else ({}, told | lost)


def read_chat(
    path: Path, number: int | None, sending: Sending, turn: int | None = None
) -> dict[str, Any]:
    """Return the prompt of an entry, or without a number of a whole file; raises ConfigError.

    It has `messages`, one with a prompt's text, and what a template is told beside them; of a chat
    that is sent turn by turn those up to a `turn`.
    """
    entry, told = text_of_prompt(path, number), dict[str, Any]()
    content: Content = entry.rstrip("\n")
    if number is not None:
        try:
            fields = _fields_of(path, entry, sending.prompt_key)
            content, (told, _) = content_of(fields, sending), _request_of(fields, sending)
        except ValueError as error:
            raise ConfigError(f"{place_of(path, number)}: {first_error(error)}") from error
    if sending.thinking is not None:
        words = told.get("chat_template_kwargs", {})
        told["chat_template_kwargs"] = words | {"enable_thinking": sending.thinking}
    messages = _messages(content)
    return {"messages": turns_of(messages)[turn - 1] if turn else messages, **told}


def _messages(content: Content) -> Sequence[Message]:
    return [{"role": "user", "content": content}] if isinstance(content, str) else content


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
    line: PositiveInt | None = None
    """line of the file, or value of a JSON array, from 1"""
    sent: Literal["first turn", "chat", "turns"] | None = None
    """what is sent of several turns"""
    turns: PositiveInt | None = None
    """of a chat that is sent turn by turn: so many"""
    not_sent: list[str] | None = None
    """keys of its line that would change the text, and that nothing sends"""
    repeated: PositiveInt | None = None
    """further lines that have the same prompt, and are left out"""


class WorkloadBase(Strict):
    """The keys that all workloads have."""

    template: Template = Template.RAW
    """`chat` makes a chat of each prompt by the target's own template; `raw` sends it as it is"""
    thinking: bool | None = None
    """`enable_thinking` for templates that know it; without it llama-server tells them to think"""
    stop: Stop | None = None
    """replaces `measurement.stop`"""
    prompts: list[WorkloadPrompt] = Field(default=[])
    """written by specmoe whenever it reads their file; a shipped campaign has them without it"""


class FileWorkload(WorkloadBase):
    """A file of prompts: JSON (`.jsonl`, `.json`), a table (`.csv`, `.tsv`), or a prompt a line."""

    kind: Literal["file"]
    file: InputPath
    """path, relative to the workflow's folder or absolute. `.jsonl` has a JSON object a line,
    `.json` an array of them or the same, the first line of a `.csv` or `.tsv` names its columns; a
    `.txt` has a prompt a line. Blank lines are skipped"""
    turns: bool = False
    """sends each chat turn by turn, as an agent does: all messages up to the first answer, then up
    to the next one, and so on, to one server that keeps what it has read (its prompt cache). The
    answers sent are those of the file, whatever is generated. Each turn is a run"""
    sample: PositiveInt | None = None
    """takes so many of the prompts, spread evenly over the file; ids stay"""
    columns: dict[Literal["prompt", "messages", "category", "id"], _Text] = Field(default={})
    """keys of JSON, or columns of a table, that have other names, such as
    `{prompt: turns, id: question_id}`; `body.messages` is a key in another one. `prompt`: of a list
    of turns the user's first is sent. `messages`: a chat of several turns, each with `role` and
    `content` (or ShareGPT's `from` and `value`), is sent up to the last of the user or a tool; it
    needs `template: chat`. `category`, and `id`: a line without one has its number, and whatever
    names cannot have becomes `-`. `tools` and what else a template is told go to it; `plan` names
    request settings, which are not sent. Further keys are ignored, and of equal prompts all but
    the first"""


class TextsWorkload(WorkloadBase):
    """Texts of `prompts.texts`, sent by a template, or to the model's end within `n_predict`."""

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
    kept: dict[str, WorkloadPrompt] = {}
    sent: dict[str, str] = {}  # the id of what is sent, once: twice it would be no other prompt
    errors: dict[str, int] = {}  # with the first line of each
    for number, entry in numbered_entries(file).items():
        try:
            prompt, text = _prompt(workload, entry, number)
            if (twin := kept.setdefault(prompt.id, prompt)) is not prompt:
                same = f"has the id of {twin.line}, {twin.id!r}; one without an id has its number"
                raise ValueError(same)
            if (first := sent.setdefault(text, prompt.id)) != prompt.id:
                more = {"repeated": (kept[first].repeated or 0) + 1}
                kept[first] = kept[first].model_copy(update=more)
                del kept[prompt.id]
        except ValueError as error:
            errors.setdefault(first_error(error), number)
    if errors:
        raise ConfigError(abridged([f"{place_of(file, at)}: {why}" for why, at in errors.items()]))
    if len(kept) < (wanted := workload.sample or 1):
        raise ConfigError(f"{file} has {len(kept)} prompts, and its workload wants {wanted}")
    if workload.turns and all(prompt.turns == 1 for prompt in kept.values()):
        raise ConfigError(f"{file} has no chat of several turns, and its workload `turns: true`")
    prompts, count = [*kept.values()], workload.sample or len(kept)
    return [prompts[len(prompts) * place // count] for place in range(count)]


def _prompt(workload: FileWorkload, entry: str, number: int) -> tuple[WorkloadPrompt, str]:
    """Return a prompt, and the JSON of what is sent of its entry."""
    sending = sending_of(workload)
    fields = _fields_of(Path(workload.file), entry, sending.prompt_key)
    content, turns = content_of(fields, sending), _at(fields, sending.prompt_key)
    told, lost = _request_of(fields, sending)
    first = "first turn" if isinstance(turns, list) and turns[1:] else None
    if workload.turns and first:
        key, answers = sending.prompt_key, "messages with the answers between them"
        raise ValueError(f"{key!r} has turns without answers; `turns: true` needs {answers}")
    name, category = (_at(fields, workload.columns.get(key, key)) for key in ("id", "category"))
    if isinstance(name, str):
        name = re.sub(r"[^\w.-]+", "-", name.strip(), flags=re.ASCII).lstrip("-._")
    data = {"id": str(number) if name in (None, "") else name, "category": category or None}
    data |= {"line": number, "sent": "chat" if isinstance(content, list) else first}
    data |= {"not_sent": sorted(lost)} if lost else {}
    if workload.turns:
        data |= {"sent": "turns", "turns": len(turns_of(_messages(content)))}
    return WorkloadPrompt.model_validate(data), json.dumps([content, told], sort_keys=True)
