"""The A/A control: planted baselines that what ran before them made slower."""

import numpy as np
import pandas as pd
import pytest

from specmoe.analysis.baselines_beside import baselines_beside
from specmoe.config.schema import Statistics

from ...blocks import row

GAMMAS = (1, 2, 4, 8)


def runs_of(slower, *, shared=False, prompts=15, seed=1):
    """Return runs of settings and pairs; the baselines beside γ = 8 are so many times slower."""
    generator, rows = np.random.default_rng(seed), []
    for prompt in range(prompts):
        state = 50 * np.exp(0.1 * generator.normal())  # of the machine, in this block
        for gamma in GAMMAS:
            beside = f"{prompt}/{'all' if shared else gamma}"
            rate = state * np.exp(0.03 * generator.normal()) / (slower if gamma == 8 else 1)
            own = {"block": str(prompt), "prompt": str(prompt), "suite": "S"}
            plain = own | {"run": beside, "gamma": 0, "tokens_per_second": rate}
            drafting = own | {"run": f"{prompt}/g{gamma}", "gamma": gamma, "baseline": beside}
            rows += [row("target", "none", **plain)] * (not shared or gamma == 1)
            rows.append(row("target", "draft", **drafting, tokens_per_second=60.0))
    runs = pd.DataFrame(rows)
    return runs, runs[runs["draft"] != "none"].assign(paired=True)


@pytest.mark.parametrize(("slower", "failed"), [(1.0, 0), (1.01, 0), (1.08, 1)])
def test_only_baselines_that_are_clearly_off_fail(slower, failed):
    found = baselines_beside(*runs_of(slower), Statistics()).set_index("gamma")
    assert found["failed"].sum() == failed == found.loc[8, "failed"]
    assert found["runs"].tolist() == [15] * 4
    assert found.loc[8, "ratio"] == pytest.approx(1 / slower, rel=0.02)
    assert (found["ratio_low"] < found["ratio"]).all()


def test_settings_that_share_a_baseline_have_none_of_their_own():
    assert baselines_beside(*runs_of(1.0, shared=True), Statistics()).empty


def test_the_control_seldom_fails_where_nothing_differs():
    worlds = (runs_of(1.0, seed=seed) for seed in range(60))
    failed = [baselines_beside(*world, Statistics())["failed"].any() for world in worlds]
    assert np.mean(failed) <= 0.05
