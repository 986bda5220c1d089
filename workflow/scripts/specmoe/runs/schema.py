"""The row of `runs.parquet`: its schema, its version, and reading and writing that check both.

A row is one run that was measured. A block that fails ends its job with an error and has no rows;
the job's error and log name it. Units are in the column's name. A value that the protocol does not
give is null, never zero.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd
import pandera.pandas as pa
import pyarrow
import pyarrow.parquet as pq

from specmoe.config.base import LONGEST_DRAFT
from specmoe.config.block import Stop
from specmoe.errors import SchemaError, one_line

SCHEMA_VERSION = "9"
# Older versions that are read, with the columns that they lack and that are null then.
_LACKING = {"8": ("prompt_sha256",)}
# Columns that files of these versions may have, and that are read without them.
_GONE = {
    "accepted_by_type",
    "drafted_by_type",
    "drafts_by_type",
    "energy_j",
    "energy_source",
    "idle_w",
    "imposed_profile",
    "imposed_rates",
    "min_hits",
    "n_min",
    "ngram_gamma",
    "past_end",
    "prompts_before",
    "token_ms",
}
_VERSION_KEY = b"specmoe_schema"
# Equal values take no room in a file: one of a megabyte may hold more than the memory does.
_MOST_ROWS, _MOST_VALUES = 500_000, 2**28

TEXT = pyarrow.string()
BOOLEAN = pyarrow.bool_()
INTEGER = pyarrow.int64()
REAL = pyarrow.float64()
INTEGERS = pyarrow.list_(pyarrow.int64())
TEXTS = pyarrow.list_(pyarrow.string())
TIME = pyarrow.timestamp("us", tz="UTC")


class RunColumn(NamedTuple):
    """A column's type, whether it may be null, and the checks its values must pass."""

    type: pyarrow.DataType
    nullable: bool = False
    checks: tuple[pa.Check, ...] = ()


_COUNT = (pa.Check.ge(0),)
_POSITIVE = (pa.Check.gt(0),)
_SHARE = (pa.Check.in_range(0, 1),)


def _each(names: str, *of: Any) -> dict[str, RunColumn]:
    return dict.fromkeys(names.split(), RunColumn(*of))


