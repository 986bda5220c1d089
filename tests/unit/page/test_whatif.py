"""The page's prediction: from fitted costs and measured settings, for fitted pairs alone."""

from dataclasses import replace
from itertools import chain
from json import dumps

import pandas as pd
import pytest

from specmoe.page.page import whatif_pairs

from ..paper_analyses import costed, costed_with_timed_passes, fitted_pairs, full, timed_passes
from .test_page import Reader, page_of


def with_positions(suite="moe_speculative", gammas=(2, 4), chances=(0.9, 0.5, 0.8, 0.0)):
    """Return the campaign with timed passes, and acceptance by position of its MoE."""
    key = {"protocol": "paired", "suite": suite, "target": "moe_q4", "draft": "draft_0.8b"}
    analysis = costed_with_timed_passes()
    key["engine"] = analysis.fitted_costs["engine"].iloc[0]
    rows = [
        {**key, "gamma": gamma, "position": place + 1, "tried": 9, "accepted": 5}
        | {"conditional": chance, "cumulative": 0.5}
        for gamma in gammas
        for place, chance in enumerate(chances[:gamma])
    ]
    return replace(analysis, positions=pd.DataFrame(rows))


def test_costs_and_those_without_each_repeat_are_the_models():
    pairs = {pair["target"]: pair for pair in whatif_pairs(costed_with_timed_passes())}
    assert len(pairs) == 2
    for fitted in fitted_pairs(timed_passes()):
        model = fitted.model
        label = {"moe_q4": "MoE Q4", "dense_4b": "Dense 4B"}[fitted.identity["target"]]
        pair = pairs[label]
        for costs, expected in zip(
            [pair["costs"], *pair["without"]], [model.costs, *model.without], strict=True
        ):
            assert [*chain(*costs.values())] == list(expected)
        knots = (model.gammas, model.widths, model.catchup_widths, model.overhead_widths, (0,))
        assert [tuple(places) for places in pair["knots"].values()] == list(knots)
        assert (pair["replays"], pair["widest"]) == (model.replays, model.widest)
        assert pair["quantile"] == model.quantile


def test_a_single_repeat_is_null_in_the_json():
    costs = costed().fitted_costs
    once = replace(
        costed(), fitted_costs=costs[costs["without_repeat"] == 0].assign(quantile=float("nan"))
    )
    pairs = whatif_pairs(once)
    assert [(pair["quantile"], pair["without"]) for pair in pairs] == [(None, [])] * 2
    dumps(pairs, allow_nan=False)


def test_measured_cells_and_the_profile_of_the_longest_drafts_are_those_of_the_pair():
    moe, dense = whatif_pairs(with_positions())
    assert [setting["gamma"] for setting in moe["settings"]] == [4, 16]
    assert [setting["gamma"] for setting in dense["settings"]] == [4]
    assert all(setting["own"] and 0 < setting["rate"] < 1 for setting in moe["settings"])
    assert moe["profile"] == {
        "suite": "moe_speculative",
        "gamma": 4,
        "chances": [0.9, 0.5, 0.8, 0.0],
    }
    assert dense["profile"] is None


@pytest.mark.parametrize(("make", "there"), [(full, False), (costed, True)])
def test_a_campaign_without_fitted_costs_has_no_control(make, there, root):
    page = Reader(page_of(make(), root))
    assert ("whatif" in page.attributes("id")) == there
