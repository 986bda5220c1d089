"""Campaigns of others: whether a packed one is whole and safe to read, and can join the atlas.

Nothing of it runs, and its configuration says nothing of where it lies. Its rows pass the checks of
every campaign: their schema, and the audit.
"""

import re
import stat
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow
import pyarrow.parquet as pq

from specmoe.analysis.build import analysis_of_campaign
from specmoe.analysis.registry import Analysis
from specmoe.analysis.views import advised_targets, count_check, whole_audit
from specmoe.audit.report import audit
from specmoe.campaign.gate import load_campaign
from specmoe.config.base import NAME
from specmoe.config.load import merge_catalogs
from specmoe.errors import ConfigError, DamagedFileError, SchemaError, ended_if_slow, one_line
from specmoe.files import ROOT, json_of, read_record, read_text
from specmoe.measure.trace import Recording
from specmoe.runs.schema import read_table
from specmoe.runs.shipped import CONTENTS, LICENCE, MANIFEST, SCHEMA, check_manifest
from specmoe.text import fill_template

# The largest shipped campaign has 4 000 runs in 2 MB.
_MOST_BYTES, _MOST_FILES, _MOST_CELLS = 2**26, 200, 10**8
# Paths, but for the system's own and our sockets', and addresses of persons and machines.
_PRIVATE = re.compile(
    r"(?<![\w.:/~-])(?!/(?:sys|proc|dev|usr|lib|etc)/|\S*/specmoe-\w+/s\.sock)"
    r"(?:~|[A-Za-z]:)?(?:[/\\][\w.+@-]+){2,}"
    r"|[\w.+-]+@[\w-]+\.\w{2,}|(?<![\d.])(?:\d{1,3}\.){3}\d{1,3}(?![\d.])"
)
# Markup, and characters that terminals heed.
_UNSAFE = re.compile(r"<[/!?a-zA-Z]|[\x00-\x08\x0b-\x1f\x7f\u202a-\u202e\u2066-\u2069]")


def check_campaign(folder: Path) -> None:
    """Check a packed campaign of others, and print whether it can join the atlas.

    Raises ConfigError, DamagedFileError and SchemaError for what is refused.
    """
    _check_files(folder)
    licence = check_manifest(folder)
    _check_texts(folder / "campaign.yaml", _texts_of(_configuration(folder) | {"campaign": None}))
    for file in sorted(folder.rglob("*.json")):
        # Texts that a model wrote are in the trace alone, which has a schema.
        if file.name == "trace.json":
            Recording.read(file)
        else:
            _check_texts(file, _texts_of(read_record(file)))
    for file in sorted(folder.glob("*.parquet")):
        _check_texts(file, _texts_of_table(file))
    endless = SchemaError("its blocks take too long to list and check; pack fewer suites")
    with TemporaryDirectory() as results, ended_if_slow(str(folder), error=endless):
        analysis = analysis_of_packed(folder, Path(results))
    why = [*reasons_against(analysis, licence)]
    known = {"folder": folder, "analysis": analysis, "audit": whole_audit(analysis), "why": why}
    print(fill_template(ROOT / "paper/joining.txt.j2", **known), end="")


def analysis_of_packed(folder: Path, results: Path) -> Analysis:
    """Audit a packed campaign and return its analysis; `results` is where the audit is written.

    Raises ConfigError and the errors of the audit.
    """
    data = _configuration(folder)
    campaign = load_campaign(merge_catalogs(ROOT, data), ROOT, results)
    audit(campaign)
    return analysis_of_campaign(campaign, [])


def _configuration(folder: Path) -> dict[str, Any]:
    """Return a packed campaign's configuration, with `folder` as the one where it lies."""
    file = folder / "campaign.yaml"
    try:
        data: dict[str, Any] = json_of(read_text(file).removeprefix(SCHEMA))
        data["campaign"] |= {"source": "shipped", "folder": str(folder)}
    except (ValueError, TypeError, KeyError) as error:
        raise ConfigError(f"{file}: not as `pack_campaign` writes it: {one_line(error)}") from error
    return data


def reasons_against(analysis: Analysis, licence: str | None) -> Iterator[str]:
    """Yield why a campaign cannot join the atlas."""
    counts = whole_audit(analysis)
    if licence != LICENCE:
        yield f"{MANIFEST} does not say that its data are under {LICENCE}"
    if failed := count_check(counts, "controls")["failed"]:
        yield f"{failed} control runs failed"
    if impossible := counts["impossible"]:
        yield f"{impossible} of {counts['runs']} runs are impossible"
    if advised_targets(analysis)["settings"].sum() == 0:
        yield "no setting could be compared with a baseline of its own"


def _check_files(folder: Path) -> None:
    """Check names, kinds and sizes before anything is read. Raises DamagedFileError."""
    if not (folder / MANIFEST).is_file():
        named = f"there is no packed campaign in {folder}"
        raise ConfigError(f"{named}; give what `pack_campaign` made: --config folder=FOLDER")
    known, total = {*CONTENTS, MANIFEST}, 0
    files = sorted(folder.rglob("*"))
    for file in files[: _MOST_FILES + 1]:
        name, about = file.relative_to(folder), file.lstat()
        if not (stat.S_ISREG(about.st_mode) or str(name) == "divergences"):
            raise DamagedFileError(f"{file} is no plain file; take it out")
        of_target = name.match("divergences/*.json") and re.fullmatch(NAME, name.name)
        if str(name) not in known and not of_target:
            raise DamagedFileError(f"{file} is no file of a packed campaign; take it out")
        total += about.st_size
    if len(files) > _MOST_FILES or total > _MOST_BYTES:
        most = f"{_MOST_FILES} files and {_MOST_BYTES >> 20} MiB"
        raise DamagedFileError(f"{folder} has more than {most}; pack fewer suites")


def _check_texts(file: Path, texts: Iterator[str]) -> None:
    """Refuse texts with a path, an address or markup. Raises SchemaError for the first."""
    faults = {
        "a path or an address, which may name a person": _PRIVATE,
        "markup or a control character": _UNSAFE,
    }
    for text in texts:
        for fault, pattern in faults.items():
            if found := pattern.search(text):
                raise SchemaError(f"{file}: {found.group()[:60]!r} is {fault}; take it out")


def _texts_of(value: Any) -> Iterator[str]:
    """Yield the keys and texts of JSON."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, part in value.items():
            yield str(key)
            yield from _texts_of(part)
    elif isinstance(value, list):
        for part in value:
            yield from _texts_of(part)


def _texts_of_table(file: Path) -> Iterator[str]:
    """Yield the names of a table's columns and its different texts. Raises SchemaError."""
    try:
        size = pq.read_metadata(file)
    except (pyarrow.ArrowException, OSError) as error:
        raise SchemaError(f"{file} is not a readable parquet file: {one_line(error)}") from error
    groups = [size.row_group(number).total_byte_size for number in range(size.num_row_groups)]
    if size.num_rows * size.num_columns > _MOST_CELLS or sum(groups) > 2**30:
        raise SchemaError(f"{file}: {size.num_rows} rows and {sum(groups)} bytes; pack fewer")
    table = read_table(file)
    yield from table.column_names
    for name, kind, rows in zip(table.column_names, table.schema.types, table.columns, strict=True):
        if pyarrow.types.is_string(kind) or pyarrow.types.is_large_string(kind):
            yield from filter(None, rows.unique().to_pylist())
        elif not pyarrow.types.is_primitive(getattr(kind, "value_type", kind)):
            raise SchemaError(f"{file}: column {name} is of type {kind}; take it out")
