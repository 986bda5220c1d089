"""Contenders: what is measured further after a stage, what never leaves, and the text of it."""

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from specmoe.analysis import contenders
from specmoe.analysis.contenders import afford, doubt, drop, drop_predicted, join, select_arms
from specmoe.analysis.decision import Answer, Fate
from specmoe.analysis.stages import Stages, describe_stage
from specmoe.config.block import Arm
from specmoe.config.load import load
from specmoe.config.matrix import TEXTS

from ...blocks import alone, compared, drafted
from .test_advice import DRAFT, INFOS, TARGET, WOBBLE, advised, campaign, setting


def rows_of(*speedups, **more):
    usual = {"target": "t", "verdict": Fate.CONTENDER, "paired": False, "method": "draft"}
    return [usual | more | one for one in speedups]


def verdicts(rows):
    return [row["verdict"].name for row in rows]


def predicted(*values):
    ends = [{"predicted": one, "predicted_low": one / 1.2} for one in values]
    return rows_of(*(one | {"predicted_high": one["predicted"] * 1.2} for one in ends))


@pytest.mark.parametrize(
    ("speedups", "others", "expected"),
    [
        ((1.5, 1.2, 0.9), 0, ["CONTENDER", "CONTENDER", "PREDICTED"]),
        ((0.41, 0.4, 0.9), 0, ["PREDICTED", "PREDICTED", "CONTENDER"]),
        ((0.41, 0.4), 0, ["CONTENDER", "PREDICTED"]),  # the best stays
        ((0.41, 0.4), 1, ["PREDICTED", "PREDICTED", "CONTENDER"]),
    ],
)
def test_a_prediction_is_beaten_by_another_or_by_one_and_the_best_stays_without_others(
    speedups, others, expected
):
    rows = predicted(*speedups) + rows_of(*[{}] * others)
    drop_predicted(rows)
    assert verdicts(rows) == expected


def test_of_n_grams_the_best_two_stay_of_different_predictions_unless_these_are_beaten():
    rows = predicted(0.9, 1.5, 1.3, 1.5, 1.1)
    for number, row in enumerate(rows):
        row |= {"method": "ngram-mod" if number else "draft"}
        row |= {"label": number, "drafted_share": 0.5}
    drop_predicted(rows)
    assert verdicts(rows) == ["PREDICTED", "SURPASSED", "CONTENDER", "CONTENDER", "SURPASSED"]
    drop_predicted(rows := [*predicted(2.5), *rows[1:]])
    assert verdicts(rows) == ["CONTENDER", "SURPASSED", "PREDICTED", "PREDICTED", "SURPASSED"]
    idle = [row | {"drafted_share": 0.05, "verdict": Fate.CONTENDER} for row in rows[1:3]]
    for others, expected in ((rows[:1], "CONTENDER IDLE IDLE"), ([], "CONTENDER IDLE")):
        drop_predicted(found := [*others, *map(dict, idle)])
        assert verdicts(found) == expected.split()


@pytest.mark.parametrize(
    ("dropped", "measured", "verdict"),
    [(0.8, 1.3, "PREDICTED"), (0.8, 0.7, "CONTENDER"), (0.4, 0.7, "PREDICTED")],
)
def test_a_prediction_is_believed_less_the_farther_another_one_was_off(dropped, measured, verdict):
    rows = predicted(1.3, dropped)
    rows[1]["verdict"] = Fate.PREDICTED
    rows[0] |= {"speedup": measured}
    assert doubt(rows) == (verdict == "CONTENDER")
    assert verdicts(rows) == ["CONTENDER", verdict]
    assert not doubt(rows)  # once


def test_controls_and_forced_acceptance_are_not_compared():
    arms = [Arm(), drafted(4), drafted(8, share=0.5)]
    arms += [drafted(4, draft=name, draft_model=name) for name in ("target", "other")]
    block = compared(arms=tuple(arms))
    assert select_arms(block, {"other"}, {}) == [arms[1]]


