"""The table of passes that were timed by themselves: `pass_times.parquet`."""

from collections.abc import Mapping
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd
import pandera.pandas as pa

from specmoe.config.differences import differences
from specmoe.config.matrix import blocks_in_order, list_timed_passes
from specmoe.config.schema import Config
from specmoe.config.timed_passes import TimedPasses
from specmoe.files import named_if_damaged, read_record
from specmoe.runs.checked_table import read_checked, write_checked
from specmoe.runs.described import Described

_POSITIVE = pa.Check.gt(0)
_SCHEMA = pa.DataFrameSchema(
    {
        "engine": pa.Column(str),
        "model": pa.Column(str),
        "model_sha256": pa.Column(str),
        "host": pa.Column(str),
        "repeat": pa.Column(int, pa.Check.ge(0)),
        # Which tokens got an output, see `config.timed_passes.Outputs`.
        "outputs": pa.Column(str, pa.Check.isin(["all", "last"])),
        "width": pa.Column(int, _POSITIVE),  # tokens of the pass
        "depth": pa.Column(int, _POSITIVE),  # tokens before it
        "samples": pa.Column(int, _POSITIVE),
        "ms": pa.Column(float, _POSITIVE),  # median over the samples
        # Distinct experts of a layer, mean over layers and samples; null of a dense model.
        "experts": pa.Column(float, _POSITIVE, nullable=True),
        # Why the machine was not the passes' own at the last attempt, see `engine.taken_away`.
        # Campaigns of before this was looked at have no such column.
        "taken_away": pa.Column(str, nullable=True, required=False),
    },
    unique=["engine", "model", "repeat", "outputs", "width"],
    strict=True,
    coerce=True,
)


def record_files(folder: Path, config: Config, *, gpu: bool) -> dict[Path, TimedPasses]:
    """Return what is timed, by its records in a folder: of each model in each repeat."""
    blocks = blocks_in_order(config, gpu=gpu)
    repeats = dict.fromkeys(block.repeat for block in blocks)
    timed = list_timed_passes(config, blocks)
    return {folder / f"{one.model}/r{repeat}.json": one for one in timed for repeat in repeats}


def rows_of_record(record: Mapping[str, Any], asked: TimedPasses) -> list[dict[str, Any]]:
    """Return the rows of a record that `measure.pass_times` writes.

    Raises ValueError if its passes are not those that are asked for. Those of before had no gate.
    """
    passes = {"gate": asked.gate, **record["passes"]}
    if unlike := differences(passes, asdict(asked)):
        raise ValueError(f"it was measured with another configuration: {unlike[0]}")
    whole = {name: record[name] for name in ("engine", "model_sha256", "host", "repeat")}
    whole |= {name: record["passes"][name] for name in ("model", "depth", "samples")}
    return [whole | {"taken_away": record.get("taken_away"), **one} for one in record["timings"]]


write_pass_times = partial(write_checked, _SCHEMA)
"""Check the rows of all records and write them as a table at a path. Raises SchemaError."""
read_pass_times = partial(read_checked, _SCHEMA)
"""Return the table of a path, checked; without rows if the path is None. Raises SchemaError."""


def undisturbed_passes(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the passes that estimates may use."""
    return frame[frame["taken_away"].isna()] if "taken_away" in frame else frame


def seen_experts(frame: pd.DataFrame) -> dict[str, tuple[tuple[int, float], ...]]:
    """Return, by model, pass widths and the distinct experts that they visited in a layer.

    Means over repeats; a dense model is left out. Experts do not depend on outputs or engine.
    """
    seen: dict[str, tuple[tuple[int, float], ...]] = {}
    for model, members in frame.dropna(subset="experts").groupby("model"):
        means = members.groupby("width")["experts"].mean()
        seen[str(model)] = tuple(zip(means.index.tolist(), means.tolist(), strict=True))
    return seen


def collect_pass_times(config: Config, engine: Path, records: Path, out: Path) -> None:
    """Write the table of a campaign's timed passes, from the folder of their records."""
    gpu = Described.read([engine], [], None).gpu
    rows = []
    for record, asked in record_files(records, config, gpu=gpu).items():
        with named_if_damaged(record):
            rows += rows_of_record(read_record(record), asked)
    write_pass_times(rows, out)
