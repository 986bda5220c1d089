"""The row of `runs.parquet`: its schema, its version, and reading and writing that check both.

A row is one run. Units are in the column's name; a value that the protocol does not give is null,
never zero.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd
import pandera.pandas as pa
import pyarrow
import pyarrow.parquet as pq

from specmoe.errors import SchemaError

SCHEMA_VERSION = "3"
_VERSION_KEY = b"specmoe_schema"

TEXT = pyarrow.string()
INTEGER = pyarrow.int64()
REAL = pyarrow.float64()
INTEGERS = pyarrow.list_(pyarrow.int64())
TEXTS = pyarrow.list_(pyarrow.string())
TIME = pyarrow.timestamp("us", tz="UTC")


class Column(NamedTuple):
    """A column's type, whether it may be null, and the checks its values must pass."""

    type: pyarrow.DataType
    nullable: bool = False
    checks: tuple[pa.Check, ...] = ()


_COUNT = (pa.Check.ge(0),)
_POSITIVE = (pa.Check.gt(0),)

COLUMNS: dict[str, Column] = {
    # Identity.
    "campaign": Column(TEXT),
    "protocol": Column(TEXT, checks=(pa.Check.isin(["paired", "published"]),)),
    "suite": Column(TEXT),
    "block": Column(TEXT),
    "run": Column(TEXT),
    "target": Column(TEXT),
    "method": Column(TEXT),
    "draft": Column(TEXT),
    "gamma": Column(INTEGER, checks=_COUNT),
    "prompt": Column(TEXT),
    # Tokens of the prompt as the engine read it; words of it in the published study's own rows
    # with a draft.
    "n_prompt": Column(INTEGER, checks=_POSITIVE),
    "n_predict": Column(INTEGER, checks=_POSITIVE),
    "temperature": Column(REAL, checks=_COUNT),
    # Share of the drafted tokens that was accepted whatever they were; the text is then nobody's.
    "imposed_acceptance": Column(REAL, nullable=True, checks=(pa.Check.in_range(0, 1),)),
    "seed": Column(INTEGER, nullable=True),
    "repeat": Column(INTEGER, checks=_COUNT),
    "order": Column(INTEGER, checks=_COUNT),
    # Measured. Under protocol `paired`, `decode_ms` starts after the first token, which the
    # prompt's pass gives, so `tokens_per_second` is (generated - 1) / decode time. Under protocol
    # `published` the rate is what the tools print, and is generated / decode time: of
    # llama-speculative its "decoded N tokens in T seconds", all N counted; of llama-bench its rate
    # of a generation from an empty context. There `generated` can exceed `n_predict`, as the last
    # round is not cut.
    "prompt_ms": Column(REAL, nullable=True, checks=_POSITIVE),
    "decode_ms": Column(REAL, nullable=True, checks=_POSITIVE),
    "tokens_per_second": Column(REAL, nullable=True, checks=_POSITIVE),
    # The part of `decode_ms` in which the draft drafted.
    "draft_ms": Column(REAL, nullable=True, checks=_COUNT),
    "generated": Column(INTEGER, nullable=True, checks=_POSITIVE),
    # Rounds of speculation, tokens drafted and accepted in them; passes of a hybrid target that
    # repeated a verification, and how many of those gave no token (see `trace`); calls of the
    # target's decode (the prompt's included) and how many of those failed. Under protocol `paired`
    # always decodes - calls for the prompt = n_predict - 1 - accepted + replays_rejected.
    "rounds": Column(INTEGER, nullable=True, checks=_COUNT),
    "drafted": Column(INTEGER, nullable=True, checks=_COUNT),
    "accepted": Column(INTEGER, nullable=True, checks=_COUNT),
    "accepted_per_position": Column(INTEGERS, nullable=True),
    "replays": Column(INTEGER, nullable=True, checks=_COUNT),
    "replays_rejected": Column(INTEGER, nullable=True, checks=_COUNT),
    "decodes": Column(INTEGER, nullable=True, checks=_COUNT),
    "decode_failures": Column(INTEGER, nullable=True, checks=_COUNT),
    # The ids of the generated tokens, and how many of them from the start equal the baseline's.
    "tokens": Column(INTEGERS, nullable=True),
    "baseline": Column(TEXT, nullable=True),
    "common_prefix": Column(INTEGER, nullable=True, checks=_COUNT),
    # The columns above whose values were not recorded but follow from others by arithmetic.
    "recovered": Column(TEXTS),
    "peak_rss_bytes": Column(INTEGER, nullable=True, checks=_POSITIVE),
    "load_average": Column(REAL, nullable=True, checks=_COUNT),
    "started_at": Column(TIME),
    # Provenance.
    "engine": Column(TEXT),
    "engine_commit": Column(TEXT),
    "backend": Column(TEXT),
    "host": Column(TEXT),
    "target_sha256": Column(TEXT, nullable=True),
    "draft_sha256": Column(TEXT, nullable=True),
    # Outcome.
    "status": Column(TEXT, checks=(pa.Check.isin(["ok", "failed", "timeout"]),)),
    "error": Column(TEXT, nullable=True),
}

_ARROW_SCHEMA = pyarrow.schema(
    [pyarrow.field(name, column.type) for name, column in COLUMNS.items()],
    metadata={_VERSION_KEY: SCHEMA_VERSION},
)
_CHECKS = pa.DataFrameSchema(
    {
        name: pa.Column(nullable=column.nullable, checks=list(column.checks))
        for name, column in COLUMNS.items()
    },
    unique=["campaign", "run"],
    strict=True,
)


def write_runs(rows: Iterable[Mapping[str, Any]], path: Path) -> None:
    """Check rows against the schema and write them; raises SchemaError naming the first fault."""
    rows = list(rows)
    for row in rows:
        if unknown := set(row) ^ set(COLUMNS):
            raise SchemaError(
                f"{path}: run {row.get('run')}: column {sorted(unknown)[0]!r} is not"
                " in the schema or not in the row"
            )
    try:
        table = pyarrow.Table.from_pylist(rows, schema=_ARROW_SCHEMA)
    except (pyarrow.ArrowInvalid, pyarrow.ArrowTypeError) as error:
        raise SchemaError(f"{path}: {error}") from error
    _check(_to_frame(table), path)
    pq.write_table(table, path)


def read_runs(path: Path) -> pd.DataFrame:
    """Return the runs of a campaign, one a row, checked against the schema.

    Integer columns are pandas' nullable `Int64`. Raises SchemaError when the file cannot be read,
    is of another schema version, or breaks the schema.
    """
    try:
        table = pq.read_table(path)
    except (pyarrow.ArrowInvalid, OSError) as error:
        raise SchemaError(f"{path} is not a readable parquet file: {error}") from error
    version = (table.schema.metadata or {}).get(_VERSION_KEY, b"none").decode()
    if version != SCHEMA_VERSION:
        raise SchemaError(
            f"{path} has schema version {version}, this specmoe needs {SCHEMA_VERSION};"
            " measure it again, or use the release that wrote it"
        )
    frame = _to_frame(table)
    _check(frame, path)
    return frame


def _to_frame(table: pyarrow.Table) -> pd.DataFrame:
    frame: pd.DataFrame = table.to_pandas(types_mapper={pyarrow.int64(): pd.Int64Dtype()}.get)
    return frame


def _check(frame: pd.DataFrame, path: Path) -> None:
    try:
        _CHECKS.validate(frame)
    except pa.errors.SchemaError as error:
        raise SchemaError(f"{path}: {' '.join(str(error).split())}") from error
