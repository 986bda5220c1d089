"""The paper's words are true of the campaign: what was paired, what lengths count, who measured."""

import re
from dataclasses import replace

import pandas as pd
import pytest

from specmoe.analysis.labelled import ordered_audit
from specmoe.figures.figures import FIGURES
from specmoe.paper.latex import command_name
from specmoe.paper.macros import macros
from specmoe.paper.tables import render_table

from ..paper_analyses import full, without_drafts
from ..published_study import ROOT, analysis_of_study, needs_csv

DOCUMENTS = ("main.tex", "supplement.tex", "preamble.tex")
# Every campaign has suites, models and a machine.
ALWAYS = {"suites", "models", "hardware"}
# Where costs are measured, both of their tables have rows.
IMPLIED = dict.fromkeys(["TableVerification", "TableBreakEven"], "CostsMeasured")
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


def nested(text):
    """Yield what a document includes or refers to, each with the switches that it stands in."""
    inside = []
    pattern = r"\\(if[a-zA-Z]+|else|fi)\b|\\(floattable|pagestable|floatfigure|ref)\{([^}]+)\}"
    for word, command, name in re.findall(pattern, text):
        if word == "fi":
            inside.pop()
        elif word == "else":
            inside[-1] = f"not {inside[-1]}"
        elif word:
            inside.append(word.removeprefix("if"))
        else:
            yield command, name, tuple(inside)
    assert inside == []


@pytest.mark.parametrize("document", ["main.tex", "supplement.tex"])
def test_a_table_or_figure_is_only_there_if_there_is_anything_to_show(document):
    kinds = {"floattable": "table", "pagestable": "table", "floatfigure": "figure"}
    found = 0
    for command, name, inside in nested((ROOT / "paper" / document).read_text()):
        if command in kinds and name not in ALWAYS:
            found += 1
            assert command_name(kinds[command], name) in inside, name
    assert found > 8


@pytest.mark.parametrize("document", ["main.tex", "supplement.tex"])
def test_a_table_or_figure_is_only_referred_to_where_it_is_there(document):
    for command, name, inside in nested((ROOT / "paper" / document).read_text()):
        kind, _, of = name.partition(":")
        if command == "ref" and kind in ("tab", "fig") and of not in ALWAYS:
            switch = command_name({"tab": "table", "fig": "figure"}[kind], of)
            assert switch in inside or IMPLIED.get(switch) in inside, (name, inside)


def test_the_study_is_out_of_the_paper_of_ones_own_models():
    own = campaign(of_study=False)
    assert "CampaignOfStudy" in switches(full())
    assert "CampaignOfStudy" not in switches(own)
    told = [
        section
        for document in ("main.tex", "supplement.tex")
        for section in re.findall(
            r"\\section\{([^}]*(?:study|claims|as published)[^}]*)\}",
            without_study((ROOT / "paper" / document).read_text()),
        )
    ]
    # These stand inside the switches of tables that have rows for the study's campaigns alone.
    assert set(told) == {
        "What the published study prints",
        "The study's claims",
        "The study side by side",
    }


def without_study(text):
    """Return a document without what stands between the study's switch and its end."""
    kept, inside = [], []
    for part in re.split(r"(\\if[a-zA-Z]+\b|\\else\b|\\fi\b)", text):
        if part == r"\fi":
            inside.pop()
        elif part == r"\else":
            inside[-1] = f"not {inside[-1]}"
        elif part.startswith(r"\if"):
            inside.append(part.removeprefix(r"\if"))
        elif "CampaignOfStudy" not in inside:
            kept.append(part)
    return "".join(kept)


def test_a_campaign_without_drafts_has_every_switch():
    defined = set(re.findall(r"\\newif\\if(\w+)", macros(without_drafts())))
    asked = set(re.findall(r"\\if((?:Campaign|Protocol|Measured|Table|Long|Advised)\w+)", TEXTS))
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
