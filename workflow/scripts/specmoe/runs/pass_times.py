"""The table of passes that were timed by themselves: `pass_times.parquet`."""

from collections.abc import Iterable, Mapping
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import pandas as pd
import pandera.pandas as pa

from specmoe.files import named_if_damaged
from specmoe.plan.campaign import LoadedCampaign
from specmoe.plan.gate import Gate
from specmoe.records import Request
from specmoe.runs.collect import measured_as_asked
from specmoe.runs.schema import read_checked, write_checked

_POSITIVE = pa.Check.gt(0)
_SCHEMA = pa.DataFrameSchema(
    {
        "engine": pa.Column(str),
        "model": pa.Column(str),
        "model_sha256": pa.Column(str),
        "host": pa.Column(str),
        "repeat": pa.Column(int, pa.Check.ge(0)),
        # Which tokens got an output, see `config.block.Outputs`.
        "outputs": pa.Column(str, pa.Check.isin(["all", "last"])),
        "width": pa.Column(int, _POSITIVE),  # tokens of the pass
        "depth": pa.Column(int, _POSITIVE),  # tokens before it
        "samples": pa.Column(int, _POSITIVE),
        "ms": pa.Column(float, _POSITIVE),  # median over the samples
        # Distinct experts of a layer, mean over layers and samples; null of a dense model.
        "experts": pa.Column(float, _POSITIVE, nullable=True),
        # Why the machine was not the passes' own at the last attempt, see `engine.disturbances`.
        # Campaigns of before this was looked at have no such column.
        "taken_away": pa.Column(str, nullable=True, required=False),
    },
    unique=["engine", "model", "repeat", "outputs", "width"],
    strict=True,
    coerce=True,
)


def rows_of_record(record: Mapping[str, Any], asked: Request) -> list[dict[str, Any]]:
    """Return the rows of a record that `measure.pass_times` writes, of what it was asked."""
    whole = {name: asked[name] for name in ("engine", "model", "repeat", "depth", "samples")}
    whole |= {"model_sha256": asked["target_sha256"], "host": record["host"]}
    return [whole | {"taken_away": record["taken_away"], **one} for one in record["timings"]]


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


def read_passes(gate: Gate, repeats: Iterable[int]) -> pd.DataFrame:
    """Return the passes that were timed before some repeats, as the table has them."""
    rows = _rows(gate, repeats)
    return _SCHEMA.validate(pd.DataFrame(rows)) if rows else read_pass_times()


def collect_pass_times(campaign: LoadedCampaign, out: Path) -> None:
    """Write the table of a campaign's timed passes."""
    write_pass_times(_rows(Gate(campaign), campaign.first_blocks), out)


def _rows(gate: Gate, repeats: Iterable[int]) -> list[dict[str, Any]]:
    rows = []
    for model, repeat in product(gate.campaign.timed_passes, repeats):
        name = f"pass_times/{model}/r{repeat}"
        asked, record = measured_as_asked(gate, name, gate.passes(model, repeat))
        with named_if_damaged(gate.records.link(name)):
            rows += rows_of_record(record, asked)
    return rows
