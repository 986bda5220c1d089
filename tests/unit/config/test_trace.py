"""The demonstration follows from the configuration."""

import pytest
import yaml

from specmoe.config.block import Side, Stop
from specmoe.config.load import load
from specmoe.config.matrix import Demonstration, choose_demonstration
from specmoe.config.methods import Method

from ...conftest import ROOT, merge


def chosen(data) -> Demonstration:
    found = choose_demonstration(load(data, ROOT), gpu=False)
    assert found is not None
    return found


def test_the_first_pair_of_the_campaign_is_decoded(synthetic):
    what = chosen(synthetic)
    block = what.block
    side = Side(4, method=Method.DRAFT, draft="draft_0.8b", draft_model="draft_0.8b")
    assert block.target == "moe_q4"
    assert (what.target_label, what.draft_label) == ("MoE Q4", "0.8B")
    assert [source.file for source in block.prompts] == ["resources/prompts/short_factual.txt"]
    assert (block.n_predict, block.temperature, block.sides) == (64, 0, (side,))
    assert what.synthetic


def test_a_text_is_sent_as_the_campaign_sends_it(study):
    block = chosen(merge(study, yaml.safe_load((ROOT / "config/demo.yaml").read_text()))).block
    assert block.prompts[0].prompt == "chats-short_factual"
    assert block.sends_chats and block.stop == Stop.EOS


@pytest.mark.parametrize(
    "campaign",
    [{"suites": ["A", "C"]}, {"suites": ["F"]}, {"suites": ["A", "B"], "source": "published"}],
)
def test_a_campaign_without_drafts_after_a_text_or_of_published_rows_has_none(study, campaign):
    study["campaign"] |= campaign
    assert choose_demonstration(load(study, ROOT), gpu=False) is None
