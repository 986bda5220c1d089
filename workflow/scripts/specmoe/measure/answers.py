"""Answers that any engine wrote, as a file of token ids that a draft reads."""

import json
from pathlib import Path
from typing import Any

from specmoe.engine.reading import Text
from specmoe.errors import MeasurementError


def read_answers(path: Path) -> list[Text]:
    """Return the texts of a file with a JSON object a line: token ids under `prompt` and `tokens`.

    Raises MeasurementError naming the first line that is none, or has no prompt or no answer.
    """
    lines = path.read_text(encoding="utf-8").splitlines()
    texts = [_text(line, f"{path}, line {number}") for number, line in enumerate(lines, 1)]
    if not texts:
        raise MeasurementError(f"{path} has no answers")
    return texts


def _text(line: str, place: str) -> Text:
    try:
        answer = json.loads(line)
    except json.JSONDecodeError as error:
        raise MeasurementError(f"{place}: no JSON: {error}") from error
    prompt, tokens = (_ids(answer, key, place) for key in ("prompt", "tokens"))
    return Text(prompt, tokens)


def _ids(answer: Any, key: str, place: str) -> tuple[int, ...]:
    ids = answer.get(key) if isinstance(answer, dict) else None
    if not isinstance(ids, list) or not ids or not all(type(one) is int for one in ids):
        raise MeasurementError(f"{place}: {key!r} is not a list of token ids")
    return tuple(ids)
