"""The study beside a campaign: printed, recomputed and measured numbers, and the times of all."""

from dataclasses import replace
from math import isnan

import pandas as pd
import pytest

from specmoe.analysis.build import required_times
from specmoe.analysis.registry import Analysis
from specmoe.claims.printed_numbers import compare, compare_printed, read_reported, recompute
from specmoe.config.load import check_compare_with, load
from specmoe.errors import ConfigError, SchemaError
from specmoe.figures.figures import FIGURES
from specmoe.paper.macros import macros

from ..paper_analyses import compared_with, full, named, single, without_drafts
from ..published_study import ROOT, needs_csv
from ..rendered_tables import page_tables, rows

REPORTED = read_reported(ROOT / "resources/reported")
CELL = "speedup moe_q4 draft_0.8b 4"


def numbers(own, *others):
    """Return the comparison's numbers of CELL: recomputed, measured."""
    row = compare_printed(REPORTED, own, others).set_index("what").loc[CELL]
    assert row["printed"] == "1.15"
    return [None if isnan(row[key]) else round(row[key], 6) for key in ("recomputed", "measured")]


def with_speedup(speedup, name, source="measured"):
    cells = full().cells.assign(speedup_unpaired=speedup)
    return replace(named(full(), name, source), cells=cells)


# Printed, recomputed, measured.


def test_recomputed_is_of_the_studys_rows_and_measured_of_another_campaign():
    study, other = with_speedup(1.15, "published", "published"), with_speedup(9.0, "other")
    # By hand: 60 tok/s with the draft, 50 without.
    assert numbers(full()) == [None, 1.2]
    assert numbers(study) == [1.15, None]
    assert numbers(full(), other, study) == [1.15, 1.2]
    assert numbers(study, other) == [1.15, None]


def test_the_comparison_has_every_cell_of_table_5_and_the_headline_numbers():
    compared = compare_printed(REPORTED, full(), [])
    assert (compared["source"] == "Table 5").sum() == 18 * 3
    headline = compared[compared["source"] != "Table 5"]
    assert "speedup of MoE, highest" in set(headline["what"])
    assert not headline["source"].str.startswith("Section").any()


@needs_csv
def test_recomputed_are_the_numbers_that_the_study_is_checked_by(published_analysis):
    compared = compare_printed(REPORTED, published_analysis, [])
    expected = compare(REPORTED, published_analysis).set_index(["source", "what"])["recomputed"]
    keys = pd.MultiIndex.from_frame(compared[["source", "what"]])
    assert compared["recomputed"].tolist() == expected.loc[keys].tolist()
    assert compared["measured"].isna().all()


def test_a_number_that_two_suites_give_is_none():
    analysis = full()
    of_b = analysis.cells["suite"] == "B"
    one, other = (analysis.cells[of_b].assign(suite=suite) for suite in "GQ")
    rest = analysis.cells[~of_b]
    assert CELL in recompute(replace(analysis, cells=pd.concat([rest, one])))
    assert CELL not in recompute(replace(analysis, cells=pd.concat([rest, one, other])))


def test_where_the_studys_own_suites_are_measured_their_numbers_count():
    analysis = full()
    faster = analysis.cells[analysis.cells["suite"] == "B"].assign(suite="G")
    faster["tokens_per_second"] *= 2
    both = replace(analysis, cells=pd.concat([analysis.cells, faster], ignore_index=True))
    assert recompute(both)[CELL] == recompute(analysis)[CELL]


def test_no_curve_is_not_a_count_of_rising_ones():
    curves = "speedup curves that rise with gamma"
    assert recompute(full())[curves] == 2  # both drafts of the MoE; one of them has a single γ
    assert isnan(recompute(without_drafts())[curves])


# The table.


def test_the_table_has_both_quantities_of_a_cell_then_the_headline():
    analysis = replace(full(), comparison=compare_printed(REPORTED, full(), []))
    first = rows("comparison", analysis)[0]
    assert first == ["MoE Q4", "Draft 0.8B", "4", "1.15", "–", "1.20", "2.6", "–", "50.0"]
    assert ["speedup of MoE, highest", "1.30", "–", "1.40"] in rows("headline", analysis)


