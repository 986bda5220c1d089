"""The verdicts on the shipped claims, on the study's Table 5, and what bounds do to true ones."""

import csv
import sys
from dataclasses import replace

import pytest

from specmoe.config.audit import AuditSettings
from specmoe.plan.chips import bandwidth_by_chip
from specmoe.possible.judge import Verdict, judge
from specmoe.possible.power import COLUMNS, FACTORS, read_power
from specmoe.possible.table import COLUMNS as ROW
from specmoe.possible.table import read_claims, row_of, write_rows

TRUE, FALSE, OPEN = Verdict.POSSIBLE, Verdict.IMPOSSIBLE, Verdict.UNDECIDED
# As a person decided them, with what is lacking.
TWENTY = {
    "A mixture gains 26 % with 0.2 % accepted": (FALSE, ""),
    "A dense 9B doubles with 0.4 % accepted": (FALSE, ""),
    "A draft that shares the routing triples the speed": (OPEN, "draft_tokens_per_second"),
    "One MTP token, 85 % accepted, 1.8 times": (OPEN, "draft_tokens_per_second"),
    "A head of 4.5 tokens a round, 3.5 times": (TRUE, ""),
    "MTP makes it slower": (TRUE, ""),
    "A dense 70B in 4 bits at 60 tokens/s without a draft": (FALSE, ""),
    "The same at 18 tokens/s": (TRUE, ""),
    "The same with a draft at 45 tokens/s": (TRUE, ""),
    "A model of 40 GB at 60 tokens/s, nothing said of experts": (OPEN, "experts"),
    "55 to 70 tokens/s is 1.5 times": (FALSE, ""),
    "Three times with a draft only four times as fast as its target": (FALSE, ""),
    "Six tokens a round from drafts of four": (FALSE, ""),
    "Twelve times with drafts of eight": (FALSE, ""),
    "1.5 times with drafts of four, and nothing else": (
        OPEN,
        "acceptance_rate draft_tokens_per_second",
    ),
    "Looking up n-grams quadruples the speed of edits": (TRUE, ""),
    "Looking up n-grams gains 30 % with nothing accepted": (FALSE, ""),
    "A large mixture gains 2.5 times for eight users": (OPEN, "experts_visited"),
    "The same, with 30 experts counted in a pass": (TRUE, ""),
    "A new build decodes a dense 9B 20 % faster, 43 tokens/s": (TRUE, ""),
}
_PRINTED = ("gamma", "tokens_per_second", "speedup", "acceptance_percent")


@pytest.fixture
def shipped(root):
    return root / "resources/possible"


@pytest.fixture
def read(root, shipped):
    chips = bandwidth_by_chip(root / "resources/hardware/memory_bandwidth.yaml")
    return lambda name: list(read_claims(shipped / name, {}, chips))


def rows_of(claims):
    return [row_of(judge(claim, AuditSettings())) for claim in claims]


def test_twenty_claims_have_the_verdicts_that_a_person_gave_them(read):
    found = {row["name"]: (row["verdict"], row["without"]) for row in rows_of(read("twenty.csv"))}
    assert found == TWENTY


def test_the_shipped_verdicts_are_those_of_the_program(read, shipped, tmp_path):
    file = tmp_path / "verdicts.csv"
    for _ in write_rows(file, ROW, rows_of(read("twenty.csv"))):
        pass
    assert file.read_text() == (shipped / "twenty_verdicts.csv").read_text()


def test_every_row_of_the_studys_table_5_is_impossible(read):
    rows = rows_of(read("table5.csv"))
    assert [row["verdict"] for row in rows] == ["impossible"] * 18


def test_without_the_drafts_length_the_small_gains_of_table_5_are_undecided(read):
    rows = rows_of(replace(claim, drafted_per_round=None) for claim in read("table5.csv"))
    for row in rows:
        expected = OPEN if float(row["speedup"]) <= 1 / 0.9 else FALSE
        assert row["verdict"] == expected, row


def test_table_5_is_transcribed_as_in_the_reported_numbers(read, root):
    with (root / "resources/reported/table5.csv").open() as file:
        printed = [tuple(float(row[name]) for name in _PRINTED) for row in csv.DictReader(file)]
    with (root / "resources/reported/table4.csv").open() as file:
        rates = {float(row["tokens_per_second"]) for row in csv.DictReader(file)}
    claims = read("table5.csv")
    typed = [
        (one.gamma, one.claimed_tokens_per_second, one.speedup, round(100 * one.acceptance_rate, 1))
        for one in claims
    ]
    assert typed == printed
    assert {one.baseline_tokens_per_second for one in claims} <= rates


def test_no_bound_refutes_a_true_comparison_and_the_printed_power_is_the_counted(
    shipped, monkeypatch, root
):
    monkeypatch.setattr(sys, "path", [*sys.path, str(root / "tests/benchmarks")])
    import possible_power

    counted = possible_power.count()
    with (shipped / "power.csv").open() as file:
        printed = list(csv.DictReader(file))
    assert [[str(row[name]) for name in COLUMNS] for row in counted] == [
        [row[name] for name in COLUMNS] for row in printed
    ]
    for power in read_power(shipped / "power.csv").values():
        assert power.comparisons > 40
        assert power.marked == 0
        assert list(power.too_fast) == sorted(power.too_fast)
        assert len(power.too_fast) == len(FACTORS)
        assert power.too_fast[-1] > power.comparisons / 2
