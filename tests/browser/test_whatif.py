"""The page's predictions are those of the Python cost model, and readers can ask for them."""

from dataclasses import replace
from itertools import product

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import brentq

from specmoe.analysis.cost_tables import break_even
from specmoe.analysis.intervals import Estimate

from ..unit.page.test_page import page_of
from ..unit.paper_analyses import costed, fitted_pairs
from .conftest import READERS

GAMMAS = (1, 3, 4, 9, 16, 32)  # those that were measured, between and beyond them
RATES = (0.0, 0.05, 0.37, 0.6, 0.99, 1.0)
FACTORS = (0.0, 0.5, 1.0, 2.7)
LANGUAGES = {"en-GB": "predicted speedup", "zh-CN": "预测的加速比"}


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    """The page of an MoE with replays, and of a dense target."""
    written = tmp_path_factory.mktemp("whatif") / "index.html"
    written.write_text(page_of(costed()), encoding="utf-8")
    return written


@pytest.fixture(scope="module")
def pairs():
    """The same pairs in Python, in the order of the page."""
    moe_first = sorted(fitted_pairs()[0], key=lambda pair: not pair.model.replays)
    assert [pair.identity["target"] for pair in moe_first] == ["moe_q4", "dense_4b"]
    assert moe_first[0].model.knots["catchup"]
    return moe_first


def scaled(pair, factor):
    """Return a pair whose draft costs so many times what it did."""
    factors = np.ones(len(pair.model.costs))
    factors[1 : 1 + len(pair.model.knots["draft"])] = factor  # behind a token's time
    costs, without = pair.model.costs * factors, pair.model.without * factors
    return pair._replace(model=replace(pair.model, costs=costs, without=without))


def predicted(pair, held, factor):
    """Return the speedup of a round with its interval, by Python."""
    model = scaled(pair, factor).model
    _, tokens, work = model.expected(np.array(held))
    [speedup], without = model.speedups(np.array([tokens]), work[None])
    return [*Estimate.of_ratio(speedup, float(model.reach(np.log(without[:, 0]))))]


def alike(gamma, rate):
    """Return the chances that 1, 2, ... tokens are accepted, each by one chance, of their mean."""
    powers = np.arange(1, gamma + 1)
    return brentq(lambda chance: (chance**powers).mean() - rate, 0.0, 1.0, xtol=1e-15) ** powers


def test_a_grid_of_predictions_is_the_same_in_the_browser_and_in_python(visit, path, pairs):
    grid = [*product(range(2), GAMMAS, FACTORS, RATES)]
    found = visit(path).page.evaluate(
        """grid => {
          const pairs = JSON.parse(document.querySelector(".whatif").dataset.pairs);
          return grid.map(([place, gamma, factor, rate]) => {
            const held = alike(gamma, chanceOf(gamma, rate));
            const { speedup, low, high } = predict(pairs[place], held, factor);
            return [speedup, low, high];
          });
        }""",
        [*map(list, grid)],
    )
    expected = [predicted(pairs[at], alike(gamma, rate), cost) for at, gamma, cost, rate in grid]
    assert np.isfinite(expected).all()
    np.testing.assert_allclose(found, expected, rtol=1e-9)


@pytest.mark.parametrize("factor", FACTORS)
def test_it_breaks_even_where_python_says(visit, path, pairs, factor):
    page, shown = visit(path).page, []
    for at, pair in enumerate(pairs):
        table = break_even([scaled(pair, factor)], pd.DataFrame()).set_index("gamma")
        for gamma, row in table.iterrows():
            found = page.evaluate(
                """([at, gamma, factor]) => {
                  const pair = JSON.parse(document.querySelector(".whatif").dataset.pairs)[at];
                  const rates = byRate(pair, gamma, factor);
                  return ["speedup", "high", "low"].map((key) => breakEven(rates, key));
                }""",
                [at, int(gamma), factor],
            )
            expected = row[["break_even", "break_even_low", "break_even_high"]].astype(float)
            found = np.array(found, dtype=float)  # null is NaN
            np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)
            shown += list(found)
    assert np.isfinite(shown).any()


def answer(page):
    return page.locator(".whatif-answer").inner_text().replace("\xa0", " ")


def ask(page, **values):
    for name, value in values.items():
        page.locator(f"#whatif-{name}").fill(str(value))


def test_the_answer_has_the_numbers_that_were_asked_for(visit, path, pairs):
    page = visit(path).page
    page.get_by_label("Target + draft").select_option("Dense 4B + Draft 0.8B")
    ask(page, gamma=4, rate=60, cost=50)
    value, low, high = predicted(pairs[1], alike(4, 0.6), 0.5)
    ms = scaled(pairs[1], 0.5).model.cost("draft", 4).value
    start = f"γ = 4, 60 % accepted, draft cost {ms:.1f} ms a token: predicted speedup"
    assert answer(page).startswith(f"{start} {value:.2f} [{low:.2f}, {high:.2f}]; ")
    assert page.locator("#whatif svg").first.locator("path.line").count() == 1
    assert "wider than" not in answer(page)
    page.get_by_label("Target + draft").select_option("MoE Q4 + Draft 0.8B")
    ask(page, gamma=32)
    assert page.locator("#whatif-gamma").get_attribute("max") == "32"  # the widest pass: 33
    assert "wider than the widest whose overhead was fitted (9)" in answer(page)


@pytest.mark.parametrize(("size", "locale", "light"), READERS[:2])
def test_it_fits_and_can_be_read_and_keys_move_it(visit, path, size, locale, light):
    visited = visit(path, size, locale, light)
    page = visited.page
    before = answer(page)
    assert LANGUAGES[locale] in before
    page.locator("#whatif-gamma").press("PageUp")
    assert answer(page) != before
    visited.assert_sound()
