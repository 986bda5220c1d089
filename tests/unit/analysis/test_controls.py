"""What makes a cell a control."""

import pandas as pd

from specmoe.analysis.controls import with_controls

CELLS = pd.DataFrame(
    [("t", "t"), ("t", "copy"), ("t", "stranger"), ("t", "d")], columns=["target", "draft"]
)


def kinds(digests):
    """Return the kinds of `CELLS`, of which `stranger` is unrelated."""
    return with_controls(CELLS, ["stranger"], digests)["control"].tolist()


def test_a_target_its_copy_and_unrelated_drafts_are_controls():
    digests = {"t": "1", "copy": "1", "stranger": "2", "d": "3"}
    assert kinds(digests) == ["itself", "itself", "unrelated", ""]


def test_models_whose_digests_are_not_known_are_not_taken_for_copies():
    assert kinds({"t": None, "copy": None}) == ["itself", "", "unrelated", ""]


def test_no_cells_stay_none():
    assert with_controls(pd.DataFrame(), [], {}).empty
