"""A campaign is about the published study if it measures one of the study's targets."""

import pandas as pd
import pytest

from specmoe.config.study import TARGETS, is_of_study


def test_the_targets_are_those_of_the_studys_table_of_cells(root):
    printed = pd.read_csv(root / "resources/reported/table5.csv", comment="#")
    assert set(printed["target"]) == TARGETS


@pytest.mark.parametrize("name", ["synthetic", "mechanism", "true-shape"])
def test_the_shipped_campaigns_are_about_the_study(root, name):
    runs = pd.read_parquet(root / f"resources/campaigns/{name}/runs.parquet", columns=["target"])
    assert is_of_study(runs["target"])


def test_other_models_are_not():
    assert not is_of_study(["target", "my-moe"])
    assert is_of_study(["target", "moe_q4"])