def test_a_bound_is_shown_with_the_digits_that_decide():
    compared = compare_printed(REPORTED, full(), []).assign(measured=3.96)
    shown = rows("headline", replace(full(), comparison=compared))
    [bound] = [row for row in shown if "in any suite" in row[0]]
    assert bound[1:] == ["< 4", "–", "3.96"]


def test_cells_without_measurements_are_left_out():
    analysis = replace(full(), comparison=compare_printed(REPORTED, full(), []))
    table = rows("comparison", analysis)
    assert not any("moe" in row[0] for row in table)  # Q8 is not in this campaign
    assert "MoE Q8" not in str(table)


def test_a_campaign_of_other_models_has_no_cells_of_the_study():
    nothing = compare_printed(REPORTED, without_drafts(), []).assign(measured=float("nan"))
    tables = page_tables(replace(without_drafts(), comparison=nothing))
    assert {"comparison", "headline"}.isdisjoint(tables)


# The figure of required times.


def test_times_of_all_campaigns_are_one_table_and_one_figure():
    other = named(full(), "other")
    times = required_times([full(), other])
    assert times["campaign"].drop_duplicates().tolist() == ["by_hand", "other"]
    [legend] = FIGURES["required_time"](replace(full(), required_time=times)).legends
    names = [text.get_text().partition(",")[0] for text in legend.get_texts()]
    assert names == ["by_hand", "by_hand", "other", "other"]


def test_a_campaign_compared_with_brings_its_own_times_alone():
    other = named(full(), "other")
    other = replace(other, required_time=required_times([other, named(full(), "third")]))
    assert set(required_times([full(), other])["campaign"]) == {"by_hand", "other"}


def test_campaigns_without_drafts_have_no_times():
    assert required_times([without_drafts(), named(without_drafts(), "other")]).empty
    assert len(required_times([without_drafts(), named(full(), "other")])) > 0


def test_the_text_names_the_campaigns_compared():
    text = macros(compared_with(full(), named(full(), "o_1"), named(without_drafts(), "o_2")))
    assert r"\newcommand{\CampaignsCompared}{o\_1, o\_2}" in text
    assert r"\CampaignComparedtrue" in text
    assert r"\CampaignComparedfalse" in macros(full())


# The configuration.


def test_a_campaign_that_was_not_rendered_is_refused_with_the_command(study, tmp_path):
    config = load(study | {"compare_with": ["published", "synthetic", "mine"]}, ROOT)
    for name, overlay in [
        ("published", "config/published.yaml"),
        ("synthetic", "resources/campaigns/synthetic/campaign.yaml"),
        ("mine", "<the configuration of mine>"),
    ]:
        with pytest.raises(ConfigError) as caught:
            check_compare_with(config, tmp_path, ROOT)
        message = str(caught.value)
        assert f"there is no {tmp_path / name / 'analysis'}; render campaign {name!r}" in message
        assert message.endswith(f"--configfile {ROOT / overlay}" if "/" in overlay else overlay)
        assert "\n" not in message
        (tmp_path / name / "analysis").mkdir(parents=True)
    check_compare_with(config, tmp_path, ROOT)


@pytest.mark.parametrize("names", [["m2-ultra"], ["synthetic", "synthetic"]])
def test_a_campaign_is_compared_with_others_once(study, names):
    with pytest.raises(ConfigError, match=r"config: compare_with: name each campaign once"):
        load(study | {"compare_with": names}, ROOT)


def test_a_key_of_an_earlier_release_is_refused_with_its_new_name(study):
    with pytest.raises(ConfigError, match=r"^config: beside: this key is now compare_with$"):
        load(study | {"beside": []}, ROOT)


def test_an_analysis_that_lacks_a_table_is_refused_by_name(tmp_path):
    single().write(tmp_path)
    (tmp_path / "comparison.parquet").unlink()
    with pytest.raises(SchemaError, match=r"comparison\.parquet is not there; render"):
        Analysis.read(tmp_path)


def test_a_sweep_of_lengths_at_another_gamma_is_not_the_studys():
    both = full().sweep
    lengths = recompute(replace(full(), sweep=pd.concat([both, both.assign(suite="L", gamma=4)])))
    assert lengths["speedup by prompt length 64"] == pytest.approx(1.1)
    alone = recompute(replace(full(), sweep=both.assign(suite="L", gamma=4)))
    assert "speedup by prompt length 64" not in alone
