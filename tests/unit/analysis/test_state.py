"""The machine's state moves a speedup where the other baselines say so, and only there."""

from pathlib import Path

import numpy as np
import pytest

from specmoe.analysis.filters import clear_states
from specmoe.analysis.state import Line, state, with_other_baselines
from specmoe.analysis.terminal import render_advice
from specmoe.config.schema import Statistics
from specmoe.page.page import render_page
from specmoe.paper.documents import render_documents

from ...conftest import ROOT
from ...simulated_states import KINDS, Shape, draw, made_series
from ..paper_analyses import advised, full, with_state

DEMO = Shape(4, 3, 6, 3)


def campaigns(kind, times, shape=DEMO):
    random = np.random.default_rng(1)
    return [draw(made_series(random, 0.1), random, shape, kind) for _ in range(times)]


def test_the_other_baselines_are_those_of_the_block_and_prompt_but_for_its_own():
    pairs, *_ = campaigns(KINDS[0], 1, Shape(3, 2, 2, 1))[0].frames()
    for _, own in with_other_baselines(pairs).groupby(["block", "prompt"]):
        rates = np.log(own["baseline_tokens_per_second"].to_numpy())
        others = [np.delete(rates, place).mean() for place in range(3)]
        assert own["other"].tolist() == pytest.approx(others)


def test_a_state_that_baselines_show_and_drafting_does_not_is_found():
    found = campaigns(KINDS[0], 50)
    lines = [one.line() for one in found]
    assert np.mean([one.clear for one in lines]) > 0.8
    # Noise of three other baselines flattens the line: without any it would be -0.9.
    assert -0.9 < np.mean([one.slope.value for one in lines]) < -0.6
    quarters = state(*found[0].frames(), Statistics())
    assert quarters["quarter"].tolist() == [1, 2, 3, 4]
    assert quarters["blocks"].sum() == 18
    assert quarters["other_tokens_per_second"].is_monotonic_increasing
    assert quarters["expected"].between(quarters["speedup_low"], quarters["speedup_high"]).all()
    slope = quarters[["slope", "slope_low", "slope_high"]].iloc[0]
    assert slope.tolist() == pytest.approx([*lines[0].slope])


@pytest.mark.parametrize("kind", KINDS[1:])
def test_where_nothing_is_there_it_is_rarely_said(kind):
    assert np.mean([one.line().clear for one in campaigns(kind, 400)]) <= 0.05


def test_a_line_is_less_sure_where_neighbours_in_time_are_alike():
    other, rest = np.random.default_rng(1).standard_normal((2, 16, 1))
    other, rest = np.sort(other, axis=0), np.sort(rest, axis=0)
    order = np.random.default_rng(2).permutation(16)
    steady, mixed = (
        Line.through(other[at], other[at] + rest[at], 1) for at in (slice(None), order)
    )
    assert steady.slope.value == pytest.approx(mixed.slope.value)
    assert steady.slope.low < mixed.slope.low


def test_nothing_is_said_where_settings_share_a_baseline_or_few_blocks_are_alike():
    pairs, *others = campaigns(KINDS[0], 1)[0].frames()
    shared = pairs.groupby("block")["baseline"].transform("first")
    assert state(pairs.assign(baseline=shared), *others, Statistics()).empty
    for shape in (Shape(4, 9, 1, 1), Shape(4, 1, 7, 1)):
        assert state(*campaigns(KINDS[0], 1, shape)[0].frames(), Statistics()).empty
    assert clear_states(full()) == {}


def test_an_answer_says_what_it_depends_on_where_that_is_clear():
    for analysis, told in ((advised(with_state()), True), (advised(full()), False)):
        texts = [
            render_advice(analysis, ROOT / f"paper/advice.{end}.j2", Path())
            for end in ("txt", "md")
        ]
        texts += [render_page(analysis, {}, None), render_documents(analysis, ["state"])["main"]]
        for words in (" ".join(text.split()) for text in texts):
            assert ("1.16 where the other baseline is slow (40 tok/s)" in words) == told
            assert ("0.95 where it is fast (60" in words) == told
