"""The paper's words are true of the campaign: what was paired, what lengths count, who measured."""

import re
from dataclasses import replace

import pandas as pd
import pytest

from specmoe.figures.figures import FIGURES
from specmoe.paper.latex import command_name

from .. import rendered_tables
from ..paper_analyses import full
from ..published_study import ROOT, analysis_of_study, needs_csv
from ..rendered_tables import latex

# Every campaign has suites, models and a machine.
ALWAYS = {"suites", "models", "hardware"}
# Where costs are measured, both of their tables have rows.
IMPLIED = dict.fromkeys(["TableVerification", "TableBreakEven"], "CostsMeasured")
# Simulated, so they are the same in every campaign.
IMPLIED |= {"TableAnswers": "TableAdvice"}


def campaign(**columns):
    """Return an analysis with those columns of its campaign."""
    analysis = full()
    return replace(analysis, campaign=analysis.campaign.assign(**columns))


def switches(analysis):
    """Return which of main.tex's switches are on."""
    return {name for name, on in rendered_tables.switches(analysis).items() if on}


def daggers(analysis):
    """Return, for each cell of the table, whether its speedup is marked."""
    text = latex("speculation", analysis)
    return [r"$^\dagger$" in line for line in text.splitlines() if "[" in line][1:]


@pytest.mark.parametrize(
    ("columns", "on", "off"),
    [
        (
            *({}, {"CampaignPaired", "ProtocolPaired", "CampaignOfStudy"}),
            {"CampaignPublished", "ProtocolPublished", "LongSpeculation"},
        ),
        ({"protocol": "published, paired"}, {"ProtocolPaired", "ProtocolPublished"}, set()),
        ({"of_study": False}, set(), {"CampaignOfStudy"}),
    ],
)
def test_the_switches_say_how_was_measured(columns, on, off):
    shown = switches(campaign(**columns))
    assert on <= shown
    assert off.isdisjoint(shown)


def test_cells_without_baselines_of_their_own_are_marked():
    analysis = full()
    assert daggers(analysis) == [False] * 5
    paired = analysis.cells["target"] != "dense_4b"
    unpaired = replace(analysis, cells=analysis.cells.assign(paired=paired))
    assert "CampaignPaired" not in switches(unpaired)
    assert daggers(unpaired) == [False, False, False, True, True]


def test_a_table_that_would_fill_a_page_is_left_to_the_supplement():
    analysis = full()
    more = [analysis.cells.assign(gamma=analysis.cells["gamma"] + 100 * step) for step in range(7)]
    assert "LongSpeculation" in switches(replace(analysis, cells=pd.concat(more)))


def pieces(document):
    """Yield the pieces of a document, each with the switches that it stands in."""
    inside = []
    text = (ROOT / "paper" / document).read_text()
    for part in re.split(r"(\\if[a-zA-Z]+\b|\\else\b|\\fi\b)", text):
        if part == r"\fi":
            inside.pop()
        elif part == r"\else":
            inside[-1] = f"not {inside[-1]}"
        elif part.startswith(r"\if"):
            inside.append(part.removeprefix(r"\if"))
        else:
            yield part, tuple(inside)
    assert inside == []


@pytest.mark.parametrize("document", ["main.tex", "supplement.tex"])
def test_a_table_or_figure_is_referred_to_only_where_it_is_included(document):
    for part, inside in pieces(document):
        for kind, of in re.findall(r"\\ref\{(tab|fig):([^}]+)\}", part):
            switch = command_name({"tab": "table", "fig": "figure"}[kind], of)
            shown = {switch, IMPLIED.get(switch)} & set(inside)
            assert shown or of in ALWAYS, (of, inside)


def test_the_study_is_out_of_the_paper_of_ones_own_models():
    title = r"\\section\{([^}]*(?:study|claims|as published)[^}]*)\}"
    titles = {
        section
        for document in ("main.tex", "supplement.tex")
        for part, inside in pieces(document)
        if "CampaignOfStudy" not in inside
        for section in re.findall(title, part)
    }
    # These stand inside the switches of tables that have rows for the study's campaigns alone.
    assert titles == {
        "What the published study prints",
        "The study's claims",
        "The study side by side",
    }


@pytest.mark.parametrize("unit", ["tokens", "words"])
def test_lengths_are_named_by_what_they_count(unit):
    analysis = campaign(length_unit=unit)
    assert f"({unit})" in latex("levels", analysis)
    figure = FIGURES["levels"](analysis)
    assert figure.axes[0].get_xlabel() == f"Prompt length ({unit})"


@needs_csv
def test_a_round_of_the_study_takes_less_the_more_it_drafts(_study, tmp_path):
    text = rendered_tables.macros(analysis_of_study(_study, tmp_path))
    for name, value in [
        ("RoundTarget", "Dense 9B"),
        ("RoundGammas", "4, 8 and 16"),
        ("RoundMs", "33.3, 19.6 and 15.7"),
        ("RoundLongestMsMin", "14.1"),
        ("RoundLongestMsMax", "16.1"),
        ("RoundStepMsMin", "14.9"),
        ("RoundStepMsMax", "29.9"),
    ]:
        assert rf"\newcommand{{\{name}}}{{{value}}}" in text
