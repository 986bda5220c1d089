"""The study beside a campaign: printed, recomputed and measured numbers, and the times of all."""

from dataclasses import replace
from math import isnan

import pandas as pd
import pytest

from specmoe.analysis.build import Analysis, required_times
from specmoe.claims.printed_numbers import compare, compare_printed, read_reported, recompute
from specmoe.config.load import RENAMED, check_compare_with, load
from specmoe.errors import ConfigError, SchemaError
from specmoe.figures.figures import FIGURES
from specmoe.paper.macros import macros
from specmoe.paper.tables import NOT_MEASURED, render_table

from ..paper_analyses import compared_with, full, named, single, without_drafts
from ..published_study import ROOT, analysis_of_study, needs_csv

REPORTED = read_reported(ROOT / "resources/reported")
CELL = "speedup moe_q4 draft_0.8b 4"


def numbers(own, *others):
    """Return the comparison's numbers of CELL: printed, recomputed, measured."""
    row = compare_printed(REPORTED, own, others).set_index("what").loc[CELL]
    return tuple(row[["printed", "recomputed", "measured"]])


def rows(analysis):
    """Return the rows of the comparison as lists of cells."""
    text = render_table("comparison", analysis, ROOT / "paper/templates")
    return [
        [cell.strip() for cell in line.removesuffix(r"\\").split(" & ")]
        for line in text.splitlines()
        if line.endswith(r"\\")
    ]


# Printed, recomputed, measured.


def test_a_measured_campaign_alone_has_no_recomputed_numbers():
    printed, recomputed, measured = numbers(full())
    # By hand: 60 tok/s with the draft, 50 without.
    assert (printed, measured) == ("1.15", pytest.approx(1.2))
    assert isnan(recomputed)


def test_the_studys_own_rows_alone_have_no_measured_numbers():
    _, recomputed, measured = numbers(named(full(), "published", "published"))
    assert recomputed == pytest.approx(1.2)
    assert isnan(measured)


def test_the_studys_rows_are_found_among_the_campaigns_compared():
    study = named(full(), "published", "published")
    study = replace(study, cells=study.cells.assign(speedup_unpaired=1.15))
    other = replace(full(), cells=full().cells.assign(speedup_unpaired=9.0))
    assert numbers(full(), named(other, "other"), study) == ("1.15", 1.15, pytest.approx(1.2))


def test_other_campaigns_than_this_one_are_not_its_measurement():
    study = named(full(), "published", "published")
    assert isnan(numbers(study, named(full(), "other"))[2])


def test_the_comparison_has_every_cell_of_table_5_and_what_is_said_first_and_last():
    compared = compare_printed(REPORTED, full(), [])
    assert (compared["source"] == "Table 5").sum() == 18 * 3
    headline = compared[compared["source"] != "Table 5"]
    assert "speedup of MoE, highest" in set(headline["what"])
    assert not headline["source"].str.startswith("Section").any()


@needs_csv
def test_recomputed_are_the_numbers_that_the_study_is_checked_by(_study, tmp_path):
    analysis = analysis_of_study(_study, tmp_path)
    compared = compare_printed(REPORTED, analysis, [])
    expected = compare(REPORTED, analysis).set_index(["source", "what"])["recomputed"]
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
    table = rows(analysis)
    assert table[2] == ["MoE Q4", "Draft 0.8B", "4", "1.15", "--", "1.20", "2.6", "--", "50.0"]
    highest = next(row for row in table if "speedup of MoE, highest" in row[0])
    assert highest[1:] == ["1.30", "--", "1.40"]


def test_a_bound_is_shown_as_one_with_the_digits_that_tell():
    compared = compare_printed(REPORTED, full(), []).assign(measured=3.96)
    shown = rows(replace(full(), comparison=compared))
    [bound] = [row for row in shown if "in any suite" in row[0]]
    assert bound[1:] == ["< 4", "--", "3.96"]


def test_cells_that_nobody_measured_are_left_out():
    table = rows(replace(full(), comparison=compare_printed(REPORTED, full(), [])))
    assert not any("moe" in row[0] for row in table)  # Q8 is not in this campaign
    assert "MoE Q8" not in str(table)


def test_a_campaign_of_other_models_has_no_cells_of_the_study():
    nothing = compare_printed(REPORTED, without_drafts(), []).assign(measured=float("nan"))
    text = render_table(
        "comparison", replace(without_drafts(), comparison=nothing), ROOT / "paper/templates"
    )
    assert text == NOT_MEASURED


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
    config = load(study | {"compare_with": ["published", "demo", "mine"]}, ROOT)
    for name, overlay in [
        ("published", "config/published.yaml"),
        ("demo", "resources/campaigns/demo/campaign.yaml"),
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


@pytest.mark.parametrize("names", [["m2-ultra"], ["demo", "demo"]])
def test_a_campaign_is_compared_with_others_once(study, names):
    with pytest.raises(ConfigError, match=r"config: compare_with: name each campaign once"):
        load(study | {"compare_with": names}, ROOT)


def test_a_key_of_an_earlier_release_is_refused_with_its_new_name(study, monkeypatch):
    with pytest.raises(ConfigError, match=r"^config: beside: this key is now compare_with$"):
        load(study | {"beside": []}, ROOT)
    monkeypatch.setitem(RENAMED, "measurement.tokens", "measurement.n_predict")
    load(study, ROOT)
    measurement = study["measurement"] | {"tokens": 64}
    with pytest.raises(ConfigError, match=r"tokens: this key is now measurement\.n_predict$"):
        load(study | {"measurement": measurement}, ROOT)


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