@pytest.mark.parametrize(
    ("minutes", "expected"),
    [
        (10, ["CONTENDER"] * 3),
        (1, ["CONTENDER", "UNTRIED", "CONTENDER"]),  # the most promising ones
        (0.1, ["CONTENDER", "UNTRIED", "UNTRIED"]),  # one at least
    ],
)
def test_with_few_minutes_the_most_promising_settings_are_tried(minutes, expected):
    found = rows_of({"predicted": 1.5}, {"predicted": 0.7}, {}, prompts=8)
    afford(dict(enumerate(found)), 60 * minutes, {"t": 1.0})
    assert verdicts(found) == expected
    paired = [row | {"paired": True} for row in found]
    afford(dict(enumerate(paired)), 60 * minutes, {"t": 1.0})
    assert verdicts(paired) == ["CONTENDER"] * 3  # what is compared with another model


@pytest.mark.parametrize(
    ("measured", "final", "joined"),
    [
        ({}, False, ["d/g2 p", "d/g4 p", "e/g2 p"]),
        ({"d/g4": 0.9}, False, ["d/g2 p", "e/g2 p"]),  # one that is beaten is no second
        ({"d/g4": 0.9}, True, ["d/g2 p", "d/g2 ngram-mod 24", "e/g2 p"]),  # the pool looks up 16
        ({"d/g2": 0.5, "d/g4": 0.4, "ngram-mod/g9": 0.8}, True, ["d/g2 p", "e/g2 p", "e/g2 k 3"]),
    ],
)
def test_p_min_joins_at_the_best_lengths_of_each_model_and_a_pair_of_the_best_in_the_end(
    measured, final, joined
):
    rows, usual = {}, {"d/g2": 1.3, "d/g4": 1.2, "e/g2": 0.9, "k/g8": 0.9, "ngram-mod/g9": 1.1}
    for name, speedup in (usual | measured).items():
        draft, known = name[:-3], {"speedup": speedup, "waits_for": None, "partner": None}
        known |= {"verdict": Fate.CONTENDER if speedup > 1 else Fate.BEATEN}
        method = {"d": "draft", "e": "draft", "k": "ngram-map-k"}.get(draft, draft)
        row = {"comparison": "c", "draft": draft, "method": method, "n_match": 16}
        rows[name] = row | known
        waiting = {"p": (None, None), "ngram-mod 3": ("ngram-mod", 3)}
        waiting |= {"k 3": ("ngram-map-k", 3), "ngram-mod 24": ("ngram-mod", 24)}
        for words, (partner, looked_up) in waiting.items() if method == "draft" else ():
            row |= {"verdict": Fate.WAITING, "waits_for": name, "partner": partner}
            rows[f"{name} {words}"] = row | {"n_match": looked_up}
    join(rows, final=final)
    assert [name for name, row in rows.items() if "hoped" in row] == joined


def staged(study, root, *waiting, predicted=None, open_kinds=None, **rates):
    """Return rows of the settings γ = 2, 4, ... after runs at rates; the baseline's is 50.

    Those that are `waiting` have none; of the others something is `predicted`. `open_kinds` are
    those of a target that is on by kind.
    """
    study["measurement"]["repeats"] = {"least": 1, "most": 6}
    config = load(study | {"statistics": {"session_sd": 0.05}}, root)
    runs = campaign(*(setting(int(name[1:]), own) for name, own in rates.items()))
    rows = [
        {"suite": "B", "target": TARGET, "draft": DRAFT, "gamma": int(name[1:]), "level": None}
        | {"verdict": Fate.CONTENDER, "label": name, **(predicted or {})}
        for name in rates
    ] + [*waiting]
    found = advised(runs, config)
    [answer] = found["advice"].assign(open_kinds=open_kinds).to_dict("records")
    drop(rows, answer, found["advice_settings"])
    return config, rows


NOISE = np.array([0.9, 1.0, 1.1])


