"""The table `runs.parquet`: the declaration of its rows, reading and writing, excluded rows.

A row is one run that was measured. A block that fails ends its job with an error and has no rows.
Units are in the column's name. A value that the protocol does not give is null, never zero.
"""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from functools import partial
from pathlib import Path
from types import UnionType
from typing import Any, get_args

import pandas as pd
import pandera.pandas as pa
import pyarrow
import pyarrow.parquet as pq

from specmoe.config.base import LONGEST_DRAFT
from specmoe.config.block import Protocol, Schedule, Stop
from specmoe.errors import SchemaError, one_line
from specmoe.hardware.disturbance import OTHERS_SHARE, STEAL_SHARE, TOO_HOT, WAIT_SHARE

SCHEMA_VERSION = "10"
_VERSION_KEY = b"specmoe_schema"
# No run takes twelve days, and no machine makes so many tokens a second.
_ABSURD = 1e9

DISTURBED = "the machine was disturbed"
_SHARES = {"steal_share": STEAL_SHARE, "wait_share": WAIT_SHARE, "others_share": OTHERS_SHARE}
# Columns that shipped campaigns of earlier versions lack, where they are null.
ADDED = ("partner", "partner_gamma", "partner_drafted", "partner_accepted", "turn", "cached_tokens")
USUAL = 0.75  # what this share of a machine's runs do not exceed is usual there


def _column(description: str, **bounds: Any) -> Any:
    return pa.Field(description=description, **bounds)


_count = partial(_column, ge=0)
_positive = partial(_column, gt=0)
_measured = partial(_column, gt=0, lt=_ABSURD)


