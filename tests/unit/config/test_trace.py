"""The demonstration follows from the configuration."""

import pytest

from specmoe.config.block import Arm
from specmoe.config.load import load
from specmoe.config.matrix import choose_demonstration
from specmoe.config.methods import Method

from ...conftest import ROOT


def test_the_first_pair_of_the_campaign_is_decoded(synthetic):
    block = choose_demonstration(load(synthetic, ROOT), gpu=False)
    arm = Arm(4, method=Method.DRAFT, draft="draft_0.8b", draft_model="draft_0.8b")
    assert block.target == "moe_q4"
    assert [source.file for source in block.prompts] == ["resources/prompts/short_factual.txt"]
    assert (block.n_predict, block.temperature, block.arms) == (64, 0, (arm,))


@pytest.mark.parametrize(
    "campaign",
    [
        {"suites": ["moe_baseline", "dense_baseline"]},
        {"suites": ["prompt_length"]},
        {"suites": ["moe_baseline", "moe_speculative"], "source": "study_rows"},
    ],
)
def test_a_campaign_without_drafts_after_a_text_or_of_published_rows_has_none(study, campaign):
    study["campaign"] |= campaign
    assert choose_demonstration(load(study, ROOT), gpu=False) is None
