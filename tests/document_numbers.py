"""Numbers that documents print, and where each comes from."""

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pandas as pd

# What an entry of document_numbers.yaml may be. A document says of the first what it is.
SAID = {"predicted": "predict"}
KINDS = {*SAID, "measured", "reported", "tested", "benchmark", "setting", "timed", "name"}
# The file that gives the number.
_FILED = {"tested", "benchmark"}

_NUMBER = re.compile(
    r"\d+(?:\.\d+)? ?%|\d+\.\d+(?: \[\d+\.\d+, \d+\.\d+\])?|\b\d+ of (?:the study's )?\d+"
    r"|\b\d+ rows\b"
)
_CODE = re.compile(r"```.*?```|`[^`]*`|\]\([^)]*\)", re.DOTALL)

Table = Callable[[str, str], pd.DataFrame]
"""Gives a table of the analysis of a shipped campaign."""


def faults(text: str, entries: list[Mapping[str, Any]], table: Table) -> list[str]:
    """Return what is wrong with the numbers of a document, given its entries."""
    paragraphs = [" ".join(part.split()) for part in _CODE.sub("", text).split("\n\n")]
    whole = " ".join(paragraphs)
    found = []
    for entry in entries:
        says, kind = str(entry["says"]), entry["kind"]
        if kind not in KINDS:
            found.append(f"{says}: unknown kind {kind!r}")
        if kind in _FILED and not Path(str(entry.get("file"))).is_file():
            found.append(f"{says}: no file gives it ({entry.get('file')})")
        if says not in whole:
            found.append(f"{says}: no longer in the document")
        word = SAID.get(kind, "")
        if any(says in part and word not in part for part in paragraphs):
            found.append(f"{says}: the document does not say {word!r}")
        if (("campaign" in entry) != (kind in {*SAID, "measured"})) or (
            "campaign" in entry and (now := rendered(entry, table)) != _number_of(says)
        ):
            found.append(f"{says}: not what the campaign says ({entry.get('campaign')}: {now})")
    known = " ".join(str(entry["says"]) for entry in entries)
    numbers = {match.group() for match in _NUMBER.finditer(whole)}
    return found + [f"{number}: from nowhere" for number in sorted(numbers) if number not in known]


def rendered(entry: Mapping[str, Any], table: Table) -> str:
    """Return the number of an entry as its campaign has it now."""
    rows = table(entry["campaign"], entry["table"])
    if "by" in entry:
        rows = rows.groupby(entry["by"]).first()
    chosen = rows.query(entry["where"]) if "where" in entry else rows
    if "rows" in entry:
        return f"{chosen[entry['rows']].sum()} rows"
    if "columns" not in entry:
        return f"{len(chosen)} of {len(rows)}"
    values = chosen[entry["columns"]].drop_duplicates()
    if len(values) != 1:
        return f"{len(values)} values"
    value, *ends = values.to_numpy()[0]
    form = entry.get("form", ".2f")
    text = f"{value:{form}}" + (f" [{ends[0]:{form}}, {ends[1]:{form}}]" if ends else "")
    return text.replace("%", " %")


def _number_of(says: str) -> str:
    match = _NUMBER.search(says)
    return match.group() if match else says
