"""A campaign is about the published study if it says so and measures one of its targets."""

import pandas as pd

from specmoe.config.models import TARGETS


def test_the_targets_are_those_of_the_studys_table_of_cells(root):
    printed = pd.read_csv(root / "resources/reported/table5.csv", comment="#")
    assert set(printed["target"]) == TARGETS
