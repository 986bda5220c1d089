"""Whatever stands in a file or an answer, its reader takes it or refuses it by an error of ours.

`SPECMOE_EXAMPLES` says how many examples of each property are tried.
"""

import json
import os

import pandas as pd
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
from specmoe.engine.debug_log import read_rounds
from specmoe.engine.server_log import count_rejected_replays, read_requests
from specmoe.errors import ConfigError, SpecmoeError
from specmoe.models.card import load_card
from specmoe.models.gguf import read_card
from specmoe.models.synthetic import write_model
from specmoe.plan.inventory import changed_blocks
from specmoe.plan.progress import read_measured
from specmoe.runs.collect import collect_records, rows_of_record
from specmoe.runs.expected import refuse_other_runs
from specmoe.runs.schema import COLUMNS, INTEGER, REAL, read_runs, write_runs

from ..blocks import compared
from ..recipes import TINY
from ..unit.audit.test_checks import BANDWIDTH, SIZES, campaign
from ..unit.decoding_log import every_kind
from ..unit.runs.test_collect import record
from .damage import EDITS, damaged
from .fake_server import SOUND

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
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("anything")


@pytest.fixture(scope="module")
def sound_model(folder):
    write_model(folder / "sound.gguf", TINY)
    return folder / "sound.gguf"


@pytest.fixture(scope="module")
def sound_rows(folder):
    write_runs(rows_of_record(record(), "c"), folder / "sound.parquet")
    return folder / "sound.parquet"


@pytest.fixture(scope="module")
def sound_card(sound_model):
    return json.dumps(vars(read_card(sound_model)))


@pytest.fixture(scope="module")
def loaded(_study, root):
    return load(_study, root)


@many
@given(data=st.data())
def test_a_configuration_is_loaded_or_refused(_study, root, data):
    config = data.draw(damaged(_study))
    if not isinstance(config, dict):
        return  # snakemake refuses it
    loaded = refused_in_one_line(lambda: load(config, root), ConfigError)
    if loaded and loaded.measurement.repeats <= 5:
        list_blocks(loaded, gpu=False)


@many
@given(data=st.data())
def test_a_record_gives_rows_or_is_refused(loaded, folder, data):
    file = folder / "r0.json"
    file.write_text(json.dumps(data.draw(damaged(record()))))
    collected = refused_in_one_line(lambda: collect_records([file], "c", {}))
    if collected:
        rows, _ = collected
        refused_in_one_line(lambda: refuse_other_runs(rows, loaded, ["B"], "get it again"))
        write_runs(rows, folder / "rows.parquet")
        read_runs(folder / "rows.parquet")


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


@many
@given(edits=EDITS)
def test_a_servers_log_is_read_or_refused(edits):
    decoding = every_kind()
    log = edits.of(decoding.text.encode()).decode(errors="replace")
    for request in read_requests(log):
        count_rejected_replays(request.verifications)
    refused_in_one_line(lambda: read_rounds(log, decoding.tokens))


def test_the_sound_ones_are_taken(folder, sound_rows, sound_model):
    (folder / "sound.json").write_text(json.dumps(record()))
    rows, table = collect_records([folder / "sound.json"], "c", {})
    assert len(rows) == table.num_rows == 2
    assert len(read_runs(sound_rows)) == 2
    assert read_card(sound_model).architecture == "qwen35"
