"""Whatever stands in a file or an answer, its reader takes it or refuses it by an error of ours.

`SPECMOE_EXAMPLES` says how many examples of each property are tried.
"""

import json
import os
import shutil

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from specmoe.audit.checks import audit_runs, summarise_audit
from specmoe.audit.evidence import gather_evidence
from specmoe.audit.power import count_power
from specmoe.audit.text import describe_audit
from specmoe.config.audit import AuditSettings
from specmoe.config.load import load
from specmoe.config.matrix import list_blocks
from specmoe.engine.answers import COMPLETION, SLOTS, read_answer, read_counters
from specmoe.engine.server_log import count_rejected_replays, read_requests
from specmoe.errors import ConfigError, SpecmoeError
from specmoe.models.card import load_card
from specmoe.models.gguf import read_card
from specmoe.models.synthetic import write_model
from specmoe.plan.inventory import changed_blocks
from specmoe.plan.progress import read_measured
from specmoe.runs.collect import rows_of_record
from specmoe.runs.described import Described
from specmoe.runs.manifest import NAME as MANIFEST
from specmoe.runs.manifest import check_manifest
from specmoe.runs.schema import COLUMNS, INTEGER, REAL, read_runs, write_runs

from ..blocks import compared
from ..made_record import DESCRIBED, DIGESTS, ENGINE, HOST, made_record
from ..recipes import TINY
from ..unit.audit.test_checks import BANDWIDTH, SIZES, campaign
from .damage import EDITS, JUNK, damaged
from .fake_server import SOUND
from .fields import others_of, unlike_fields
from .free_fields import FREE, FREE_COLUMNS

many = settings(
    max_examples=int(os.environ.get("SPECMOE_EXAMPLES", "100")),
    suppress_health_check=list(HealthCheck),
)


def refused_in_one_line(read, expected=SpecmoeError):
    """Call a reader; an error must be one of ours, in one line."""
    try:
        return read()
    except expected as error:
        assert "\n" not in str(error)
        return None


@pytest.fixture(scope="module")
def folder(module_folder):
    return module_folder


@pytest.fixture(scope="module")
def sound_model(folder):
    write_model(folder / "sound.gguf", TINY)
    return folder / "sound.gguf"


@pytest.fixture(scope="module")
def sound_rows(small):
    """The rows of its comparison."""
    rows = rows_of_record(made_record(small.block), small.config.campaign.name)
    write_runs(rows, small.folder / "sound.parquet")
    return small.folder / "sound.parquet"


@pytest.fixture(scope="module")
def sound_card(sound_model):
    return json.dumps(vars(read_card(sound_model)))


@many
@given(data=st.data())
def test_a_configuration_is_loaded_or_refused(_study, root, data):
    config = data.draw(damaged(_study))
    if not isinstance(config, dict):
        return  # snakemake refuses it
    loaded = refused_in_one_line(lambda: load(config, root), ConfigError)
    if loaded and loaded.measurement.repeats <= 5:
        list_blocks(loaded, gpu=False)


def collected(small, record, described=DESCRIBED):
    """Return the rows of a record, as collection believes them; None if it refuses.

    It reads and writes them as a table besides.
    """

    def read():
        rows = small.collected(record, described)
        write_runs(rows.values(), small.folder / "rows.parquet")
        read_runs(small.folder / "rows.parquet")
        return rows

    return refused_in_one_line(read)


@many
@given(data=st.data())
def test_a_damaged_record_is_refused_or_changes_no_number_but_measured_ones(small, data):
    sound = made_record(small.block)
    other = data.draw(damaged(sound))
    rows = collected(small, other)
    if rows is not None and rows != collected(small, sound):
        assert FREE.keys() & set(unlike_fields(sound, other))


@many
@given(data=st.data())
def test_a_damaged_row_is_refused_or_changes_no_number_but_measured_ones(small, sound_rows, data):
    table = pq.read_table(sound_rows)
    rows = table.to_pylist()
    names = data.draw(st.lists(st.sampled_from(table.column_names), min_size=1, max_size=3))
    for name in names:
        row = data.draw(st.sampled_from(rows))
        row[name] = data.draw(st.sampled_from([None, *others_of(row[name])]) | JUNK)
    try:
        changed = table.from_pylist(rows, schema=table.schema)
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        return  # no table holds it
    file = small.folder / "changed.parquet"
    pq.write_table(changed, file)
    believed = refused_in_one_line(lambda: small.packed(file)) is not None
    if believed and not changed.equals(table):
        assert FREE_COLUMNS.keys() & set(names)


@many
@given(data=st.data())
def test_damaged_descriptions_of_a_campaign_are_refused_or_say_the_same(small, folder, data):
    sound = [[ENGINE], {name: {"sha256": digest} for name, digest in DIGESTS.items()}, {"id": HOST}]
    place = data.draw(st.integers(0, 2))
    files = [folder / "engines.json", folder / "models.json", folder / "host.json"]
    for at, (file, content) in enumerate(zip(files, sound, strict=True)):
        file.write_text(json.dumps(data.draw(damaged(content)) if at == place else content))
    read = refused_in_one_line(lambda: Described.read([files[0]], [files[1]], files[2]))
    if read and collected(small, made_record(small.block), read):
        assert HOST in read.hosts
        assert {name: read.digests[name] for name in DIGESTS} == DIGESTS
        assert ENGINE["id"] in read.engines


