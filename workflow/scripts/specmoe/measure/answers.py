"""Answers that any engine wrote, as a file that a draft reads."""

import json
from pathlib import Path
from typing import Any

from specmoe.engine.reading import Text, Words
from specmoe.errors import MeasurementError


def read_answers(path: Path) -> list[Text | Words]:
    """Return the texts of a file with a JSON object a line.

    Either has token ids under `prompt` and `tokens`, or words under `prompt` and `answer`.

    Raises MeasurementError naming the first line that is none, or has no prompt or no answer.
    """
    lines = path.read_text(encoding="utf-8").splitlines()
    texts = [_text(line, f"{path}, line {number}") for number, line in enumerate(lines, 1)]
    if not texts:
        raise MeasurementError(f"{path} has no answers")
    return texts


def _text(line: str, place: str) -> Text | Words:
    try:
        answer = json.loads(line)
    except json.JSONDecodeError as error:
        raise MeasurementError(f"{place}: no JSON: {error}") from error
    if isinstance(answer, dict):
        prompt, words = answer.get("prompt"), answer.get("answer")
        if isinstance(prompt, str) and isinstance(words, str) and prompt and words:
            return Words(prompt, words)
    return Text(_ids(answer, "prompt", place), _ids(answer, "tokens", place))


def _ids(answer: Any, key: str, place: str) -> tuple[int, ...]:
    ids = answer.get(key) if isinstance(answer, dict) else None
    if not isinstance(ids, list) or not ids or not all(type(one) is int for one in ids):
        raise MeasurementError(
            f"{place}: {key!r} is not a list of token ids, nor are 'prompt' and 'answer' texts"
        )
    return tuple(ids)
