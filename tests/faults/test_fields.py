"""Whatever is done to a field of a record or of a packed row, it is refused, or no row changes.

Fields of what was measured are free: they say nothing of what was asked for.
"""

import json
from contextlib import suppress

import pyarrow as pa
import pyarrow.parquet as pq

from specmoe.errors import SpecmoeError
from specmoe.runs.schema import write_runs

from ..made_record import made_record
from .conftest import BLOCK
from .fields import deeds, fields_of, name_of, others_of
from .free_fields import FREE, FREE_COLUMNS


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


def test_a_field_of_a_record_is_refused_or_changes_no_row_or_is_free(small, record_property):
    sound = made_record(small.block)
    rows, found = small.collected(sound), {}
    for path in fields_of(sound):
        ended = ends(small.collected, rows, deeds(sound, path))
        found.setdefault(name_of(path), set()).update(ended)
    assert count(record_property, found, "a record") == FREE.keys()


def test_a_record_is_made_as_it_is_measured(small, finished):
    """So the fields above are those of a real record, but for what others say besides."""
    measured = json.loads((finished / f"results/tiny/blocks/{BLOCK}.json").read_text())
    made = made_record(small.block)
    said = ("runs[].answer", "runs[].metrics", "sides[].environment.")
    names = [
        {name_of(path) for path in fields_of(one) if not name_of(path).startswith(said)}
        for one in (made, measured)
    ]
    assert names[0] == names[1]


def test_a_column_of_a_packed_row_is_refused_or_is_free(small, record_property):
    file = small.folder / "runs.parquet"
    write_runs(small.collected(made_record(small.block)).values(), file)
    table = pq.read_table(file)
    last = table.to_pylist()[-1]

    def read(other):
        pq.write_table(other, file)
        return small.packed(file).astype(str).to_dict("records")

    def with_values(name):
        for value in [None, *others_of(last[name])]:
            with suppress(pa.ArrowException, TypeError):  # a table cannot hold it
                rows = [*table.to_pylist()[:-1], last | {name: value}]
                yield pa.Table.from_pylist(rows, schema=table.schema)

    sound = read(table)
    found = {name: ends(read, sound, with_values(name)) for name in table.column_names}
    assert count(record_property, found, "a packed row") == FREE_COLUMNS.keys()
