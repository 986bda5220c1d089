"""The paper's words are true of the campaign: what was paired, what lengths count, who measured."""

import re
from dataclasses import replace

import pandas as pd
import pytest

from specmoe.figures import FIGURES
from specmoe.macros import macros
from specmoe.tables import render_table
from specmoe.views import ordered_audit

from .paper_analyses import full, without_drafts
from .published_study import ROOT, analysis_of_study, needs_csv

DOCUMENTS = ("main.tex", "supplement.tex", "preamble.tex")
TEXTS = "".join((ROOT / "paper" / name).read_text() for name in DOCUMENTS)


def campaign(**columns):
    """Return an analysis with those columns of its campaign."""
    analysis = full()
    return replace(analysis, campaign=analysis.campaign.assign(**columns))


def switches(analysis):
    """Return which of main.tex's switches are on."""
    pairs = re.findall(r"\\newif\\if(\w+) \\\1(true|false)", macros(analysis))
    return {name for name, state in pairs if state == "true"}


def daggers(analysis):
    """Return, for each cell of the table, whether its speedup is marked."""
    text = render_table("speculation", analysis, ROOT / "paper/templates")
    return [r"$^\dagger$" in line for line in text.splitlines() if "[" in line][1:]


def test_a_paired_campaign_says_so_and_marks_no_cell():
    assert {"CampaignPaired", "ProtocolPaired"} <= switches(full())
    assert switches(full()).isdisjoint({"CampaignPublished", "ProtocolPublished"})
    assert daggers(full()) == [False] * 5


def test_cells_without_baselines_of_their_own_are_marked():
    analysis = full()
    paired = analysis.cells["target"] != "dense_4b"
    unpaired = replace(analysis, cells=analysis.cells.assign(paired=paired))
    assert "CampaignPaired" not in switches(unpaired)
    assert daggers(unpaired) == [False, False, False, True, True]


def test_a_campaign_of_both_protocols_is_told_of_both():
    mixed = campaign(protocol="published, paired")
    assert {"ProtocolPaired", "ProtocolPublished"} <= switches(mixed)


def test_a_table_that_would_fill_a_page_is_left_to_the_supplement():
    analysis = full()
    more = [analysis.cells.assign(gamma=analysis.cells["gamma"] + 100 * step) for step in range(7)]
    assert "LongSpeculation" not in switches(analysis)
    assert "LongSpeculation" in switches(replace(analysis, cells=pd.concat(more)))


def test_a_campaign_without_drafts_has_every_switch():
    defined = set(re.findall(r"\\newif\\if(\w+)", macros(without_drafts())))
    asked = set(re.findall(r"\\if((?:Campaign|Protocol|Measured|Table|Long)\w+)", TEXTS))
    assert asked <= defined


@pytest.mark.parametrize("unit", ["tokens", "words"])
def test_lengths_are_named_by_what_they_count(unit):
    analysis = campaign(length_unit=unit)
    assert f"({unit})" in render_table("prompt_lengths", analysis, ROOT / "paper/templates")
    figure = FIGURES["prompt_lengths"](analysis)
    assert figure.get_supxlabel() == f"prompt length ({unit})"
    assert rf"\newcommand{{\CampaignLengthUnit}}{{{unit}}}" in macros(analysis)


@needs_csv
def test_the_published_study_is_neither_measured_here_nor_paired(_study, tmp_path):
    analysis = analysis_of_study(_study, tmp_path)
    on = switches(analysis)
    assert {"CampaignPublished", "ProtocolPublished"} <= on
    assert on.isdisjoint({"CampaignPaired", "ProtocolPaired", "CampaignSynthetic"})
    assert daggers(analysis) == [True] * 18
    assert analysis.campaign["length_unit"].tolist() == ["words"]


def test_the_audit_lists_a_target_alone_before_its_drafts_and_the_campaign_last():
    cells = [("all", "all"), ("dense_4b", "draft_2b"), ("moe_q4", "draft_0.8b"), ("moe_q4", "none")]
    audit = pd.DataFrame(cells, columns=["target", "draft"]).assign(
        protocol=["all", "paired", "paired", "paired"],
        engine=["all", "built", "built", "built"],
        gamma=pd.array([None, 4, 4, 0], dtype="Int64"),
        runs=1,
        marked=0,
    )
    ordered = ordered_audit(replace(full(), audit=audit))
    assert list(ordered[["target", "draft"]].itertuples(index=False, name=None)) == [
        ("moe_q4", "none"), ("moe_q4", "draft_0.8b"), ("dense_4b", "draft_2b"), ("all", "all")
    ]  # fmt: skip
