"""Gains of requests at once are what was planted, and the sentence says no more than they show."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from specmoe.analysis.advice_text import advice_values, describe_advice
from specmoe.analysis.concurrency import compare_loads, of_loads, one_by_one
from specmoe.analysis.sentences import describe_concurrency
from specmoe.analysis.summaries import with_speedups
from specmoe.config.schema import Statistics

from ..paper_analyses import baseline_runs, full, speculative_runs
from ..planted_loads import changes, loads, with_loads

CAMPAIGNS = 60


def compared(rows):
    runs = pd.DataFrame(rows)
    return compare_loads(with_speedups(runs), runs, Statistics())


def test_throughput_and_the_speed_of_users_are_compared_at_the_same_number_of_requests():
    cells = compared(loads({1: 1.3, 4: 0.9}))
    assert cells["concurrency"].tolist() == [1, 4]
    assert cells["of_target"].tolist() == ["moe_q4", "moe_q4"]
    assert cells["baseline_throughput"].tolist() == pytest.approx([50, 200])
    assert cells["throughput"].tolist() == pytest.approx([65, 180])
    assert cells["throughput_ratio"].tolist() == pytest.approx([1.3, 0.9])
    assert cells["speedup"].tolist() == pytest.approx([1.3, 0.9])
    assert cells["baseline_tokens_per_pass"].tolist() == pytest.approx([1, 4])
    assert cells[["blocks", "loads", "runs"]].to_numpy().tolist() == [[3, 3, 6]] * 2


def test_imposed_acceptance_is_a_cell_of_its_own():
    own = loads({1: 1.3})
    imposed = [
        row | {"imposed_acceptance": 0.5, "block": f"{row['block']}i", "run": f"{row['run']}i"}
        for row in loads({1: 2.0})
        if row["gamma"]
    ]
    alone = [row for row in own if not row["gamma"]]
    baselines = {row["prompt"]: row["run"] for row in alone}
    for row in imposed:
        row["baseline"] = baselines[row["prompt"]]
    cells = compared([*own, *imposed])
    cells = cells.assign(asked=cells["imposed_acceptance"].fillna(-1)).set_index("asked")
    assert cells["throughput_ratio"].to_dict() == pytest.approx({-1: 1.3, 0.5: 2.0})


def test_runs_without_a_load_have_no_part_in_it():
    plain = [*baseline_runs(["moe_q4"], ["code"], 2)]
    plain += speculative_runs("B", "moe_q4", "draft_0.8b", 4, [60, 60])
    assert compared(plain).empty
    mixed = pd.DataFrame([*plain, *loads({2: 1.1})])
    assert set(of_loads(mixed)["suite"]) == {"U"}
    assert set(one_by_one(mixed)["suite"]) == {"P", "B"}


def test_a_gain_that_falls_is_found_and_one_that_does_not_is_undecided():
    found = with_loads().concurrency_changes.set_index("gamma")
    assert found["found"].to_dict() == {2: "undecided", 4: "falls"}
    assert found.loc[4, ["at_least", "at_most"]].tolist() == pytest.approx([1.3, 0.9], rel=0.03)
    rows = loads({1: 0.8, 4: 1.2}, noise=0.01)
    rising = replace(with_loads(), concurrency_changes=_labelled(rows))
    assert rising.concurrency_changes["found"].tolist() == ["rises"]


def test_the_sentence_names_the_setting_its_numbers_and_what_stays_open():
    falls, rest = describe_concurrency(with_loads())
    assert falls.startswith(
        "With four requests at once instead of one, the speedup of MoE Q4 with Draft 0.8B, γ = 4 in"
        " throughput falls from 1.3"
    )
    assert "to 0.9" in falls
    assert rest == "For 1 of 2 settings the intervals do not say."
    assert falls in " ".join(describe_advice(with_loads()).split())
    [two, four] = advice_values(with_loads())["requests_at_once"]
    assert (two["found"], four["found"]) == ("undecided", "falls")
    assert describe_concurrency(full()) == []
    assert "requests_at_once" not in advice_values(full())


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        (loads({1: 1.2, 4: 1.2}, noise=0.01), "undecided: the setting's interval does not exclude"),
        (loads({1: 1.2, 4: 0.5}, repeats=1), "One block each does not say"),
    ],
)
def test_an_open_question_is_said_to_be_open(rows, words):
    [sentence] = describe_concurrency(replace(with_loads(), concurrency_changes=_labelled(rows)))
    assert words in sentence


def test_loads_at_a_single_number_have_no_change():
    assert changes(loads({4: 1.2})).empty


def test_of_gains_that_stay_the_same_few_are_said_to_change():
    """All intervals of a campaign hold at once, so 5 of 100 campaigns may name any setting."""
    generator = np.random.default_rng(3)
    named = 0
    for _ in range(CAMPAIGNS):
        rows = [
            row
            for gamma in (2, 4)
            for row in loads({1: 1.2, 4: 1.2}, gamma=gamma, noise=0.1, generator=generator)
        ]
        found = changes(rows)
        named += bool(((found["change_high"] < 1) | (found["change_low"] > 1)).any())
    # 95 of 100 times, at most 6 of 60 are wrong at the stated level.
    assert named <= 6


def test_a_gain_that_falls_by_a_third_is_mostly_found():
    generator = np.random.default_rng(4)
    named = sum(
        bool(
            (
                changes(loads({1: 1.2, 4: 0.8}, noise=0.05, generator=generator))["change_high"] < 1
            ).all()
        )
        for _ in range(CAMPAIGNS // 2)
    )
    assert named >= 0.8 * CAMPAIGNS // 2


def _labelled(rows):
    return changes(rows).assign(of_label="MoE Q4")
