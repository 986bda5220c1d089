"""The study's printed numbers and its own rows; each difference has its reason.

The project's page repeats the tables; neither it nor the paper prints numbers by prompt, so the
tests compare no means over the three repeats of a prompt.
"""

import pandas as pd
import pytest

from specmoe.config.matrix import STUDY_PASSAGE
from specmoe.study.printed_numbers import compare, read_reported

from ..published_study import CSV, ROOT, needs_csv

REPORTED = ROOT / "resources/reported"

# The 20 and 39 GB of the MoE and 18 of the dense 9B take longer to read than the shortest it says.
SHORTEST = "milliseconds to read a file of the MoE or the 9B, lowest"

# Settings of Table 4 that repeat the models' names instead of counting parameters. The counts are
# those of resources/families.yaml.
NOMINAL_SIZES = {
    "active_billions dense_2b",
    "active_billions moe_q4",
    "active_billions moe_q8",
    "active_billions dense_4b",
    "active_billions dense_9b",  # its input embedding is a matrix of its own, and is not multiplied
    "total_billions dense_2b",
    "total_billions dense_4b",
}

# Claims that the study's own rows do not give.
OTHER = {
    # The range leaves out the 2B draft and γ = 4: 1.03 with the 2B draft at γ = 4.
    "speedup of MoE, lowest": 1.03,
    # All drafted tokens were accepted in suite F; elsewhere the highest setting is 3.99 %.
    "acceptance_percent in any suite, highest": 100,
    # Dense 4B falls from γ = 4 to γ = 8: 1.05, 0.98, 1.12, as Table 5 prints itself.
    "speedup curves that rise with gamma": 5,
    # Printed from 0.0181 s, which was rounded before.
    "gigabytes a second moe_q4": 1139,
    # 256 tokens over γ; the recovered counters give one round for nearly every token.
    "rounds a run moe_q4 draft_0.8b 16": 247,
    # From the 16 rounds above.
    "milliseconds a round moe_q4 draft_0.8b 16": 15,
    SHORTEST: 22,
}
ROUNDED = {"gigabytes a second moe_q4"}


@pytest.fixture(scope="module")
def reported():
    return read_reported(REPORTED)


@pytest.fixture(scope="module")
def compared(reported, published_analysis):
    return compare(reported, published_analysis)


def test_every_printed_number_is_transcribed_as_printed(reported):
    assert reported["source"].value_counts()[
        ["Table 3", "Table 4", "Table 5", "Table 6"]
    ].to_dict() == {"Table 3": 6, "Table 4": 6 * 4, "Table 5": 18 * 3, "Table 6": 6 * 2 * 3}
    [zero] = reported.query("what == 'tokens_per_second_sd dense_9b'")["printed"]
    assert zero == "0.0"


def test_the_runs_of_table_3_add_up_to_its_total(reported):
    runs = reported[reported["source"] == "Table 3"].set_index("what")["printed"].astype(int)
    assert runs.drop("runs total").sum() == runs["runs total"] == 306


@needs_csv
def test_what_the_rows_do_not_give_is_what_is_named_here(compared):
    assert compared["recomputed"].notna().all()
    different = compared[~compared["equal"]]
    in_table = different["source"].str.startswith("Table ")
    assert set(different.loc[in_table, "what"]) == NOMINAL_SIZES
    assert set(different.loc[in_table, "source"]) == {"Table 4"}
    claims = different[~in_table].set_index("what")["recomputed"]
    assert set(claims.index) == set(OTHER)
    for what, value in OTHER.items():
        digits = len(str(value).partition(".")[2])
        assert f"{claims[what]:.{digits}f}" == str(value)


@needs_csv
def test_numbers_that_differ_by_rounding_or_definition_alone_say_so(compared):
    different = compared[~compared["equal"]]
    explained = different.loc[different["because"] != "", "what"]
    assert set(explained) == NOMINAL_SIZES | ROUNDED
    kinds = different["because"].str.partition(":")[0]
    assert kinds.value_counts()[["definition", "rounding"]].tolist() == [7, 1]


@needs_csv
def test_the_prompts_of_suite_f_are_as_the_paper_says():
    rows = pd.read_csv(CSV)
    swept = rows[rows["job_id"].str.startswith("F_")]
    words = len((ROOT / STUDY_PASSAGE).read_text().split())
    assert words == 156
    assert {256, 512, 1024} == {length for length in swept["n_prompt"] if length > words}