class Row(pa.DataFrameModel):
    """The columns of a run; those of a type with `| None` may be null.

    Under protocol `paired`, `decode_ms` starts after the first token, which the prompt's pass
    gives. So `tokens_per_second` is (generated - 1) / decode time, and always
    decodes - calls for the prompt = n_predict - 1 - accepted + replays_rejected.

    Under protocol `study` the rate is the printed one, generated / decode time: all tokens of
    llama-speculative, and those of llama-bench from an empty context. There `generated` can exceed
    `n_predict`, as the last round is not cut.
    """

    campaign: str = _column("Its name.")
    protocol: str = _column("The protocol of its measurement.", isin=[*Protocol])
    suite: str = _column("Its suite.")
    block: str = _column("One repeat of one comparison.")
    run: str = _column("Its id: block, arm, prompt and iteration.")
    target: str = _column("The model that verifies.")
    method: str = _column("The engine's name of the drafting method; of a pair both.")
    draft: str = _column("The draft model or method, with its parameters.")
    draft_model: str | None = _column("The draft model, head or cache that is loaded.")
    gamma: int = _column("The most tokens that it drafts in a round.", ge=0, le=LONGEST_DRAFT)
    p_min: float | None = _column("Least probability of a drafted token.", ge=0, lt=1)
    n_match: int | None = _positive("Length of the n-grams that are looked up.")
    partner: str | None = _column(
        "The n-gram method beside a model or head: it drafts where it finds something."
    )
    partner_gamma: int | None = _column(
        "The most tokens that it drafts in a round.", gt=0, le=LONGEST_DRAFT
    )
    level: str | None = _column("The level of what its suite varies; null where that is nothing.")
    prompt: str = _column("The prompt's id.")
    n_prompt: int = _positive(
        "Tokens of the prompt as the engine read it; words in the study's own speculative rows."
    )
    turn: int | None = _positive("Of a chat that is sent turn by turn, from 1; null elsewhere.")
    cached_tokens: int | None = _count(
        "Tokens of the prompt that its server kept from the turn before, so that `prompt_ms` is of"
        " the others; null where `turn` is."
    )
    n_predict: int = _positive("The most tokens to generate.")
    temperature: float = _count("0: greedy.")
    forced_acceptance: float | None = _column(
        "Share of the drafted tokens that the server was made to accept; the text is no model's.",
        ge=0,
        le=1,
    )
    seed: int | None = _column("Of the sampler; null where none was set.")
    repeat: int = _count("Of the block.")
    iteration: int = _count("Of 2.0.0: the pass through the prompts of the block; 0 since then.")
    order: int = _count("Position within the block.")
    schedule: str = _column(
        "Whether a setting and its baseline took turns (`grouped`: of 2.0.0, with several settings"
        " in groups), or followed one another.",
        isin=[Schedule.INTERLEAVED, Schedule.GROUPED, Schedule.SEQUENTIAL],
    )
    prompt_ms: float | None = _measured("Time of the prompt's pass.")
    decode_ms: float | None = _measured("Time of the tokens after it.")
    tokens_per_second: float | None = _measured("Rate of decoding.")
    draft_ms: float | None = _count("The part of `decode_ms` that drafting took.", lt=_ABSURD)
    generated: int | None = _positive("Tokens of the text.")
    rounds: int | None = _count("Rounds of speculation.")
    drafted: int | None = _count("Tokens drafted in them.")
    accepted: int | None = _count("Of those, the tokens accepted.")
    partner_drafted: int | None = _count("Of the tokens drafted, those of the partner.")
    partner_accepted: int | None = _count(
        "Of those, the tokens accepted; null where a draft model's rounds may be replayed too."
    )
    accepted_per_position: tuple[int, ...] | None = _column("Rounds that accepted each position.")
    drafted_per_position: tuple[int, ...] | None = _column(
        "Rounds that drafted a token at each position and accepted all before it."
    )
    accepted_lengths: tuple[int, ...] | None = _column("Rounds that accepted 0, 1, 2, ... tokens.")
    drafted_lengths: tuple[int, ...] | None = _column("Rounds that drafted 0, 1, 2, ... tokens.")
    replays: int | None = _count("Passes of a hybrid target that repeated a verification.")
    replays_rejected: int | None = _count("Of those, the ones that gave no token.")
    decodes: int | None = _count("Calls of the target's decode, the prompt's included.")
    decode_failures: int | None = _count("Of those, the failed ones.")
    tokens: tuple[int, ...] | None = _column("Ids of the generated tokens.")
    baseline: str | None = _column("The baseline run that it is compared with.")
    common_prefix: int | None = _count("Tokens from the start that equal the baseline's.")
    workload: str | None = _column("The workload that the prompt is of.")
    category: str | None = _column("The category that the workload's file gives the prompt.")
    stop: str | None = _column("The requested end; null where the tool decides.", isin=[*Stop])
    stopped_by: str | None = _column(
        "Its end: `length` is n_predict, `eos` the target's own end, its last token.",
        isin=[*Stop],
    )
    peak_rss_bytes: int | None = _positive("Of its arm's processes.")
    load_average: float | None = _count("Of the machine, before the run.")
    reruns: int | None = _count("Repeated attempts, because the machine was disturbed.")
    disturbed_reason: str | None = _column("How the machine was disturbed at the last attempt.")
    steal_share: float | None = _count("Of the machine's time; see `hardware.disturbance`.")
    wait_share: float | None = _count("Of the run's time, waiting for a processor.")
    others_share: float | None = _count("Of the machine's time, taken by other processes.")
    gpu_throttled: bool | None = _column("By heat or power.")
    thermal_pressure: str | None = _column("As macOS names it.")
    started_at: datetime = _column("When it was sent.")
    engine: str = _column("Id of the engine.")
    engine_commit: str = _column("Of llama.cpp.")
    backend: str = _column("What the engine computes with.")
    machine: str = _column("Id of the machine.")
    target_sha256: str | None = _column("Of the target's file.")
    draft_sha256: str | None = _column("Of the draft model's file.")
    concurrency: int = _positive("Requests at once.")
    load_s: float | None = _measured(
        "The steady load that it was a part of (`measure.load`), from its first measured request to"
        " the last one's end; null, as the next three, where a run had the server for itself."
    )
    load_tokens: int | None = _positive("Tokens of all clients in that time.")
    load_tokens_per_second: float | None = _measured("Their rate.")
    load_decodes: int | None = _positive("Passes over the target in that time.")
    engine_options: str = _column("All options of the engine.")
    prompt_sha256: str | None = _column("Of the ids of the prompt's tokens; null without any.")


