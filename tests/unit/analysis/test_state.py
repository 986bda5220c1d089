"""The other baselines of a block: planted states that they show, and planted slower ones."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from specmoe.analysis.advice_text import render_advice
from specmoe.analysis.state import Line, baselines_beside, state, with_other_baselines
from specmoe.analysis.summaries import SETTING
from specmoe.analysis.views import clear_states
from specmoe.config.schema import Statistics
from specmoe.page.page import render_page
from specmoe.paper.documents import render_documents

from ...blocks import row
from ...conftest import ROOT
from ..paper_analyses import advised, full, of_campaign, with_state
from ..rendered_tables import latex

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


def rendered(analysis):
    """Return the advice for a terminal and as Markdown, the page and the paper, without breaks."""
    templates = [ROOT / f"paper/advice.{end}.j2" for end in ("txt", "md")]
    texts = [render_advice(analysis, template, Path()) for template in templates]
    texts += [render_page(analysis, {}, None), render_documents(analysis, ["state"])["main"]]
    return [" ".join(text.split()) for text in texts]


def test_an_answer_says_what_it_depends_on_where_that_is_clear():
    for analysis, told in ((advised(with_state()), True), (advised(full()), False)):
        for words in rendered(analysis):
            assert ("1.16 where the other baseline is slow (40 tok/s)" in words) == told
            assert ("0.95 where it is fast (60" in words) == told


GAMMAS = (1, 2, 4, 8)


def runs_of(slower, *, shared=False, prompts=15, seed=1):
    """Return pairs of settings; the baselines beside γ = 8 are so many times slower."""
    generator, rows = np.random.default_rng(seed), []
    for prompt in range(prompts):
        state = 50 * np.exp(0.1 * generator.normal())  # of the machine, in this block
        for gamma in GAMMAS:
            beside = f"{prompt}/{'all' if shared else gamma}"
            rate = state * np.exp(0.03 * generator.normal()) / (slower if gamma == 8 else 1)
            own = {"block": str(prompt), "prompt": str(prompt), "suite": "S", "speedup": 60 / rate}
            own |= {"run": f"{prompt}/g{gamma}", "gamma": gamma, "baseline": beside}
            rows.append(row("target", "draft", **own, baseline_tokens_per_second=rate))
    return pd.DataFrame(rows).assign(paired=True)


@pytest.mark.parametrize(("slower", "failed"), [(1.0, 0), (1.01, 0), (1.08, 1)])
def test_only_baselines_that_are_clearly_off_fail(slower, failed):
    found = baselines_beside(runs_of(slower), Statistics()).set_index("gamma")
    assert found["failed"].sum() == failed == found.loc[8, "failed"]
    assert found["runs"].tolist() == [15] * 4
    assert found.loc[8, "ratio"] == pytest.approx(1 / slower, rel=0.02)
    assert (found["ratio_low"] < found["ratio"]).all()


def test_the_control_seldom_fails_where_nothing_differs_and_is_none_where_settings_share_it():
    assert baselines_beside(runs_of(1.0, shared=True), Statistics()).empty
    worlds = (runs_of(1.0, seed=seed) for seed in range(60))
    failed = [baselines_beside(world, Statistics())["failed"].any() for world in worlds]
    assert np.mean(failed) <= 0.05


def test_its_failing_is_said_in_terminal_page_and_paper_and_voids_no_answer():
    found = baselines_beside(runs_of(1.08), Statistics())
    analysis = advised(of_campaign(full(), is_study=False), beside_failed=1)
    analysis = replace(analysis, baselines_beside=found.assign(target="moe_q4", draft="draft_2b"))
    text, _, page, paper = rendered(analysis)
    assert "beside each of 4 settings: 0.93 to 1.03 times the others, 1 clearly off" in text
    assert "MoE Q4: The baselines beside 1 setting differ from the others" in text
    assert "baselines beside settings 0.93 to 1.03 of the others, 1 clearly off" in page
    assert "MoE Q4 runs 1.40× as fast" in page
    assert "Baselines beside 4 settings ran at 0.93 to 1.03 times the others" in paper
    rows = latex("controls", analysis).splitlines()
    assert sum("baselines beside it" in line for line in rows) == 4