@pytest.fixture(scope="module")
def packed(folder, root):
    """A copy of a shipped campaign."""
    return shutil.copytree(root / "resources/campaigns/true-shape-mtp", folder / "packed")


@many
@given(data=st.data())
def test_a_packed_campaign_is_read_as_it_was_packed_or_refused(packed, data):
    files = sorted(file for file in packed.rglob("*") if file.is_file())
    file = data.draw(st.sampled_from(files))
    sound = file.read_bytes()
    edited = data.draw(EDITS).of(sound)
    file.write_bytes(edited)
    try:
        if data.draw(st.integers(0, 9)) == 0:
            file.unlink()
        whole = refused_in_one_line(lambda: check_manifest(packed) or True)
        same = file.exists() and edited == sound
        # A manifest may have other white space.
        assert whole == (same or None) or file.name == MANIFEST
    finally:
        file.write_bytes(sound)


@many
@given(data=st.data())
def test_a_record_tells_the_plan_or_is_refused(folder, data):
    block = compared()
    sound = {"block": json.loads(block.to_json()), "elapsed_s": 5.0}
    file = folder / f"{block.block}.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(data.draw(damaged(sound))))
    refused_in_one_line(lambda: changed_blocks([block], read_measured([block.block], folder)))


@many
@given(edits=EDITS)
def test_a_table_of_runs_is_read_or_refused(folder, sound_rows, edits):
    file = folder / "runs.parquet"
    file.write_bytes(edits.of(sound_rows.read_bytes()))
    refused_in_one_line(lambda: read_runs(file))


# Values that the schema lets through and that nothing measures.
ODD = {
    INTEGER: st.one_of(st.none(), st.integers(0, 3), st.just(2**62)),
    REAL: st.one_of(st.none(), st.floats(0, allow_nan=False), st.just(5e-324)),
}
ODD_COLUMNS = [name for name, column in COLUMNS.items() if column.type in ODD]


def _let_through(column, value):
    if value is None:
        return column.nullable
    return value > 0 or all(check.name != "greater_than" for check in column.checks)


# An example takes a quarter of a second in place of milliseconds.
@settings(many, max_examples=int(os.environ.get("SPECMOE_EXAMPLES", "20")))
@given(data=st.data())
def test_rows_of_the_schema_are_audited(data):
    runs = campaign()
    sound = runs.assign(**dict.fromkeys(set(COLUMNS) - set(runs)))
    changed = sound.astype(object).where(sound.notna(), None).to_dict("records")
    for _ in range(data.draw(st.integers(1, 4))):
        name = data.draw(st.sampled_from(ODD_COLUMNS))
        value = data.draw(ODD[COLUMNS[name].type])
        if _let_through(COLUMNS[name], value):
            changed[data.draw(st.integers(0, 6))][name] = value
    evidence = gather_evidence(pd.DataFrame(changed), SIZES, BANDWIDTH, AuditSettings())
    audit = audit_runs(evidence)
    summarise_audit(audit)
    assert describe_audit(audit, pd.DataFrame(changed), count_power(evidence))


@many
@given(edits=EDITS, most_at=st.sampled_from([64, 1024, 8192]))
def test_a_model_is_read_or_refused(folder, sound_model, edits, most_at):
    file = folder / "model.gguf"
    file.write_bytes(edits.of(sound_model.read_bytes(), most_at))
    refused_in_one_line(lambda: read_card(file))


@many
@given(data=st.data())
def test_a_card_is_read_or_refused(folder, sound_card, data):
    sound = json.loads(sound_card)
    (folder / "card.json").write_text(json.dumps(data.draw(damaged(sound))))
    refused_in_one_line(lambda: load_card(folder / "card.json"))


@many
@given(data=st.data())
def test_an_answer_is_read_or_refused(data):
    for path, kind in (("/completion", COMPLETION), ("/slots", SLOTS)):
        answer = json.dumps(data.draw(damaged(json.loads(SOUND[path])))).encode()
        for body in (answer, data.draw(EDITS).of(answer)):
            refused_in_one_line(lambda body=body, kind=kind: read_answer(body, kind), ValueError)


METRICS = """# HELP llamacpp:n_decode_total calls
# TYPE llamacpp:n_decode_total counter
llamacpp:n_decode_total 4
llamacpp:spec_decode_num_accepted_tokens_per_pos_total{position="0"} 3
"""


@many
@given(edits=EDITS)
def test_counters_are_read_or_refused(edits):
    text = edits.of(METRICS.encode()).decode(errors="replace")
    refused_in_one_line(lambda: read_counters(text), ValueError)


LOG = "".join(
    f"0.00.123.456 I slot   operator(): id  0 | task {task} | accepted {counts} draft tokens{end}\n"
    for task, counts, end in (
        (0, " 2/ 4", " (restore checkpoint)"),
        (0, " 3/ 3", ""),
        (1, " 0/ 2", ""),
    )
)


@many
@given(edits=EDITS)
def test_any_log_of_a_server_is_read(edits):
    for request in read_requests(edits.of(LOG.encode()).decode(errors="replace")):
        count_rejected_replays(request.verifications)


def test_the_sound_ones_are_taken(small, sound_rows, sound_model):
    assert len(collected(small, made_record(small.block))) == 4
    assert len(read_runs(sound_rows)) == 4
    assert read_card(sound_model).architecture == "qwen35"