_ARROW = {
    str: pyarrow.string(),
    bool: pyarrow.bool_(),
    int: pyarrow.int64(),
    float: pyarrow.float64(),
    datetime: pyarrow.timestamp("us", tz="UTC"),
    tuple[int, ...]: pyarrow.list_(pyarrow.int64()),
}
_NUMBERS = pa.Check(
    lambda column: column.list.flatten().ge(0).fillna(value=False).all(), name="numbers from 0 on"
)


def _columns() -> Iterator[tuple[str, pa.Column]]:
    """Yield the columns of `Row` with the types that they have in a file."""
    declared = Row.to_schema().columns
    for attribute, hint in Row.__annotations__.items():
        kind, *null = get_args(hint) if isinstance(hint, UnionType) else [hint]
        column = declared[getattr(Row, attribute)]
        checks = [*column.checks, *[_NUMBERS] * (kind == tuple[int, ...])]
        dtype, about = pd.ArrowDtype(_ARROW[kind]), column.description
        yield column.name, pa.Column(dtype, checks, nullable=bool(null), description=about)


COLUMNS = dict(_columns())
_SCHEMA = pa.DataFrameSchema(COLUMNS, unique=["campaign", "run"])
_ARROW_SCHEMA = pyarrow.schema(
    [
        pyarrow.field(name, column.dtype.type.pyarrow_dtype, metadata={"about": column.description})
        for name, column in COLUMNS.items()
    ],
    metadata={_VERSION_KEY: SCHEMA_VERSION},
)


def write_runs(rows: Iterable[Mapping[str, Any]], path: Path) -> None:
    """Check rows against the schema and write them; raises SchemaError naming the first error."""
    with schema_errors(path):
        pq.write_table(check_rows(rows), path)


def check_rows(rows: Iterable[Mapping[str, Any]]) -> pyarrow.Table:
    """Return rows as a table, null where a row lacks a column; raises ValueError."""
    try:
        table = pyarrow.Table.from_pylist(list(rows), schema=_ARROW_SCHEMA)
    except (TypeError, OverflowError) as error:
        raise ValueError(str(error)) from error
    return _checked(table)


def frame_of(rows: Iterable[Mapping[str, Any]]) -> pd.DataFrame:
    """Return rows as `read_runs` does. Raises ValueError."""
    return _frame(check_rows(rows))


def _frame(table: pyarrow.Table) -> pd.DataFrame:
    frame: pd.DataFrame = table.to_pandas(types_mapper={pyarrow.int64(): pd.Int64Dtype()}.get)
    return frame


def _checked(table: pyarrow.Table) -> pyarrow.Table:
    """Return a table; raises ValueError for the first row that breaks the schema."""
    frame = validated(_SCHEMA, table.to_pandas(types_mapper=pd.ArrowDtype))
    frame = frame[frame["protocol"] == Protocol.PAIRED]  # llama-server gives all that follows
    gamma, whole = frame["gamma"], frame["baseline"].isin(frame["run"])
    longest = gamma.mask(frame["partner_gamma"].fillna(0) > gamma, frame["partner_gamma"])
    for name in ("accepted_per_position", "drafted_per_position"):
        whole &= frame[name].list.len().fillna(-1) == longest
    if lacking := [*frame.loc[frame["tokens"].isna() | ((gamma > 0) & ~whole), "run"]]:
        raise ValueError(f"{lacking[0]} lacks tokens, baseline or accepted_per_position up to γ")
    return table


def validated(schema: pa.DataFrameSchema, frame: pd.DataFrame) -> pd.DataFrame:
    """Return a frame; raises ValueError for the first value, or type, that the schema refuses."""
    try:
        return schema.validate(frame)
    except (pa.errors.SchemaError, pa.errors.SchemaErrors) as error:
        raise ValueError(one_line(error)) from error


