"""The machine's state moves a speedup where the other baselines say so, and only there."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from specmoe.analysis.state import Line, state, with_other_baselines
from specmoe.analysis.summaries import SETTING
from specmoe.analysis.terminal import render_advice
from specmoe.analysis.views import clear_states
from specmoe.config.schema import Statistics
from specmoe.page.page import render_page
from specmoe.paper.documents import render_documents

from ...conftest import ROOT
from ..paper_analyses import advised, full, with_state

TARGETS = 3  # whose blocks take turns


def campaign(random, drafting=0.1, *, settings=4, prompts=3, repeats=6):
    """Return the pairs of one target, with its advice and settings.

    A state that lasts moves the baselines by 10 %, and drafting by a share of that; None: drafting
    has a state of its own.
    """
    draws = TARGETS * settings * prompts * repeats
    moved = 0.06 * random.standard_normal((2, draws))
    for draw in range(1, draws):
        moved[:, draw] += 0.8 * moved[:, draw - 1]
    noise = 0.04 * random.standard_normal((2, draws))
    gain = moved[1] if drafting is None else (drafting - 1) * moved[0]
    block, setting = np.divmod(np.arange(draws), settings)
    pairs = pd.DataFrame({"block": block, "started_at": block, "gamma": setting})
    pairs = pairs.assign(suite="s", target="t", draft="d", prompt=block // TARGETS % prompts)
    pairs = pairs.assign(
        paired=True,
        baseline=np.arange(draws),
        baseline_tokens_per_second=50 * np.exp(moved[0] + noise[0]),
        speedup=np.exp(gain + noise[1] - noise[0]),
    )[block % TARGETS == 0]
    compared = pairs[SETTING].drop_duplicates().assign(status="compared", prompt_set="all")
    return pairs, pd.DataFrame([{"target": "t", "prompt_set": "all"}]), compared


def campaigns(times, drafting=0.1):
    """Return the tables of so many campaigns, of which each has the demo's size."""
    random = np.random.default_rng(1)
    return [state(*campaign(random, drafting), Statistics()) for _ in range(times)]


def test_the_other_baselines_are_those_of_the_block_and_prompt_but_for_its_own():
    pairs, *_ = campaign(np.random.default_rng(1), settings=3)
    for _, own in with_other_baselines(pairs).groupby(["block", "prompt"]):
        rates = np.log(own["baseline_tokens_per_second"].to_numpy())
        others = [np.delete(rates, place).mean() for place in range(3)]
        assert own["other"].tolist() == pytest.approx(others)


def test_a_state_that_baselines_show_and_drafting_does_not_is_found():
    found = campaigns(20)
    assert np.mean([one["clear"].all() for one in found]) > 0.8
    # Noise of the other baselines flattens the line: without any it would be -0.9.
    assert -0.9 < np.mean([one["slope"] for one in found]) < -0.6
    for one in found:
        assert one["quarter"].tolist() == [1, 2, 3, 4]
        assert one["blocks"].sum() == 18
        assert one["other_tokens_per_second"].is_monotonic_increasing
        assert one["speedup"].between(one["speedup_low"], one["speedup_high"]).all()


@pytest.mark.parametrize("drafting", [1, None], ids=["moves alike", "moves on its own"])
def test_where_nothing_is_there_it_is_rarely_said(drafting):
    assert np.mean([one["clear"].any() for one in campaigns(60, drafting)]) <= 0.05


def test_a_line_is_less_sure_where_neighbours_in_time_are_alike():
    other, rest = np.sort(np.random.default_rng(1).standard_normal((2, 16, 1)), axis=1)
    order = np.random.default_rng(2).permutation(16)
    steady, mixed = (Line.through(other[at], other[at] + rest[at], 1) for at in (..., order))
    assert steady.slope.value == pytest.approx(mixed.slope.value)
    assert steady.slope.low < mixed.slope.low


def test_nothing_is_said_where_settings_share_a_baseline_or_few_blocks_are_alike():
    random = np.random.default_rng(1)
    pairs, *others = campaign(random)
    shared = pairs.groupby("block")["baseline"].transform("first")
    assert state(pairs.assign(baseline=shared), *others, Statistics()).empty
    steady = pairs.assign(baseline_tokens_per_second=50.0)
    assert state(steady, *others, Statistics()).empty
    for few in ({"prompts": 9, "repeats": 1}, {"prompts": 1, "repeats": 7}):
        assert state(*campaign(random, **few), Statistics()).empty
    assert clear_states(full()) == {}


def test_an_answer_says_what_it_depends_on_where_that_is_clear():
    for analysis, told in ((advised(with_state()), True), (advised(full()), False)):
        templates = [ROOT / f"paper/advice.{end}.j2" for end in ("txt", "md")]
        texts = [render_advice(analysis, template, Path()) for template in templates]
        texts += [render_page(analysis, {}, None), render_documents(analysis, ["state"])["main"]]
        for words in (" ".join(text.split()) for text in texts):
            assert ("1.16 where the other baseline is slow (40 tok/s)" in words) == told
            assert ("0.95 where it is fast (60" in words) == told
