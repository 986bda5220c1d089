"""The text after a repeat: a line for each setting, and what is measured next."""

from types import SimpleNamespace

from specmoe.analysis.stages import describe_stage

PREDICTED = {"predicted": 0.4, "predicted_low": 0.3, "predicted_high": 0.5}
FAST = {"speedup": 1.5, "speedup_low": 1.34, "speedup_high": 1.68, "verdict": "contender"}
SLOW = {"speedup": 0.5, "speedup_low": 0.1, "speedup_high": 0.9, "verdict": "beaten"}


def lines(repeats, *rows, **columns):
    who = {"target": "A 9B", "suite": "s", "level": None, **columns}
    own = {
        place: {"label": f"a 0.8B, γ = {4 + place}"} | who | row for place, row in enumerate(rows)
    }
    return describe_stage(SimpleNamespace(label=str), own, repeats).splitlines()


def test_after_a_repeat_each_setting_has_its_speedup_and_each_target_its_answer_and_what_is_next():
    text = lines(1, FAST | PREDICTED, SLOW, answer="undecided")
    assert text[1] == "After 1 repeat, which is provisional:"
    assert text[3].split() == ["target", "setting", "predicted", "speedup", "verdict"]
    assert text[4] == "A 9B    a 0.8B, γ = 4  0.40 [0.30, 0.50]  1.50 [1.34, 1.68]       contender"
    assert text[5].endswith("0.50 (too few prompts)  beaten")
    best = "at best a 0.8B, γ = 4, 1.50 [1.34, 1.68]"
    assert text[-2] == f"A 9B: so far undecided, {best}; next: 1 setting in repeat 2"
    off = "Predictions were 73 % too low on average; 0 of 1 measured speedup inside"
    assert text[-1] == f"{off} their intervals."
    assert lines(2, SLOW, answer="undecided")[-1].endswith("; next: measured no further")
    waiting = lines(1, FAST, {"verdict": "waits for the best of others"}, answer="undecided")
    assert waiting[6].startswith("1 further setting not tried yet: p_min goes with the best γ")
