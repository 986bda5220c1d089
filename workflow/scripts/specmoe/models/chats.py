"""Chats as a model's template writes them, looked at before llama-server does.

It has an engine of its own for templates, and mends chats for some of them (common/chat.cpp). So a
chat is refused here only where the template itself refuses it.
"""

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from functools import cache
from pathlib import Path
from time import monotonic
from typing import Any, Final, NoReturn

import jinja2
from jinja2.sandbox import ImmutableSandboxedEnvironment

from specmoe.config.block import Block, Template
from specmoe.config.workloads import Message, place_of, read_chat
from specmoe.errors import one_line
from specmoe.models.gguf_file import read_header

Chat = dict[str, Any]
"""What a template is given: messages, and what else it is told, as of an entry of a file."""
Said = tuple[str, bool]
"""What is to be said of a template, or of what it makes of a chat, and whether it is an error."""

_NOW: Final = datetime(2026, 1, 20, 9, 30)
_MOST_S: Final = 60.0  # for all chats of a target; each takes thousandths of a second
_OTHER: Final = "`engine_args: [--chat-template-file, FILE]` names another template"
_DATE: Final = """`engine_args: [--chat-template-kwargs, '{"date_string": "1 Jan"}']` sets it"""
ASKED: Final = {"messages": [{"role": "user", "content": "?!"}]}


class _RefusedError(Exception):
    """What a template says of a chat that it does not take."""


def _refuse(words: str) -> NoReturn:
    raise _RefusedError(words)


@cache
def compiled(source: str, now: datetime = _NOW) -> jinja2.Template:
    """Return a chat template as it writes at a time, with what others have beside jinja2's own."""
    env = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols"]
    )
    env.policies["json.dumps_kwargs"] = {"ensure_ascii": False}
    env.globals |= {"strftime_now": now.strftime, "raise_exception": _refuse}
    return env.from_string(source)


@contextmanager
def stopped_at(latest: float) -> Iterator[None]:
    """Raise TimeoutError in what runs at a time; unlike a signal's handler in any thread."""

    def look(*_: object) -> Any:
        if monotonic() > latest:
            raise TimeoutError("it does not end")
        return look

    before = sys.gettrace()
    sys.settrace(look)
    try:
        yield
    finally:
        sys.settrace(before)


def written(template: jinja2.Template, chat: Chat) -> str:
    """Return a chat as llama-server has a template write it.

    A system message that the template refuses joins the one behind it.
    """
    first, *rest = messages = [*map(_as_given, chat["messages"])]
    told = {"enable_thinking": True, "add_generation_prompt": True} | chat
    told |= chat.get("chat_template_kwargs", {})
    try:
        return template.render(told | {"messages": messages})
    except _RefusedError:
        if first["role"] != "system" or not rest:
            raise
        joined = rest[0] | {"content": f"{first['content']}\n{rest[0]['content']}"}
        return template.render(told | {"messages": [joined, *rest[1:]]})


def _as_given(message: Message) -> Chat:
    """Return a message as llama-server gives it to a template."""
    given: Chat = json.loads(json.dumps({**message, "content": message["content"] or ""}))
    given["role"] = given["role"].replace("developer", "system")
    for call in given.get("tool_calls") or ():
        if isinstance(text := call["function"]["arguments"], str):
            call["function"]["arguments"] = json.loads(text)
    return given


def look_at_chats(block: Block, target: Path | None, root: Path) -> Iterator[Said]:
    """Yield what is to be said of the chats that a target's template makes of a block's prompts.

    It is that of the target's file, None if that is not here yet, or of the engine's options.
    """
    chats = {
        place_of(root / prompt.file, prompt.line): read_chat(root / prompt.file, prompt.line, how)
        for prompt in sorted(block.prompts, key=lambda prompt: (prompt.file, prompt.line or 0))
        if (how := block.sending_of(prompt)).template == Template.CHAT
    }
    said: dict[Said, list[str]] = {}  # with the places of the chats of which it is to be said
    try:
        told = json.loads(block.options.get("--chat-template-kwargs", "{}"))
        with_tools = any("tools" in chat for chat in chats.values())
        source = chats and _source(block.options, target, with_tools=with_tools)
        if source is None:
            # llama-server would write chats in a format of its own choice and not say so.
            missing = f"is missing: {target} has none, and a workload of suite {block.suite} needs"
            way = "one; give the workload `template: raw`, or name a file that has one, or"
            said[f"{missing} {way} {_OTHER}", True] = []
        elif source:
            with stopped_at(monotonic() + _MOST_S):
                if clock := _clock(source, told):
                    said[clock] = []
                template = compiled(source)
                # What is before what a user says, as `<|im_start|>user`.
                *_, markup = written(template, told | ASKED).partition("?!")[0].split() or [""]
                for place, chat in chats.items():
                    if fault := _fault(template, markup, told, chat):
                        said.setdefault(fault, []).append(place)
    except Exception as error:  # a template may do anything
        said[f"is not looked at ({type(error).__name__}: {one_line(error)})", False] = []
    for (words, is_error), places in said.items():
        more = f" and {len(places) - 1} more" if places[1:] else ""
        where = f"{places[0]}{more}: " if places else ""
        yield f"{where}the chat template of {block.target} {words}", is_error


def _source(options: dict[str, str], target: Path | None, *, with_tools: bool) -> str | None:
    """Return the template that llama-server uses; empty if it is not known, None without one."""
    if file := options.get("--chat-template-file"):
        return Path(file).read_text("utf-8")
    if target is None or "--chat-template" in options:
        return options.get("--chat-template", "")
    header = read_header(target)
    if (template := header.chat_template) is None:
        return None
    return header.text("tokenizer.chat_template" + ".tool_use" * with_tools, template)


def _clock(source: str, told: Chat) -> Said | None:
    """Return what is to be said of a template that writes the time or the date."""
    times = (_NOW, _NOW + timedelta(seconds=61), _NOW + timedelta(days=40))
    now, soon, later = (written(compiled(source, time), told | ASKED) for time in times)
    if now != soon:
        return f"writes the time, so no prompt is sent twice; {_OTHER}", True
    way = _DATE if "date_string" in source else _OTHER
    return (f"writes the date, so prompts change overnight; {way}", False) if now != later else None


def _fault(template: jinja2.Template, markup: str, told: Chat, chat: Chat) -> Said | None:
    """Return what is to be said of a chat.

    `markup` is what the template writes before what a user says; it is `told` that of every chat.
    """
    try:
        text = written(template, told | chat)
    except _RefusedError as error:
        return f"refuses the chat: {error}; mend it, or {_OTHER}", True
    contents = [str(message["content"]) for message in chat["messages"]]
    if {"<", "["} & set(markup) and any(markup in content for content in contents):
        return f"writes {markup} before a text that has it; give `template: raw`", False
    if "tools" in chat and text == written(template, told | chat | {"tools": []}):
        return f"leaves out its tools; {_OTHER}", False
    return None
