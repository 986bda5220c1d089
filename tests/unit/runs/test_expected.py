"""A campaign's rows are the runs and passes of its configuration, all and no others."""

from copy import deepcopy
from dataclasses import replace
from datetime import UTC, datetime

import pandas as pd
import pytest

from specmoe.config.load import load
from specmoe.config.matrix import list_blocks, list_timed_passes
from specmoe.config.schema import Config
from specmoe.errors import MeasurementError
from specmoe.runs.collect import rows_of_record
from specmoe.runs.described import Described
from specmoe.runs.expected import refuse_other_passes, refuse_other_runs

from ...conftest import ROOT
from ...made_record import DESCRIBED, ENGINE, HOST, made_record, small_blocks, small_config

NEVER = datetime(9999, 1, 1, tzinfo=UTC)


@pytest.fixture(scope="module")
def config(_study):
    return small_config(deepcopy(_study))


@pytest.fixture
def rows(config):
    """All rows of the campaign."""
    records = map(made_record, small_blocks(config).values())
    return [row for record in records for row in rows_of_record(record, "tiny")]


def check(rows, config, described=DESCRIBED):
    refuse_other_runs(rows, config, described, small_blocks(config).values(), "measure again")


def with_first_draft(rows, **changed):
    """Change the first row with a draft."""
    at = next(number for number, row in enumerate(rows) if row["draft"] != "none")
    return [*rows[:at], rows[at] | changed, *rows[at + 1 :]]


def test_all_runs_of_the_configuration_are_taken(rows, config):
    check(rows, config)


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        (lambda rows: rows[1:], r"campaign tiny has 1 run missing \("),
        (lambda rows: [], "campaign tiny has .* missing"),
        (lambda rows: [*rows, rows[0]], "1 run there more than once"),
        (lambda rows: [*rows, rows[0] | {"run": "Z/other"}], r"not of its configuration \(Z/other"),
        (lambda rows: with_first_draft(rows, n_predict=9), "n_predict is 9, not 16"),
        (lambda rows: with_first_draft(rows, temperature=float("nan")), "temperature is None"),
        (lambda rows: with_first_draft(rows, decode_ms=None), "1 run without a time or its rate"),
        (lambda rows: with_first_draft(rows, decode_ms=float("inf")), "without a time or its rate"),
        (lambda rows: with_first_draft(rows, decode_ms=9.0), "without a time or its rate"),
        (lambda rows: with_first_draft(rows, baseline="nowhere"), "baseline is nowhere, not S/"),
        (lambda rows: with_first_draft(rows, common_prefix=3), "common_prefix is 3, not 16"),
        (lambda rows: with_first_draft(rows, seed=1), "seed is 1, not 42"),
        (lambda rows: with_first_draft(rows, host="0" * 12), f"host is 0{{12}}, not {HOST}"),
        (lambda rows: with_first_draft(rows, engine="e"), f"engine is e, not {ENGINE['id']}"),
        (lambda rows: with_first_draft(rows, target_sha256=None), "target_sha256 is None, not a+"),
        (lambda rows: with_first_draft(rows, draft_sha256="c" * 64), "draft_sha256 is c+, not b+"),
        (lambda rows: with_first_draft(rows, prompt_sha256=None), "run without the digest of a"),
        (lambda rows: with_first_draft(rows, prompt_sha256="c" * 64), "prompt_sha256 is c+, not"),
        (lambda rows: [row | {"n_prompt": 31} for row in rows], "n_prompt is 31, not 32"),
        (lambda rows: with_first_draft(rows, started_at=NEVER), "1 run of a time when .*9999-"),
    ],
)
def test_other_rows_are_refused_by_name(rows, config, change, fault):
    with pytest.raises(MeasurementError, match=rf"{fault}.*; measure again"):
        check(change(rows), config)


def test_a_machine_that_shares_a_campaign_is_one_of_those_described(rows, config):
    """As with `hosts: same`."""
    described = replace(DESCRIBED, hosts=frozenset({HOST, "a" * 12}))
    check(with_first_draft(rows, host="a" * 12), config, described)
    with pytest.raises(MeasurementError, match=f"host is 0{{12}}, not {HOST} or a{{12}}"):
        check(with_first_draft(rows, host="0" * 12), config, described)


def test_rows_of_before_have_no_digest_of_a_prompt(rows, config):
    check([row | {"prompt_sha256": None} for row in rows], config)


def test_a_prompt_of_another_length_in_one_repeat_is_named(rows, config):
    """As when a text is edited while it is measured."""
    of_text = next(row["run"] for row in rows[::-1] if row["prompt"] == "code")
    edited = [row | ({"n_prompt": 44} if row["run"] == of_text else {}) for row in rows]
    with pytest.raises(MeasurementError, match=r"of another prompt .*n_prompt is 44, not 14"):
        check(edited, config)


def test_a_model_without_a_card_is_one_file_at_least(rows, config, monkeypatch):
    """As a table of n-grams, of which a packed campaign has no card."""
    described = replace(DESCRIBED, digests={"target": DESCRIBED.digests["target"]})
    with pytest.raises(MeasurementError, match=r"has 1 model without a card \(draft\); measure"):
        check(rows, config, described)
    monkeypatch.setattr(Config, "measured_networks", ["target"])
    check(rows, config, described)
    at = next(number for number, row in enumerate(rows) if row["draft_model"])
    rows[at] |= {"draft_sha256": "c" * 64}
    with pytest.raises(MeasurementError, match=r"another prompt or draft .*draft_sha256 is "):
        check(rows, config, described)


@pytest.fixture
def timed(synthetic):
    """A campaign whose passes are timed, their table, and what describes its files."""
    synthetic["campaign"]["suites"] = ["B"]
    config = load(synthetic, ROOT)
    engine = {"id": "current-cpu-01234567", "commit": "0123", "backend": "cpu"}
    digests = dict.fromkeys(config.measured_models, "a" * 64)
    blocks = list_blocks(config, gpu=False)
    rows = [
        {"engine": engine["id"], "model": one.model, "model_sha256": "a" * 64, "host": HOST}
        | {"repeat": repeat, "outputs": str(outputs), "width": width}
        | {"depth": one.depth, "samples": one.samples, "ms": 2.5}
        for one in list_timed_passes(config, blocks)
        for repeat in range(config.measurement.repeats)
        for outputs in one.outputs
        for width in one.widths
    ]
    return config, pd.DataFrame(rows), Described({engine["id"]: engine}, digests, DESCRIBED.hosts)


@pytest.mark.parametrize(
    ("column", "value", "fault"),
    [
        ("ms", 3.0, None),
        ("engine", "e", "engine is e, not current-cpu-01234567"),
        ("model_sha256", "b" * 64, "model_sha256 is b+, not a+"),
        ("host", "0" * 12, f"host is 0+, not {HOST}"),
        ("samples", 99, "samples is 99, not"),
        ("width", 99, r"has 1 timed pass missing \("),
    ],
)
def test_timed_passes_of_another_configuration_are_refused(timed, column, value, fault):
    config, frame, described = timed
    frame.loc[0, column] = value
    if fault is None:
        refuse_other_passes(frame, config, described, "time them again")
    else:
        with pytest.raises(MeasurementError, match=f"{fault}.*; time them again"):
            refuse_other_passes(frame, config, described, "time them again")
    with pytest.raises(MeasurementError, match="timed passes missing"):
        refuse_other_passes(frame.head(0), config, described, "time them again")
