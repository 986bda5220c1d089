"""Claims from a file, one a line, and their verdicts as a table."""

import csv
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from specmoe.errors import ConfigError, nearest, one_line
from specmoe.files import given_file
from specmoe.possible.claim import FIELDS, Claim, claim_of
from specmoe.possible.judge import Judged

COLUMNS = (
    *("name", "verdict", "without", "speedup", "most_speedup", "claimed_tokens_per_second"),
    *("most_tokens_per_second", "needed_acceptance", "why"),
)


def read_claims(file: Path, more: Mapping[str, Any], chips: Mapping[str, float]) -> Iterator[Claim]:
    """Yield the claims of a CSV with the names of fields in its first line.

    `more` are facts of all claims, which those of a line replace. Lines are read one by one, so a
    file may have millions. Raises ConfigError with the line and the field.
    """
    try:
        with given_file(file).open(encoding="utf-8-sig", newline="") as text:
            yield from _claims(file, text, more, chips)
    except (UnicodeDecodeError, csv.Error) as error:
        raise ConfigError(f"{file}: it is no CSV in UTF-8: {one_line(error)}") from error


def _claims(
    file: Path, text: Iterable[str], more: Mapping[str, Any], chips: Mapping[str, float]
) -> Iterator[Claim]:
    lines = csv.reader(text, strict=True)
    header = [name.strip() for name in next(lines, [])]
    if not header:
        raise ConfigError(f"{file}: it is empty; its first line has the names of fields")
    if unknown := [name for name in header if name not in FIELDS]:
        fault = f"unknown field {unknown[0]!r}; {nearest(unknown[0], FIELDS)}"
        raise ConfigError(f"{file}, line 1: {fault}")
    if len(set(header)) < len(header):
        raise ConfigError(f"{file}, line 1: a field is named twice")
    found = False
    for cells in lines:
        if not cells:
            continue
        place = f"{file}, line {lines.line_num}"
        if len(cells) != len(header):
            raise ConfigError(
                f"{place}: it has {len(cells)} cells, and the header {len(header)}; was the file"
                " cut, or does a text with a comma lack its quotes?"
            )
        given = zip(header, map(str.strip, cells), strict=True)
        yield claim_of({**more, **{name: cell for name, cell in given if cell}}, place, chips)
        found = True
    if not found:
        raise ConfigError(f"{file}: it has no claim, only a header")


def row_of(judged: Judged) -> dict[str, str]:
    """Return a verdict as a row with `COLUMNS`, numbers with four digits."""
    facts = judged.facts
    values = {
        "speedup": facts.speedup,
        "most_speedup": judged.most_speedup,
        "claimed_tokens_per_second": facts.rate,
        "most_tokens_per_second": judged.most_tokens_per_second,
        "needed_acceptance": judged.needed_acceptance,
    }
    return {
        "name": facts.claim.name,
        "verdict": judged.verdict.value,
        "without": " ".join(judged.without),
        **{name: "" if value is None else f"{value:.4g}" for name, value in values.items()},
        "why": judged.why,
    }


def write_rows(
    file: Path, columns: Sequence[str], rows: Iterable[Mapping[str, Any]]
) -> Iterator[Mapping[str, Any]]:
    """Write rows as CSV and yield each; the file replaces an older one once all are there."""
    file.parent.mkdir(parents=True, exist_ok=True)
    part = file.with_name(f".{file.name}.part")
    try:
        with part.open("w", encoding="utf-8", newline="") as out:
            table = csv.DictWriter(out, columns, lineterminator="\n")
            table.writeheader()
            for row in rows:
                table.writerow(row)
                yield row
        part.replace(file)
    finally:
        part.unlink(missing_ok=True)
