"""A table is checked, labelled and put in order once, and its file has it so."""

from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

from specmoe.analysis import registry
from specmoe.analysis.registry import TABLES, Analysis
from specmoe.errors import SchemaError
from specmoe.yaml_files import read_yaml

from ..paper_analyses import full, named, several_methods, single

LABELS = read_yaml(Path(registry.__file__).with_name("tables.yaml"))["labels"]


def test_a_file_has_labels_and_ranks_and_is_read_as_it_was_written(tmp_path):
    analysis = several_methods()
    analysis.write(tmp_path)
    read = Analysis.read(tmp_path)
    written = pd.read_parquet(tmp_path / "settings.parquet")
    assert {*TABLES["settings"].columns, *LABELS["joined"]} <= {*written}
    for name, table in TABLES.items():
        assert getattr(read, name).shape == getattr(analysis, name).shape
        if table.label and table.label is not registry.joined:  # which adds what it can
            assert {*LABELS[table.label.__name__]} <= {*getattr(read, name)}
    pd.testing.assert_frame_equal(read.settings, written)


@pytest.mark.parametrize(
    ("column", "value", "message"),
    [
        ("cumulative", None, "no column 'cumulative'"),
        ("cumulative", "0.5", "'0.5' in column 'cumulative', which is a number"),
        ("tried", 2.5, "2.5 in column 'tried', which is a count"),
    ],
)
def test_a_table_that_lacks_a_column_or_has_another_type_is_refused(column, value, message):
    whole = several_methods().positions
    rows = whole.drop(columns=column) if value is None else whole.assign(**{column: value})
    message = f"table 'positions' of campaign 'older' has {message}; render that"
    with pytest.raises(SchemaError, match=message):
        _ = named(replace(several_methods(), positions=rows), "older").positions


def test_a_campaign_that_an_older_release_rendered_is_refused(tmp_path):
    single().write(tmp_path)
    (tmp_path / "compared_settings.parquet").unlink()
    with pytest.raises(SchemaError, match=r"compared_settings.parquet is not there; render that"):
        Analysis.read(tmp_path)


def test_a_column_that_a_reader_adds_is_its_own():
    analysis = full()
    settings = analysis.settings
    settings["mine"] = 1
    assert "mine" not in analysis.settings
    with pytest.raises(AttributeError):
        _ = analysis.setting


@pytest.mark.parametrize("name", TABLES)
def test_to_label_a_table_again_changes_nothing(name):
    once = getattr(several_methods(), name)
    again = getattr(replace(several_methods(), **{name: once}), name)
    pd.testing.assert_frame_equal(again[list(once.columns)], once)
