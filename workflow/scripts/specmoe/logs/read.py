"""A log file of any known format as rows."""

import csv
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from specmoe.errors import SchemaError, one_line
from specmoe.files import given_file
from specmoe.logs import aiperf, ik_spec_bench, specdec_bench, vllm_bench
from specmoe.logs.llama_cpp import ANSWER, BENCH, LOG, is_log, requests_of
from specmoe.logs.row import LogRow

FORMATS = (
    *(aiperf.FORMAT, ik_spec_bench.FORMAT, BENCH, ANSWER, specdec_bench.FORMAT, vllm_bench.FORMAT),
    LOG,
)
_KNOWN = ", ".join(form.name for form in FORMATS)


def read_log(file: Path) -> list[LogRow]:
    """Return the rows of a log; raises SchemaError, one line with the place of the fault."""
    try:
        text = given_file(file).read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise SchemaError(f"{file}: it is no text in UTF-8: {one_line(error)}") from error
    rows = [row for place, entry in _entries(file, text) for row in _rows(entry, place)]
    if not rows:
        raise SchemaError(f"{file}: it has no generation; known are {_KNOWN}")
    of_specdec = rows[0].format == specdec_bench.FORMAT.name
    return specdec_bench.with_timing(rows, file) if of_specdec else rows


def _entries(file: Path, text: str) -> Iterator[tuple[str, Any]]:
    start = text.lstrip()
    if is_log(text):
        return requests_of(text, str(file))
    if start.startswith(("{", "[")):
        return _json(file, text)
    if "," in start.partition("\n")[0]:
        return _csv(file, text)
    raise SchemaError(f"{file}: its format is not known; known are {_KNOWN}")


def _rows(entry: Any, place: str) -> list[LogRow]:
    if not isinstance(entry, Mapping):
        raise SchemaError(f"{place}: it is no object of JSON")
    form = next((form for form in FORMATS if form.knows(entry)), None)
    if form is None:
        keys = ", ".join(sorted(map(str, entry))[:5])
        raise SchemaError(f"{place}: no known format has its fields ({keys}); known are {_KNOWN}")
    return form.rows(entry, place)


def _json(file: Path, text: str) -> Iterator[tuple[str, Any]]:
    """Yield the entries of one JSON value, or of a value a line."""
    try:
        whole = json.loads(text)
    except (ValueError, RecursionError):
        yield from _lines(file, text)
        return
    if isinstance(whole, list):
        for number, entry in enumerate(whole, 1):
            yield f"{file}, entry {number}", entry
    else:
        yield str(file), whole


def _lines(file: Path, text: str) -> Iterator[tuple[str, Any]]:
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip():
            try:
                yield f"{file}, line {number}", json.loads(line)
            except (ValueError, RecursionError) as error:
                raise SchemaError(
                    f"{file}, line {number}: it is no whole JSON ({one_line(error)[:80]}); was the"
                    " file cut?"
                ) from error


def _csv(file: Path, text: str) -> Iterator[tuple[str, Any]]:
    lines = csv.reader(text.splitlines())
    try:
        header = next(lines)
        for cells in lines:
            place = f"{file}, line {lines.line_num}"
            if len(cells) != len(header):
                raise SchemaError(
                    f"{place}: it has {len(cells)} cells, and the header {len(header)}; was the"
                    " file cut?"
                )
            yield place, {name: cell for name, cell in zip(header, cells, strict=True) if cell}
    except csv.Error as error:
        raise SchemaError(f"{file}, line {lines.line_num}: {one_line(error)}") from error
