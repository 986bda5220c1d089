"""The standard deviation of blocks, and the repeats that follow from it alone."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from specmoe.analysis.repeats import FEWEST_REPEATS, half_width, repeats_for, repeats_of_settings
from specmoe.config.measurement import Statistics

from .test_summaries import run

SETTINGS = Statistics()


def setting(logs, *, gamma=4, target="t", suite="B", shared=False, temperature=0.0, forced=None):
    """Return a setting's runs: rows of `logs` are blocks, columns prompts.

    `shared`: all γ of a draft are arms of one block.
    """
    comparison = f"{suite}/{target}/d" + ("" if shared else f"/g{gamma}")
    common = {"suite": suite, "target": target, "draft": "d", "gamma": gamma}
    common |= {"temperature": temperature, "forced_acceptance": forced}
    rows = pd.DataFrame(
        [
            run(f"{comparison}/{gamma}/r{repeat}/p{prompt}", 50.0, prompt=f"p{prompt}", **common)
            | {"block": f"{comparison}/r{repeat}", "speedup": np.exp(value)}
            for repeat, block in enumerate(logs)
            for prompt, value in enumerate(block)
        ]
    )
    warm = f"{temperature:g}" if suite == "T" else None
    return rows.assign(condition=warm if forced is None else f"{forced:g}")


def spread(*settings):
    return repeats_of_settings(pd.concat(settings), SETTINGS).set_index("gamma")


def test_the_spread_between_and_within_blocks_is_as_by_hand():
    # Blocks differ by 0.2, prompts by 0.4, and nothing else.
    row = spread(setting([[0.0, 0.4], [0.2, 0.6]])).loc[4]
    assert row["block_sd"] == pytest.approx(0.2 / np.sqrt(2))
    assert row["within_sd"] == pytest.approx(0.4 / np.sqrt(2))


def test_spreads_that_need_several_blocks_or_prompts_are_null():
    one_block, one_prompt = (
        spread(setting(logs)).loc[4] for logs in ([[0.0, 0.1]], [[0.0], [0.1]])
    )
    assert one_block[["block_sd", "repeats_needed"]].isna().all()
    assert np.isnan(one_prompt["within_sd"])
    assert one_prompt["block_sd"] > 0


def test_a_cell_whose_blocks_agree_by_luck_is_planned_by_its_neighbours_spread():
    lucky, usual = [[0.0]] * 3, [[0.0], [0.1], [0.2]]
    rows = spread(setting(lucky), setting(usual, gamma=8), setting(lucky, gamma=16, target="other"))
    assert rows.loc[4, "block_sd"] == 0
    assert rows.loc[4, "planning_sd"] == pytest.approx(0.1 / np.sqrt(2))
    assert rows.loc[8, "planning_sd"] == pytest.approx(0.1)
    assert rows.loc[16, "planning_sd"] == 0  # another target spreads otherwise


@given(deviation=st.floats(0, 0.3), width=st.floats(0.01, 0.2))
def test_the_repeats_are_the_fewest_that_reach_the_half_width(deviation, width):
    asked = Statistics(target_half_width=width)
    repeats = repeats_for(deviation, asked)
    assert half_width(deviation, repeats, asked.confidence) <= width
    if repeats > FEWEST_REPEATS:
        assert half_width(deviation, repeats - 1, asked.confidence) > width


def test_arms_of_a_block_forced_acceptance_and_temperatures_have_cells_of_their_own():
    logs = [[0.0], [0.1]]
    settings = [setting(logs, gamma=gamma, shared=True) for gamma in (2, 8)]
    settings += [setting(logs, forced=0.0), setting(logs, forced=0.5)]
    settings += [setting(logs, suite="T", temperature=warm) for warm in (0.0, 0.7)]
    there = repeats_of_settings(pd.concat(settings), SETTINGS)
    ids = ["B/t/d/g2", "B/t/d/g8", "B/t/d/g4/0", "B/t/d/g4/0.5", "T/t/d/g4/0", "T/t/d/g4/0.7"]
    assert sorted(there["setting"]) == sorted(ids)
    assert set(there["blocks"]) == {2}
