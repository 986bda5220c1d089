"""Campaigns are merged if only their machine differs, and else what differs is named."""

from dataclasses import replace

import pandas as pd
import pytest

from specmoe.analysis.merged import merged, refuse_unlike
from specmoe.analysis.terminal import describe_merged
from specmoe.errors import ConfigError

from ..paper_analyses import costed, full, single
from ..shared_analyses import with_merged


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
        (elsewhere(engine_commit="fedcba"), "differ in engine_commit: 0123456789abcdef and fedcba"),
        (elsewhere(n_predict=32), "differ in n_predict: 100 and 32"),
        (
            replace(elsewhere(), models=full().models.assign(sha256="1" * 64)),
            "differ in their models: dense_4b, draft_0.8b, draft_2b, moe_q4",
        ),
        (replace(single(), models=full().models), "differ in 5 settings of their matrix: B/dense"),
    ],
)
def test_campaigns_that_differ_in_more_are_refused_by_what_differs(other, named):
    with pytest.raises(ConfigError, match=f"{named}.*their machine alone are merged"):
        refuse_unlike([full(), other])
    assert merged([full(), other]).empty


def test_merging_needs_a_second_campaign():
    with pytest.raises(ConfigError, match="compare_with"):
        refuse_unlike([full()])
    assert isinstance(merged([full()]), pd.DataFrame)


def test_the_terminal_shows_a_line_for_each_setting_and_machine():
    text = describe_merged(with_merged())
    frame = with_merged().merged
    assert len(text.splitlines()) == 2 + len(frame)
    assert "break-even %" in text
    assert "J/token" not in text  # nobody measured it
