"""Whatever stands in a file of a user's, its reader takes it or refuses it by an error of ours.

`SPECMOE_EXAMPLES` says how many examples of each property are tried.
"""

import os
import shutil

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
from specmoe.errors import ConfigError, SpecmoeError
from specmoe.models.gguf import read_card
from specmoe.models.synthetic import write_model
from specmoe.runs.manifest import NAME as MANIFEST
from specmoe.runs.manifest import check_manifest
from specmoe.runs.schema import COLUMNS

from ..recipes import TINY
from ..unit.audit.test_checks import BANDWIDTH, SIZES, campaign
from .damage import EDITS, damaged

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


@many
@given(data=st.data())
def test_a_configuration_is_loaded_or_refused(_study, root, data):
    config = data.draw(damaged(_study))
    if not isinstance(config, dict):
        return  # snakemake refuses it
    try:
        loaded = load(config, root)
    except ConfigError as error:
        assert all(line.startswith("config: ") for line in str(error).splitlines())
        return
    if loaded and loaded.measurement.repeats <= 5:
        list_blocks(loaded, gpu=False)


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


# Values that the schema lets through and that nothing measures.
ODD = {
    "int64[pyarrow]": st.one_of(st.none(), st.integers(0, 3), st.just(2**62)),
    "double[pyarrow]": st.one_of(st.none(), st.floats(0, allow_nan=False), st.just(5e-324)),
}
ODD_COLUMNS = [name for name, column in COLUMNS.items() if str(column.dtype) in ODD]


def _let_through(column, value):
    if value is None:
        return column.nullable
    names = {check.name for check in column.checks}
    return (value > 0 or "greater_than" not in names) and (value < 1e9 or "less_than" not in names)


# An example takes a quarter of a second in place of milliseconds.
@settings(many, max_examples=int(os.environ.get("SPECMOE_EXAMPLES", "20")))
@given(data=st.data())
def test_rows_of_the_schema_are_audited(data):
    runs = campaign()
    changed = runs.astype(object).where(runs.notna(), None).to_dict("records")
    for _ in range(data.draw(st.integers(1, 4))):
        name = data.draw(st.sampled_from(ODD_COLUMNS))
        value = data.draw(ODD[str(COLUMNS[name].dtype)])
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


def test_the_sound_model_is_taken(sound_model):
    assert read_card(sound_model).architecture == "qwen35"