@pytest.mark.parametrize(
    ("rates", "open_kinds", "expected", "answer"),
    [
        ({"g2": 52 * NOISE, "g4": 30 * NOISE}, None, ["CONTENDER", "BEATEN"], Answer.UNDECIDED),
        ({"g2": 52 * NOISE, "g4": 30 * NOISE}, 0, ["DECIDED", "BEATEN"], Answer.UNDECIDED),
        ({"g2": 30 * NOISE, "g4": 20 * NOISE}, None, ["DECIDED", "BEATEN"], Answer.OFF),
        # A gain of 8 % is within what sessions differ by: repeats cannot decide it.
        ({"g2": 54 * WOBBLE}, None, ["DECIDED"], Answer.UNDECIDED),
    ],
)
def test_a_setting_leaves_when_it_is_beaten_and_a_target_when_no_repeat_decides_more(
    study, root, rates, open_kinds, expected, answer
):
    config, rows = staged(study, root, open_kinds=open_kinds, **rates)
    assert verdicts(rows) == expected
    text = describe_stage(config, {row["label"]: row for row in rows}, 3)
    assert rows[0]["answer"] == answer
    assert answer in text
    assert ("measured no further" in text) == (expected[0] == "DECIDED")


def test_texts_that_part_and_are_not_judged_yet_keep_no_target_undecided(study, root, monkeypatch):
    study["measurement"]["repeats"] = {"least": 1, "most": 6}
    runs = campaign(setting(2, 30 * NOISE))
    runs["tokens"] = [[*range(98), len(run.prompt), len(run.draft)] for run in runs.itertuples()]
    monkeypatch.setattr(contenders, "Asked", str)
    monkeypatch.setattr(contenders, "frame_of", lambda _: runs)
    [row] = rows_of({}, suite="B", target=TARGET, draft=DRAFT, gamma=2, level=None)
    contenders.compare(SimpleNamespace(config=load(study, root)), ["b"], {"g2": row}, INFOS)
    assert (row["answer"], row["verdict"]) == (Answer.OFF, Fate.DECIDED)


def test_nothing_is_decided_while_a_setting_waits_that_a_wrong_prediction_has_dropped(study, root):
    waiting = {"suite": "B", "target": TARGET, "draft": DRAFT, "gamma": 8, "level": None}
    waiting |= {"verdict": Fate.PREDICTED, "predicted": 0.9}
    waiting |= {"predicted_low": 0.82, "predicted_high": 0.98}
    for most, expected in ((0.6, "DECIDED BEATEN PREDICTED"), (1.0, "CONTENDER BEATEN CONTENDER")):
        said = {"predicted": most, "predicted_low": most - 0.1, "predicted_high": most + 0.1}
        rates = {"g2": 30 * WOBBLE, "g4": 0.9 * 30 * WOBBLE}
        _, rows = staged(study, root, dict(waiting), predicted=said, **rates)
        assert verdicts(rows) == expected.split()


PREDICTED = {"predicted": 0.4, "predicted_low": 0.3, "predicted_high": 0.5}
FAST = {"speedup": 1.5, "speedup_low": 1.34, "speedup_high": 1.68, "verdict": Fate.CONTENDER}
SLOW = {"speedup": 0.5, "speedup_low": 0.1, "speedup_high": 0.9, "verdict": Fate.BEATEN}


def lines(repeats, *rows, ended="", **columns):
    own = rows_of(*rows, target="A 9B", suite="s", level=None, **columns)
    named = {place: row | {"label": f"a 0.8B, γ = {4 + place}"} for place, row in enumerate(own)}
    return describe_stage(SimpleNamespace(label=str), named, repeats, ended).splitlines()


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
    some = lines(1, {"verdict": Fate.IDLE}, FAST | {"answer": "off"}, ended="the minutes end")
    assert some[1] == "After 1 repeat, the last as far as the minutes went:"
    assert "A 9B: so far off, at best" in some[-2]
    waiting = lines(1, FAST, {"verdict": Fate.WAITING}, answer="undecided")
    assert waiting[6].startswith("1 further setting not tried yet: p_min goes with the best γ")


def test_with_few_minutes_each_target_writes_a_few_texts(monkeypatch):
    texts = {f"{TEXTS}/{of}/p{n}": alone(target=of) for of in "ab" for n in range(8)}
    config, written = SimpleNamespace(measurement=SimpleNamespace(minutes=1.0)), []
    monkeypatch.setattr(Stages, "_measure", lambda _, block, where: written.append(block.target))
    monkeypatch.setattr(Stages, "left_s", 0.0)
    Stages(SimpleNamespace(blocks=texts, scoring={}, config=config), Path())._write_texts()
    assert written == [*"aaabbb"]
