"""The study's printed numbers, as they are printed; the goldens have what its rows give instead."""

import pandas as pd

from specmoe.config.matrix import STUDY_PASSAGE
from specmoe.study.printed_numbers import read_reported

from ..published_study import CSV, ROOT, needs_csv


def test_every_printed_number_is_transcribed_as_printed():
    reported = read_reported(ROOT / "resources/reported")
    expected = {"Table 3": 6, "Table 4": 6 * 4, "Table 5": 18 * 3, "Table 6": 6 * 2 * 3}
    assert reported["source"].value_counts()[[*expected]].to_dict() == expected
    [zero] = reported.query("what == 'tokens_per_second_sd dense_9b'")["printed"]
    assert zero == "0.0"
    runs = reported[reported["source"] == "Table 3"].set_index("what")["printed"].astype(int)
    assert runs.drop("runs total").sum() == runs["runs total"] == 306


@needs_csv
def test_the_prompts_of_suite_f_are_as_the_paper_says():
    rows = pd.read_csv(CSV)
    swept = rows[rows["job_id"].str.startswith("F_")]
    words = len((ROOT / STUDY_PASSAGE).read_text().split())
    assert words == 156
    assert {256, 512, 1024} == {length for length in swept["n_prompt"] if length > words}
