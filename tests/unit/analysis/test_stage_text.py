"""The text after a repeat: a line for each setting, and what is measured next."""

import pandas as pd

from specmoe.analysis.stage_text import describe_stage

SETTING = {"suite": "S", "target": "t", "target_label": "A 9B", "draft_label": "a 0.8B"}
BEST = {"gamma": 4, "speedup": 1.5, "speedup_low": 1.34, "speedup_high": 1.68, "status": "best"}
IDLE = {"gamma": 8, "speedup": 1.0, "speedup_low": 0.9, "speedup_high": 1.1}
TARGET = {"target": "t", "label": "A 9B"}


def lines(repeats, advice, rows, further=()):
    settings = pd.DataFrame([SETTING | {"draft": "a"} | row for row in rows])
    keys = [("S", "t", "a", gamma) for gamma in further]
    return describe_stage(repeats, pd.DataFrame([advice]), settings, keys).splitlines()


def test_after_a_repeat_each_setting_has_its_speedup_and_each_target_its_answer_and_what_is_next():
    rows = [BEST, IDLE | {"status": "hardly drafts"}]
    answer = TARGET | BEST | {"answer": "undecided", "draft": "a", "draft_label": "a 0.8B"}
    text = lines(1, answer, rows, further=[4])
    assert text[1] == "After 1 repeat. This is provisional:"
    assert text[3].split() == ["target", "setting", "speedup", "what", "becomes", "of", "it"]
    assert text[4] == "A 9B    a 0.8B, γ = 4  1.50 [1.34, 1.68]  measured further"
    assert text[5].endswith("1.00 [0.90, 1.10]  hardly drafts")
    best = "at best a 0.8B, γ = 4, 1.50 [1.34, 1.68]"
    assert text[-1] == f"A 9B: so far undecided, {best}; next: 1 setting in repeat 2"
    assert lines(2, answer, rows)[-1].endswith("; next: measured no further")


def test_before_the_first_repeat_it_has_what_is_predicted():
    predicted = {"predicted": 0.4, "predicted_low": 0.3, "predicted_high": 0.5}
    text = lines(0, TARGET, [{"gamma": 4} | predicted, {"gamma": 8}], further=[8])
    assert text[1].startswith("Before the first repeat, predicted")
    assert text[4] == "A 9B    a 0.8B, γ = 4  0.40 [0.30, 0.50]  measured no further"
    assert text[-1] == "A 9B: next: 1 setting in repeat 1"
