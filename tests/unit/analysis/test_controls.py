"""What makes a cell a control."""

import pandas as pd

from specmoe.analysis.controls import with_controls

from ..made_card import made_card

CELLS = pd.DataFrame(
    [("t", "t"), ("t", "copy"), ("t", "stranger"), ("t", "d")], columns=["target", "draft_model"]
).assign(method="draft-simple")


def kinds(digests):
    """Return the kinds of `CELLS`; `stranger` is unrelated."""
    cards = {model: made_card(sha256=digest) for model, digest in digests.items()}
    return with_controls(CELLS, ["stranger"], cards)["control"].tolist()


def test_a_target_its_copy_and_unrelated_drafts_are_controls():
    digests = {"t": "1", "copy": "1", "stranger": "2", "d": "3"}
    assert kinds(digests) == ["itself", "itself", "unrelated", ""]


def test_only_a_whole_draft_model_is_a_control():
    others = CELLS.assign(method="draft-mtp")
    assert set(with_controls(others, ["stranger"], {})["control"]) == {""}


def test_models_of_unknown_digest_are_no_copies():
    assert kinds({"t": None, "copy": None}) == ["itself", "", "unrelated", ""]
