"""The tables of timed forward passes and of draft models' scores, and the verb of all tables."""

import json
from collections.abc import Iterable, Mapping
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import pandas as pd
import pandera.pandas as pa

from specmoe.campaign.asked import Asked
from specmoe.campaign.campaign import LoadedCampaign
from specmoe.campaign.inputs import Inputs
from specmoe.files import named_if_damaged, read_record, replace_text
from specmoe.hardware.description import collect
from specmoe.measure.model_passes import BESIDE
from specmoe.models.info import ModelInfo, Size, load_info, save_info, size_of_info
from specmoe.records import Request
from specmoe.runs.collect import collect_runs, measured_as_asked
from specmoe.runs.schema import read_table, schema_errors, validated

_COUNT, _POSITIVE = pa.Check.ge(0), pa.Check.gt(0)

PASS_TIMES = pa.DataFrameSchema(
    {
        "engine": pa.Column(str),
        "model": pa.Column(str),
        "model_sha256": pa.Column(str),
        "machine": pa.Column(str),
        "repeat": pa.Column(int, _COUNT),
        # Which tokens got an output, see `config.block.Outputs`.
        "outputs": pa.Column(str, pa.Check.isin(["all", "last"])),
        "n_tokens": pa.Column(int, _POSITIVE),  # tokens of the pass
        "depth": pa.Column(int, _POSITIVE),  # tokens before it
        "samples": pa.Column(int, _POSITIVE),
        # Medians over the samples: of the last of equal passes in a row, and of the first; null in
        # rows of version 2, in which each pass was a first one.
        "ms": pa.Column(float, _POSITIVE),
        "first_ms": pa.Column(float, _POSITIVE, nullable=True),
        # The standard error of the logarithm of a pass's ms, see `read_timings`.
        "error": pa.Column(float, _COUNT, nullable=True),
        # What the server does beside: sampling an output, and copying a recurrent state before a
        # round and back; null of a model without one.
        **{name: pa.Column(float, _COUNT, nullable=True) for name in BESIDE},
        # Distinct experts of a layer, mean over layers and samples, and of each layer over samples;
        # null of a dense model.
        "experts": pa.Column(float, _POSITIVE, nullable=True),
        "layers": pa.Column(object, nullable=True),
        # Of the last attempt, see `hardware.disturbance`.
        "disturbed_reason": pa.Column(str, nullable=True),
    },
    unique=["engine", "model", "repeat", "outputs", "n_tokens"],
    strict=True,
    coerce=True,
    add_missing_columns=True,  # of version 2
)
_OF_DRAFT = {
    "engine": pa.Column(str),
    "draft": pa.Column(str),
    "draft_sha256": pa.Column(str),
    # The farthest that batches of other sizes moved a lead of this draft model.
    "moved_nats": pa.Column(float, _COUNT),
}
# Of the draft model's likeliest token: whether it is that token, its probability among the ten
# likeliest (which the engine compares with p_min), and its lead over the next one, or over the
# target's where they differ.
_OF_TOKEN = {
    "token": pa.Column(int, _COUNT),
    "agrees": pa.Column(bool),
    "confidence": pa.Column(float, pa.Check.in_range(0, 1)),
    "lead_nats": pa.Column(float, _COUNT),
}
AGREEMENT = pa.DataFrameSchema(
    {
        **_OF_DRAFT,
        "target": pa.Column(str),
        "prompt": pa.Column(str),
        # A number for each scored text; a prompt has two where its target wrote two texts.
        "text": pa.Column(int, _COUNT),
        "position": pa.Column(int, _COUNT),  # of a token of the text, which the next is of
        **_OF_TOKEN,
    },
    unique=["draft", "text", "position"],
    strict=True,
    coerce=True,
)


def table_of(schema: pa.DataFrameSchema, rows: Iterable[Mapping[str, Any]]) -> pd.DataFrame:
    """Return rows as a table of a schema. Raises ValueError for the first error."""
    return validated(schema, pd.DataFrame(list(rows), columns=list(schema.columns)))


