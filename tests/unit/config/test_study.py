"""A campaign is about the published study if it measures one of its targets, and else is not."""

import pandas as pd
import pytest

from specmoe.config.study import TARGETS, is_of_study


def test_its_targets_are_those_of_its_table_of_every_cell(root):
    printed = pd.read_csv(root / "resources/reported/table5.csv", comment="#")
    assert set(printed["target"]) == TARGETS


@pytest.mark.parametrize("name", ["demo", "mechanism", "true-shape"])
def test_the_campaigns_that_ship_are_about_it(root, name):
    runs = pd.read_parquet(root / f"resources/campaigns/{name}/runs.parquet", columns=["target"])
    assert is_of_study(runs["target"])


def test_models_of_ones_own_are_not():
    assert not is_of_study(["target", "my-moe"])
    assert is_of_study(["target", "moe_q4"])