@contextmanager
def schema_errors(path: Path) -> Iterator[None]:
    """Name the file of a table whose rows are refused. Raises SchemaError."""
    try:
        yield
    except ValueError as error:
        raise SchemaError(f"{path}: {error}") from error


def read_table(path: Path) -> pyarrow.Table:
    """Return a table; raises SchemaError if it cannot be read."""
    try:
        return pq.read_table(path)
    except (pyarrow.ArrowException, OSError) as error:
        raise SchemaError(f"{path} is not a readable parquet file: {one_line(error)}") from error


def read_runs(path: Path) -> pd.DataFrame:
    """Return the checked runs of a campaign, one a row, without columns of other names.

    Integer columns are pandas' nullable `Int64`. Raises SchemaError when the file cannot be read,
    is of another schema version, or breaks the schema.
    """
    table = read_table(path)
    version = (table.schema.metadata or {}).get(_VERSION_KEY, b"none").decode(errors="replace")
    if version != SCHEMA_VERSION:
        raise SchemaError(
            f"{path} has schema version {version}, this specmoe reads {SCHEMA_VERSION}; render a"
            " shipped campaign with the release that packed it (8 and 9: 1.1.0); collect another"
            " one again: snakemake --forcerun collect_table"
        )
    with schema_errors(path):
        missing = [name for name in COLUMNS if name not in table.column_names]
        for name in missing:
            if name not in ADDED:
                raise ValueError(f"it has no column {name!r}")
            field = _ARROW_SCHEMA.field(name)
            table = table.append_column(field, pyarrow.nulls(len(table), field.type))
        return _frame(_checked(table.select([*COLUMNS])))


def undisturbed(runs: pd.DataFrame) -> pd.DataFrame:
    """Return the runs of a whole campaign that estimates may use.

    A run that is compared with a disturbed baseline is excluded too. A baseline stays for its other
    runs.
    """
    return runs.drop(excluded(runs).index)


def excluded(runs: pd.DataFrame) -> pd.DataFrame:
    """Return the other runs."""
    beyond = runs["run"][disturbed_beyond_usual(runs)]
    return runs[runs["run"].isin(beyond) | runs["baseline"].isin(beyond)]


def disturbed_beyond_usual(runs: pd.DataFrame) -> pd.Series:
    """Return which runs of a whole campaign were disturbed far more than is usual on their machine.

    What stays disturbed is usual noise on many machines, and intervals know it. A run is excluded
    only if it was disturbed at its last attempt, and others took of it (by steal, waiting or use of
    CPUs) the live rule's limit more than of three quarters of its machine's runs. No speed is seen.

    Simulated with twelve planted loads on recorded runs of `demo`, `methods` and a noisy machine
    (tests/benchmarks/README.md): intervals cover 0.94 to 0.97, are 0.98 times as wide as if every
    run counted, and 0.8 % of settings at most lose theirs. Where every run counts, a load
    on one setting alone brings the coverage down to 0.57; where every disturbed run is excluded,
    intervals are 1.54 times as wide, and half of the settings lose theirs if half of the runs are
    hit; with twice the limit coverage falls to 0.88.
    """
    seen = runs[[*_SHARES]].astype(float)
    # As in the live rule: others may have used CPUs that the server did not want.
    seen["others_share"] = seen["others_share"].where(seen["wait_share"].isna())
    seen["gpu_throttled"] = runs["gpu_throttled"].isin([True]).astype(float)
    seen["too_hot"] = runs["thermal_pressure"].isin(TOO_HOT).astype(float)
    usual = seen.groupby(runs["machine"]).transform("quantile", USUAL)
    limits = pd.Series(_SHARES).reindex(seen.columns, fill_value=0)
    return (seen - usual).gt(limits).any(axis=1) & runs["disturbed_reason"].notna()
