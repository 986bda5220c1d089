"""Whatever is done to a field of a record or of a packed row, it is refused, or no row changes.

Fields of what was measured are free: they say nothing of what was asked for.
"""

import json
from contextlib import suppress
from copy import deepcopy

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from specmoe.errors import SpecmoeError
from specmoe.runs.collect import collect_records
from specmoe.runs.expected import refuse_other_runs
from specmoe.runs.schema import read_runs, write_runs

from ..made_record import DESCRIBED, made_record, small_blocks, small_config
from .fields import deeds, fields_of, name_of, others_of
from .free_fields import FREE, FREE_COLUMNS

BLOCK = "S/target/draft/r0"


@pytest.fixture(scope="module")
def campaign(_study):
    config = small_config(deepcopy(_study))
    return config, small_blocks(config)[BLOCK]


@pytest.fixture(scope="module")
def collect(campaign, module_folder):
    """Return the rows of a record by their runs, as far as it is believed."""
    config, block = campaign

    def rows(record):
        file = module_folder / "r0.json"
        file.write_text(json.dumps(record))
        collected, _ = collect_records({file: block}, config.campaign.name, {})
        refuse_other_runs(collected, config, DESCRIBED, [block], "measure again")
        return {row["run"]: row for row in collected}

    return rows


def ends(read, sound, others):
    """Return how reading each of others ends: `refused`, `no row changes`, `believed`."""
    found = set()
    for other in others:
        try:
            found.add("no row changes" if read(other) == sound else "believed")
        except SpecmoeError as error:
            assert "\n" not in str(error)
            found.add("refused")
    return found


def count(record_property, found, what):
    """Say how many fields end how; return those that are believed."""
    believed = {name for name, its in found.items() if "believed" in its}
    unread = {name for name, its in found.items() if its == {"no row changes"}}
    refused = len(found) - len(believed) - len(unread)
    line = f"{len(found)} fields of {what}: {refused} refused, {len(unread)} that no row depends on"
    line += f", {len(believed)} free"
    print(line)
    record_property("fields", line)
    return believed


def test_a_field_of_a_record_is_refused_or_changes_no_row_or_is_free(
    campaign, collect, record_property
):
    sound = made_record(campaign[1])
    rows, found = collect(sound), {}
    for path in fields_of(sound):
        found.setdefault(name_of(path), set()).update(ends(collect, rows, deeds(sound, path)))
    assert count(record_property, found, "a record") == FREE.keys()


def test_a_record_is_made_as_it_is_measured(campaign, finished):
    """So the fields above are those of a real record, but for what others say besides."""
    measured = json.loads((finished / f"results/tiny/blocks/{BLOCK}.json").read_text())
    made = made_record(campaign[1])
    said = ("runs[].answer", "runs[].metrics", "sides[].environment.")
    names = [
        {name_of(path) for path in fields_of(one) if not name_of(path).startswith(said)}
        for one in (made, measured)
    ]
    assert names[0] == names[1]


def test_a_column_of_a_packed_row_is_refused_or_is_free(
    campaign, collect, module_folder, record_property
):
    config, block = campaign
    file = module_folder / "runs.parquet"
    write_runs(collect(made_record(block)).values(), file)
    table = pq.read_table(file)
    last = table.to_pylist()[-1]

    def read(other):
        pq.write_table(other, file)
        frame = read_runs(file)
        refuse_other_runs(frame.to_dict("records"), config, DESCRIBED, [block], "get it again")
        return frame.astype(str).to_dict("records")

    def with_values(name):
        for value in [None, *others_of(last[name])]:
            with suppress(pa.ArrowException, TypeError):  # a table cannot hold it
                rows = [*table.to_pylist()[:-1], last | {name: value}]
                yield pa.Table.from_pylist(rows, schema=table.schema)

    sound = read(table)
    found = {name: ends(read, sound, with_values(name)) for name in table.column_names}
    assert count(record_property, found, "a packed row") == FREE_COLUMNS.keys()