def _read(schema: pa.DataFrameSchema, path: Path | None = None) -> pd.DataFrame:
    if path is None:
        return table_of(schema, [])
    with schema_errors(path):
        return validated(schema, read_table(path).to_pandas())


read_pass_times = partial(_read, PASS_TIMES)
read_agreement = partial(_read, AGREEMENT)
"""Return the checked table of a path; without rows if the path is None. Raises SchemaError."""


def rows_of_passes(record: Mapping[str, Any], asked: Request) -> list[dict[str, Any]]:
    """Return the rows of a record of timed passes and its request."""
    whole = {name: asked[name] for name in ("engine", "model", "repeat", "depth")}
    whole |= {"model_sha256": asked["target_sha256"]}
    whole |= {name: record[name] for name in ("machine", "disturbed_reason", "error", *BESIDE)}
    return [whole | timing for timing in record["timings"]]


def read_scores(records: Iterable[Path]) -> pd.DataFrame:
    """Return the table of draft models' scores, from their records. Raises ValueError."""
    rows: list[Any] = []
    for file in filter(Path.exists, records):  # in stages the minutes may end before texts are read
        with named_if_damaged(file):
            record = read_record(file)
            texts = pd.DataFrame(record["texts"]).explode([*_OF_TOKEN])
            texts = texts.assign(text=texts.index, **{name: record[name] for name in _OF_DRAFT})
            rows += texts.assign(position=texts.groupby("text").cumcount()).to_dict("records")
    return table_of(AGREEMENT, rows)


def read_passes(asked: Asked, repeats: Iterable[int]) -> pd.DataFrame:
    """Return the passes that were timed before some repeats. Raises ValueError."""
    rows = []
    for model, repeat in product(asked.campaign.timed_passes, repeats):
        name = f"pass_times/{model}/r{repeat}"
        request, record = measured_as_asked(asked.records, name, asked.passes(model, repeat))
        with named_if_damaged(asked.records.link(name)):
            rows += rows_of_passes(record, request)
    return table_of(PASS_TIMES, rows)


def collect_table(campaign: LoadedCampaign, table: str, out: Path) -> None:
    """Collect records: `runs`, `suites/<suite>`, `pass_times`, `agreement`, `machine`, `models`."""
    records = Inputs(campaign).of_table(table)["records"]
    match table:
        case "machine":
            machine = collect(
                [*map(read_record, records)], shared=campaign.config.campaign.machines == "same"
            )
            replace_text(out, json.dumps(machine, indent=1) + "\n")
        case "models":
            save_info({info.stem: load_info(info) for info in records}, out)
        case "agreement":
            with schema_errors(out):
                read_scores(campaign.scores()).to_parquet(out, index=False)
        case "pass_times":
            with schema_errors(out):
                asked = Asked(campaign)
                read_passes(asked, asked.progress.passes_before).to_parquet(out, index=False)
        case _:
            collect_runs(campaign, None if table == "runs" else table.removeprefix("suites/"), out)


def undisturbed_passes(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the passes that estimates may use: a model's disturbed ones where it has no others."""
    quiet = frame["disturbed_reason"].isna()
    return frame[quiet | ~quiet.groupby(frame["model"]).transform("any")]


def sizes_of(infos: Mapping[str, ModelInfo], passes: pd.DataFrame) -> dict[str, Size]:
    """Return the sizes of models with pass widths and the distinct experts seen in a layer.

    Means over repeats; a dense model has none. Experts do not depend on outputs or engine.
    """
    counted = passes.dropna(subset="experts").groupby(["model", "n_tokens"])["experts"]
    means: Any = counted.mean().reset_index("model").groupby("model")["experts"]
    seen = {model: tuple(widths.items()) for model, widths in means}
    return {model: size_of_info(info, seen.get(model, ())) for model, info in infos.items()}
