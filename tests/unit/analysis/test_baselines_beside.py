"""The A/A control: planted baselines that what ran before them made slower."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from specmoe.analysis.state import baselines_beside
from specmoe.analysis.terminal import render_advice
from specmoe.config.schema import Statistics
from specmoe.page.page import render_page
from specmoe.paper.documents import render_documents

from ...blocks import row
from ...conftest import ROOT
from ..paper_analyses import advised, full, of_campaign
from ..rendered_tables import latex

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


def test_settings_that_share_a_baseline_have_none_of_their_own():
    assert baselines_beside(runs_of(1.0, shared=True), Statistics()).empty


def test_the_control_seldom_fails_where_nothing_differs():
    worlds = (runs_of(1.0, seed=seed) for seed in range(60))
    failed = [baselines_beside(world, Statistics())["failed"].any() for world in worlds]
    assert np.mean(failed) <= 0.05


def test_its_failing_is_said_in_terminal_page_and_paper_and_voids_no_answer():
    found = baselines_beside(runs_of(1.08), Statistics())
    analysis = advised(of_campaign(full(), is_study=False), beside_failed=1)
    analysis = replace(analysis, baselines_beside=found.assign(target="moe_q4", draft="draft_2b"))
    text = render_advice(analysis, ROOT / "paper/advice.txt.j2", Path("advice.md"))
    assert (
        "baselines beside each of 4 settings: 0.93 to 1.03 times the others, 1 clearly off" in text
    )
    assert "MoE Q4: The baselines beside 1 setting differ from the others" in text
    page = render_page(analysis, {}, None)
    assert "baselines beside settings 0.93 to 1.03 of the others, 1 clearly off" in page
    assert "MoE Q4 runs 1.40× as fast" in page
    paper = render_documents(analysis, [])["main"]
    assert "Baselines beside 4 settings ran at 0.93 to 1.03 times the others" in paper
    rows = latex("controls", analysis).splitlines()
    assert sum("baselines beside it" in line for line in rows) == 4
