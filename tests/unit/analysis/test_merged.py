"""Campaigns are merged if only their machine differs, and else what differs is named."""

from dataclasses import replace

import pandas as pd
import pytest

from specmoe.analysis.merged import identity, merged, refuse_unlike
from specmoe.analysis.terminal import describe_merged
from specmoe.config.load import load
from specmoe.errors import ConfigError

from ...conftest import ROOT
from ..paper_analyses import costed, full, single
from ..shared_analyses import with_merged

IDENTITY = {"seed": "42", "engine_commit": "0123", "model moe_q4": "a" * 64}


def saying(analysis, facts):
    """Return an analysis whose measurements are identified by facts."""
    return replace(analysis, identity=pd.DataFrame(facts.items(), columns=["name", "value"]))


def elsewhere(**facts):
    return replace(full(), campaign=full().campaign.assign(campaign="elsewhere", **facts))


def test_every_setting_has_a_row_for_each_machine_with_its_own_break_even():
    frame = merged([full(), elsewhere(host_chip="Xeon")])
    assert frame["machine"].unique().tolist() == ["Processor & Sons (by_hand)", "Xeon (elsewhere)"]
    assert frame.groupby("campaign").size().nunique() == 1
    joined = with_merged().merged
    known = joined[joined["campaign"] == costed().name]
    assert known["break_even"].notna().any()
    assert joined.loc[joined["campaign"] == "elsewhere", "break_even"].isna().all()


def test_a_gpu_that_computes_names_its_machine():
    frame = merged([full(), elsewhere(host_gpu="H200", backend="cuda")])
    assert frame["machine"].unique().tolist()[1] == "H200 (elsewhere)"


@pytest.mark.parametrize(
    ("other", "named"),
    [
        ({"seed": "43"}, "differ in seed: 42 and 43"),
        ({"engine_commit": ""}, "differ in engine_commit: 0123 and none"),
        ({"model moe_q4": "b" * 64}, "differ in model moe_q4: a{64} and b{64}"),
    ],
)
def test_campaigns_that_differ_in_more_are_refused_by_what_differs(other, named):
    analyses = [saying(full(), IDENTITY), saying(elsewhere(), IDENTITY | other)]
    with pytest.raises(ConfigError, match=f"{named}.*their machine alone are merged"):
        refuse_unlike(analyses)
    assert merged(analyses).empty


def test_campaigns_of_other_settings_are_refused_by_their_names():
    with pytest.raises(ConfigError, match="differ in 5 settings of their matrix: B/dense"):
        refuse_unlike([full(), single()])


def test_a_prompt_without_a_digest_is_compared_by_its_length_alone():
    text = {"text of prompt code for moe_q4": "c" * 64}
    analyses = [saying(full(), IDENTITY | text), saying(elsewhere(), IDENTITY)]
    refuse_unlike(analyses)
    assert not merged(analyses).empty


def test_what_identifies_a_campaign_is_what_its_rows_say(synthetic):
    config = load(synthetic, ROOT)
    rows = {
        "target_model": ["moe_q4", "moe_q4", "dense_4b"],
        "target_sha256": ["a", "a", "b"],
        "draft_model": [None, "draft_2b", None],
        "draft_sha256": [None, "d", None],
        "prompt": ["code", "code", "code"],
        "n_prompt": [14, 14, 14],
        "prompt_sha256": ["e", "e", None],
        "engine_commit": "0123",
    }
    facts = dict(identity(pd.DataFrame(rows), config).itertuples(index=False))
    conditions = ("protocol", "n_predict", "temperature", "seed", "context", "stop")
    assert [facts.pop(name) for name in conditions] == [
        *("paired", "64", "0.0", "42", "2048", "length")
    ]
    assert facts == {
        "engine_commit": "0123",
        "engine_options": "",
        "prompts": "code",
        "model moe_q4": "a",
        "model dense_4b": "b",
        "model draft_2b": "d",
        "tokens of prompt code for moe_q4": "14",
        "text of prompt code for moe_q4": "e",
        "tokens of prompt code for dense_4b": "14",
    }


def test_merging_needs_a_second_campaign():
    with pytest.raises(ConfigError, match="compare_with"):
        refuse_unlike([full()])
    assert isinstance(merged([full()]), pd.DataFrame)


def test_the_terminal_shows_a_line_for_each_setting_and_machine():
    text = describe_merged(with_merged())
    frame = with_merged().merged
    assert len(text.splitlines()) == 2 + len(frame)
    assert "break-even %" in text
