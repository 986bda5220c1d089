"""A campaign's rows are the runs of its configuration, all and no others."""

import pytest

from specmoe.config.load import load
from specmoe.config.matrix import list_blocks
from specmoe.errors import MeasurementError
from specmoe.runs.expected import expected_rows, refuse_other_runs

from ...conftest import ROOT


@pytest.fixture
def config(synthetic):
    synthetic["campaign"]["suites"] = ["B"]
    return load(synthetic, ROOT)


@pytest.fixture
def rows(config):
    """All rows of the campaign, as far as they are looked at here."""
    blocks = list_blocks(config, gpu=False)
    listed = [
        {"run": run, "backend": "cpu", "target_sha256": "a" * 64, "draft_sha256": None}
        | {"generated": row["n_predict"]}
        | dict.fromkeys(["prompt_ms", "decode_ms", "tokens_per_second"], 9.0)
        | row
        for run, row in expected_rows(blocks).items()
    ]
    alone = {(row["block"], row["prompt"]): row["run"] for row in listed if row["draft"] == "none"}
    return [
        row | {"baseline": None if row["draft"] == "none" else alone[row["block"], row["prompt"]]}
        for row in listed
    ]


def check(rows, config):
    refuse_other_runs(rows, config, ["B"], "measure again")


def with_first_draft(rows, **changed):
    """Change the first row with a draft."""
    at = next(number for number, row in enumerate(rows) if row["draft"] != "none")
    return [*rows[:at], rows[at] | changed, *rows[at + 1 :]]


def test_all_runs_of_the_configuration_are_taken(rows, config):
    check(rows, config)


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        (lambda rows: rows[1:], r"campaign synthetic has 1 run missing \(B/"),
        (lambda rows: [], "campaign synthetic has .* missing"),
        (lambda rows: [*rows, rows[0]], "1 run there more than once"),
        (lambda rows: [*rows, rows[0] | {"run": "Z/other"}], r"not of its configuration \(Z/other"),
        (lambda rows: with_first_draft(rows, n_predict=9), "n_predict is 9, not 64"),
        (lambda rows: with_first_draft(rows, prompt="chinese"), "prompt is chinese, not"),
        (lambda rows: with_first_draft(rows, suite="D"), "suite is D, not B"),
        (lambda rows: with_first_draft(rows, temperature=float("nan")), "temperature is None"),
        (lambda rows: with_first_draft(rows, decode_ms=None), "1 run without a time or rate"),
        (lambda rows: with_first_draft(rows, decode_ms=float("inf")), "without a time or rate"),
        (lambda rows: with_first_draft(rows, baseline="nowhere"), "with a baseline of another"),
        (lambda rows: with_first_draft(rows, baseline=rows[-1]["run"]), "with a baseline of anoth"),
        (
            lambda rows: with_first_draft(rows, target_sha256="b" * 64),
            r"model \w+ is 2 different files .*a{12} in B/.*b{12} in B/",
        ),
    ],
)
def test_other_rows_are_refused_by_name(rows, config, change, fault):
    with pytest.raises(MeasurementError, match=rf"{fault}.*; measure again"):
        check(change(rows), config)
