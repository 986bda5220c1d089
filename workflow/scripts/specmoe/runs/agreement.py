"""The table of what drafts would have proposed in place of targets' own tokens."""

from collections.abc import Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pandera.pandas as pa

from specmoe.files import named_if_damaged, read_record
from specmoe.runs.schema import read_checked, write_checked

_NATS = pa.Check.ge(0)
_SCHEMA = pa.DataFrameSchema(
    {
        "engine": pa.Column(str),
        "draft": pa.Column(str),
        "draft_sha256": pa.Column(str),
        "target": pa.Column(str),
        "prompt": pa.Column(str),
        # A number for each text that a draft read; a target that writes a prompt's text in two
        # ways has two.
        "text": pa.Column(int, pa.Check.ge(0)),
        "position": pa.Column(int, pa.Check.ge(0)),  # of a token of the text, which the next is of
        "token": pa.Column(int, pa.Check.ge(0)),
        # Of the draft's likeliest token: whether it is that token, its probability among the ten
        # likeliest (which the engine compares with p_min), and how far it leads the next one, or
        # the target's where they differ.
        "agrees": pa.Column(bool),
        "confidence": pa.Column(float, pa.Check.in_range(0, 1)),
        "lead_nats": pa.Column(float, _NATS),
        # How far batches of other widths moved such a lead of this draft.
        "moved_nats": pa.Column(float, _NATS),
    },
    unique=["draft", "text", "position"],
    strict=True,
    coerce=True,
)
# Columns of a text, which its record has in lists.
_LISTS = ["agrees", "confidence", "lead_nats"]


def rows_of_record(record: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the rows of a record that `measure.agreement` writes."""
    whole = {name: record[name] for name in ("engine", "draft", "draft_sha256", "moved_nats")}
    rows = []
    for number, text in enumerate(record["texts"]):
        of_text = whole | {"target": text["target"], "prompt": text["prompt"], "text": number}
        lists = [text["tokens"], *(text[name] for name in _LISTS)]
        rows += [
            of_text | {"position": position} | dict(zip(["token", *_LISTS], values, strict=True))
            for position, values in enumerate(zip(*lists, strict=True))
        ]
    return rows


write_agreement = partial(write_checked, _SCHEMA)
"""Check the rows of all records and write them as a table at a path. Raises SchemaError."""
read_agreement = partial(read_checked, _SCHEMA)
"""Return the table of a path, checked; without rows if the path is None. Raises SchemaError."""


def collect_agreement(records: Iterable[Path], out: Path) -> None:
    """Write the table of all drafts' records."""
    rows = []
    for record in records:
        with named_if_damaged(record):
            rows += rows_of_record(read_record(record))
    write_agreement(rows, out)