COLUMNS: dict[str, RunColumn] = {
    # Identity.
    "campaign": RunColumn(TEXT),
    "protocol": RunColumn(TEXT, checks=(pa.Check.isin(["paired", "published"]),)),
    **_each("suite block run", TEXT),
    # What verifies, with the options that its suite gives the engine (`Block.target_setting`).
    "target": RunColumn(TEXT),
    # The engine's type of drafting; what drafts, with the
    # parameters that someone set (`Block.setting`); the model or cache that it loads; and the most
    # tokens that it drafts in a round.
    "method": RunColumn(TEXT),
    "draft": RunColumn(TEXT),
    "draft_model": RunColumn(TEXT, nullable=True),
    "gamma": RunColumn(INTEGER, checks=(pa.Check.in_range(0, LONGEST_DRAFT),)),
    # Of the method; null where it takes none.
    "p_min": RunColumn(REAL, nullable=True, checks=(pa.Check.ge(0), pa.Check.lt(1))),
    "n_match": RunColumn(INTEGER, nullable=True, checks=_POSITIVE),
    "prompt": RunColumn(TEXT),
    # Tokens of the prompt as the engine read it; words of it in the published study's own rows
    # with a draft.
    **_each("n_prompt n_predict", INTEGER, False, _POSITIVE),
    "temperature": RunColumn(REAL, checks=_COUNT),
    # Share of the drafted tokens that the server was made to accept; the text is then no model's.
    "imposed_acceptance": RunColumn(REAL, nullable=True, checks=_SHARE),
    "seed": RunColumn(INTEGER, nullable=True),
    "repeat": RunColumn(INTEGER, checks=_COUNT),
    # The time through the prompts of the block, and the position within the block.
    **_each("pass order", INTEGER, False, _COUNT),
    # Whether the block's processes were all live and took turns, or followed one another.
    "arrangement": RunColumn(TEXT, checks=(pa.Check.isin(["together", "in_turn"]),)),
    # Measured. Under protocol `paired`, `decode_ms` starts after the first token, which the
    # prompt's pass gives, so `tokens_per_second` is (generated - 1) / decode time. Under protocol
    # `published` the rate is what the tools print, and is generated / decode time: of
    # llama-speculative its "decoded N tokens in T seconds", all N counted; of llama-bench its rate
    # of a generation from an empty context. There `generated` can exceed `n_predict`, as the last
    # round is not cut.
    **_each("prompt_ms decode_ms tokens_per_second", REAL, True, _POSITIVE),
    # The part of `decode_ms` in which the draft drafted.
    "draft_ms": RunColumn(REAL, nullable=True, checks=_COUNT),
    "generated": RunColumn(INTEGER, nullable=True, checks=_POSITIVE),
    # Rounds of speculation, tokens drafted and accepted in them; passes of a hybrid target that
    # repeated a verification, and how many of those gave no token (see `trace`); calls of the
    # target's decode (the prompt's included) and how many of those failed. Under protocol `paired`
    # always decodes - calls for the prompt = n_predict - 1 - accepted + replays_rejected.
    **_each("rounds drafted accepted", INTEGER, True, _COUNT),
    "accepted_per_position": RunColumn(INTEGERS, nullable=True),
    # Rounds that drafted a token at each position and accepted all before it; rounds that accepted,
    # and that drafted, 0, 1, 2, ... tokens.
    **_each("tried_per_position accepted_lengths drafted_lengths", INTEGERS, True),
    **_each("replays replays_rejected decodes decode_failures", INTEGER, True, _COUNT),
    # The ids of the generated tokens, and how many of them from the start equal the baseline's.
    "tokens": RunColumn(INTEGERS, nullable=True),
    "baseline": RunColumn(TEXT, nullable=True),
    "common_prefix": RunColumn(INTEGER, nullable=True, checks=_COUNT),
    # Of a prompt of a workload: the workload, and the category that its file gives it. How the run
    # was to end (null under protocol `published`, whose tools decide) and what ended it: `length`
    # is n_predict, `eos` the target's own end, whose token is the last of `tokens`.
    **_each("workload category", TEXT, True),
    **_each("stop stopped_by", TEXT, True, (pa.Check.isin(list(Stop)),)),
    # The columns above whose values were not recorded but follow from others by arithmetic.
    "recovered": RunColumn(TEXTS),
    # Of the run's side: until the models of its processes were loaded, and all their warm-ups.
    **_each("start_ms warm_up_ms", REAL, True, _COUNT),
    "peak_rss_bytes": RunColumn(INTEGER, nullable=True, checks=_POSITIVE),
    "load_average": RunColumn(REAL, nullable=True, checks=_COUNT),
    # How often the run was measured again because the machine was taken away, why the last attempt
    # would have been too, and what was seen of it: see `engine.taken_away.Observation`.
    "measured_again": RunColumn(INTEGER, nullable=True, checks=_COUNT),
    "taken_away": RunColumn(TEXT, nullable=True),
    **_each("steal_share wait_share others_share", REAL, True, _COUNT),
    "involuntary_switches": RunColumn(INTEGER, nullable=True, checks=_COUNT),
    "cpu_share": RunColumn(REAL, nullable=True, checks=_COUNT),
    "gpu_clock_mhz": RunColumn(INTEGER, nullable=True, checks=_COUNT),
    "gpu_throttled": RunColumn(BOOLEAN, nullable=True),
    "thermal_pressure": RunColumn(TEXT, nullable=True),
    "started_at": RunColumn(TIME),
    # Provenance.
    **_each("engine engine_commit backend host", TEXT),
    **_each("target_sha256 draft_sha256", TEXT, True),
    # Requests at once, and the steady load that the run was a part of (`measure.load`): the time
    # from its first measured request to the last one's end, the tokens of all clients in that time,
    # their rate, and the target's passes in it. All but the first are null in a run without a load,
    # which has the server for itself.
    "concurrency": RunColumn(INTEGER, checks=_POSITIVE),
    "load_s": RunColumn(REAL, nullable=True, checks=_POSITIVE),
    "load_tokens": RunColumn(INTEGER, nullable=True, checks=_POSITIVE),
    "load_tokens_per_second": RunColumn(REAL, nullable=True, checks=_POSITIVE),
    "load_decodes": RunColumn(INTEGER, nullable=True, checks=_POSITIVE),
    # The model of `target`, and all of the engine's options (`Block.options_text`).
    **_each("target_model engine_options", TEXT),
    # Of the ids of the prompt's tokens (`measure.requests.digest_of_tokens`); null where the
    # protocol has no tokens, and in rows of schema version 8.
    "prompt_sha256": RunColumn(TEXT, nullable=True),
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
    try:
        pq.write_table(check_rows(rows), path)
    except ValueError as error:
        raise SchemaError(f"{path}: {error}") from error


def check_rows(rows: Iterable[Mapping[str, Any]]) -> pyarrow.Table:
    """Return rows as a table; raises ValueError naming the first fault against the schema."""
    rows = list(rows)
    for row in rows:
        if unknown := set(row) ^ set(COLUMNS):
            raise ValueError(
                f"run {row.get('run')}: column {sorted(unknown)[0]!r} is not in the schema or not"
                " in the row"
            )
    try:
        table = pyarrow.Table.from_pylist(rows, schema=_ARROW_SCHEMA)
    except (TypeError, OverflowError) as error:
        raise ValueError(str(error)) from error
    _check(_to_frame(table))
    return table


def read_table(path: Path) -> pyarrow.Table:
    """Return a table; raises SchemaError if it cannot be read, or would fill the memory."""
    try:
        facts = pq.read_metadata(path)
        groups = [facts.row_group(number) for number in range(facts.num_row_groups)]
        values = sum(
            group.column(number).num_values
            for group in groups
            for number in range(group.num_columns)
        )
        if facts.num_rows > _MOST_ROWS or values > _MOST_VALUES:
            raise ValueError(
                f"{facts.num_rows} rows of {values} values; at most {_MOST_ROWS} and"
                f" {_MOST_VALUES} are read"
            )
        return pq.read_table(path)
    except (pyarrow.ArrowException, OSError, ValueError) as error:
        fault = one_line(error)
        raise SchemaError(f"{path} is not a readable parquet file: {fault}") from error


def read_runs(path: Path) -> pd.DataFrame:
    """Return the runs of a campaign, one a row, checked against the schema.

    Integer columns are pandas' nullable `Int64`. Raises SchemaError when the file cannot be read,
    is of another schema version, or breaks the schema.
    """
    table = read_table(path)
    version = (table.schema.metadata or {}).get(_VERSION_KEY, b"none").decode(errors="replace")
    for name in _LACKING.get(version, ()):
        table = table.append_column(_ARROW_SCHEMA.field(name), pyarrow.nulls(len(table), TEXT))
    table = _without_gone(table)
    if version not in {SCHEMA_VERSION, *_LACKING}:
        raise SchemaError(
            f"{path} has schema version {version}, this specmoe needs {SCHEMA_VERSION};"
            " collect its blocks again (`snakemake --forcerun collect_runs`), or use the release"
            " that wrote it"
        )
    try:
        _check_columns(table.schema)
        frame = _to_frame(table)
        _check(frame)
    except ValueError as error:
        raise SchemaError(f"{path}: {one_line(error)}") from error
    return frame


def row_dicts(runs: pd.DataFrame) -> list[dict[str, Any]]:
    """Return rows by column, one dictionary each."""
    rows: Any = runs.to_dict("records")
    return list(rows)


def _without_gone(table: pyarrow.Table) -> pyarrow.Table:
    return table.drop_columns([name for name in table.column_names if name in _GONE])


def _check_columns(schema: pyarrow.Schema) -> None:
    """Raise ValueError for a column that is missing, unknown, or of another type."""
    found = dict(zip(schema.names, schema.types, strict=True))
    if lacking := [name for name in COLUMNS if name not in found]:
        raise ValueError(f"it has no column {lacking[0]!r}")
    for name, kind in found.items():
        if name not in COLUMNS:
            raise ValueError(f"its column {name!r} is not in the schema")
        if kind != COLUMNS[name].type:
            raise ValueError(f"column {name!r} is {kind}, not {COLUMNS[name].type}")


def _to_frame(table: pyarrow.Table) -> pd.DataFrame:
    frame: pd.DataFrame = table.to_pandas(types_mapper={pyarrow.int64(): pd.Int64Dtype()}.get)
    return frame


def _check(frame: pd.DataFrame) -> None:
    try:
        _CHECKS.validate(frame)
    except (pa.errors.SchemaError, pa.errors.SchemaErrors) as error:
        raise ValueError(one_line(error)) from error
