"""The numbers and switches of the text: those that it cites, and no others."""

import re
from dataclasses import replace

import pandas as pd
import pytest

from specmoe.claims.printed_numbers import compare_printed, read_reported
from specmoe.paper.latex import command_name
from specmoe.paper.macro_list import answer_counts
from specmoe.paper.macros import exhibits
from specmoe.tables.exhibits import read_figures

from ...conftest import ROOT
from ..paper_analyses import (
    analysis_of,
    baseline_runs,
    controlled,
    costed,
    full,
    several_methods,
    single,
    speculative_runs,
    without_drafts,
)
from ..rendered_tables import ABOUT_FIGURES, SPECIFICATIONS, macros, switches

PAPER = ROOT / "paper"
# Not what a campaign that was rendered in this folder left there.
WRITTEN = [PAPER / f"{name}.tex" for name in ("main", "preamble", "supplement")]
DOCUMENTS = "".join(path.read_text() for path in [*WRITTEN, SPECIFICATIONS])
PAGE = "".join(path.read_text() for path in sorted(PAPER.glob("site/*.j2")))
# What the documents define, and TeX.
TEX_COMMANDS = {
    *("ControlsSentence", "DeclareUnicodeCharacter", "PagesCaption", "OtherSessions"),
}


def commands(analysis):
    """Return the macros as a dict from command to value."""
    return dict(re.findall(r"^\\newcommand{\\(\w+)}{(.*)} %", macros(analysis), re.MULTILINE))


def of_two_engines():
    commits = f"{'a' * 40}, {'b' * 7}"
    return replace(full(), campaign=full().campaign.assign(engine_commit=commits))


def of_two_prompts():
    rows = baseline_runs(["moe_q4"], ["code", "chinese"], 2)
    rows += speculative_runs("B", "moe_q4", "draft_2b", 4, [60, 60], "code")
    rows += speculative_runs("B", "moe_q4", "draft_2b", 8, [60, 60], "code")
    return analysis_of([*rows, *speculative_runs("G", "moe_q4", "draft_2b", 2, [60], "chinese")])


VALUES = [
    (
        full,
        {
            "CampaignName": r"by\_hand",
            "CampaignRuns": r"1\,234",
            "CampaignStarted": "2026-01-02",
            "CampaignConfidence": "95",
            "EngineCommit": "0123456789ab",
            "HostChip": r"Processor \& Sons",
            "HostMemory": r"16.0\,GiB",
            "SpeedupMinAll": "0.80",
            "SpeedupMaxAll": "1.40",
            "SpeedupMaxDense": "0.90",
            "AcceptanceMaxAll": "50.0",
        },
    ),
    (without_drafts, {"SpeedupMaxAll": "--"}),
    (of_two_engines, {"EngineCommit": f"{'a' * 12}, bbbbbbb"}),
    (single, {"RangePrompts": "on Code"}),
    (of_two_prompts, {"RangePrompts": "2 cells on Code; 1 cell on Chinese"}),
    (
        several_methods,
        {"MethodsMeasured": "4", "MethodsSettings": "7", "MethodsGain": "5", "MethodsLoss": "2"}
        | {"MethodsTargets": "MoE Q4 and Dense 4B"},
    ),
]


@pytest.mark.parametrize(("make", "expected"), VALUES)
def test_macros_hold_the_numbers_of_the_text(make, expected):
    values = commands(make())
    assert {name: values[name] for name in expected} == expected


def test_every_macro_and_switch_is_cited():
    cited = set(re.findall(r"\\([A-Za-z]+)", DOCUMENTS))
    cited |= set(re.findall(r"\bn\.([A-Za-z]+)", PAGE))
    assert set(commands(costed())) <= cited
    asked = cited | {f"if{name}" for name in re.findall(r"\bon\.([A-Za-z]+)", PAGE)}
    on = switches(full())
    assert {f"if{name}" for name in on if not name.startswith("Table")} <= asked


def test_every_macro_has_a_name_tex_accepts_and_says_what_it_is():
    lines = macros(full()).splitlines()[1:]
    definition = re.compile(
        r"\\newif\\if([A-Za-z]+) \\\1(true|false)|\\newcommand{\\[A-Za-z]+}{.*} % \S.*"
    )
    assert all(definition.fullmatch(line) for line in lines)
    assert len(set(lines)) == len(lines)


def test_the_documents_use_only_macros_that_every_campaign_has():
    asked = set(re.findall(r"\\((?:if)?[A-Z][a-z]+[A-Z]\w+)", DOCUMENTS)) - TEX_COMMANDS
    analysis = without_drafts()
    reported = read_reported(ROOT / "resources/reported")
    analysis = replace(analysis, comparison=compare_printed(reported, analysis, []))
    defined = {f"if{name}" for name in switches(analysis)}
    figures = read_figures(ABOUT_FIGURES)
    defined |= {f"if{command_name('figure', name)}" for name in figures}
    text = exhibits(analysis, figures, SPECIFICATIONS, ABOUT_FIGURES)
    defined |= set(re.findall(r"^.newcommand{.(\w+)}", text, re.MULTILINE))
    # Where \ifCostsPredicted is off, the text cites no prediction.
    lacking = asked - set(commands(analysis)) - defined
    assert {name for name in lacking if not name.startswith("Prediction")} == set()


def test_exhibits_with_anything_to_show_are_in_their_section_and_others_empty():
    text = exhibits(several_methods(), ["methods"], SPECIFICATIONS, ABOUT_FIGURES)
    caption = read_figures(ABOUT_FIGURES)["methods"].note.en
    expected = {
        rf"\newcommand{{\FigureMethods}}{{\floatfigure{{methods}}{{{caption}}}}}",
        r"\newcommand{\ExhibitsMethods}{\FigureMethods}",
        r"\newcommand{\FigureTwins}{}",
        r"\newcommand{\TableTwins}{}",
        r"\newcommand{\ExhibitsTwins}{}",
    }
    assert expected <= set(text.splitlines())
    assert r"\newcommand{\TableBaselines}{\floattable{baselines}{" in text


@pytest.mark.parametrize(
    ("make", "switched"),
    [
        (full, {"ControlsMeasured": "false", "ControlsPassed": "false"}),
        (controlled, {"ControlsMeasured": "true", "ControlsPassed": "true"}),
        (lambda: controlled(failed=1), {"ControlsMeasured": "true", "ControlsPassed": "false"}),
        (several_methods, {"MethodsSeveral": "true"}),
        (full, {"MethodsSeveral": "false"}),
        (single, {"CampaignSynthetic": "true", "MeasuredMoe": "false", "MeasuredDense": "true"}),
    ],
)
def test_the_switches_say_what_was_measured_and_which_controls_passed(make, switched):
    text = macros(make())
    for name, on in switched.items():
        assert rf"\newif\if{name} \{name}{on}" in text


def test_the_first_page_says_whether_controls_passed():
    for document in ("main", "supplement"):
        head = (PAPER / f"{document}.tex").read_text().partition(r"\section")[0]
        assert r"\ControlsSentence" in head


def test_a_setting_that_cannot_pay_is_counted_by_its_interval_and_not_by_its_estimate():
    ends = {"ceiling": [0.9, 0.9, 1.1, 1.3], "ceiling_low": [0.8, 0.8, 0.9, 1.2]}
    table = pd.DataFrame(ends | {"ceiling_high": [0.95, 1.1, 1.3, 1.4], "break_even": None})
    settings = table.assign(target="moe_q4", draft="draft_0.8b", gamma=[1, 2, 4, 8])
    columns = {name: None for name in costed().break_even if name not in settings}
    shown = commands(replace(costed(), break_even=settings.assign(**columns)))
    counted = {name: shown[f"BreakEven{name}"] for name in ("Settings", "Never", "Undecided")}
    assert counted == {"Settings": "4", "Never": "1", "Undecided": "2"}


@pytest.mark.parametrize(
    ("answers", "words"),
    [
        (["leave off at these γ"], "The target should run without SD at these γ."),
        (["undecided"] * 2, "All 2 targets are undecided."),
        (
            ["switch on", "undecided", "on for these prompts", "on for these prompts"],
            "Of 4 targets, 1 should run with SD, 2 gain on the prompts that were sent and 1 is"
            " undecided.",
        ),
    ],
)
def test_the_answers_of_targets_are_counted_in_a_sentence(answers, words):
    assert answer_counts(pd.Series(answers)) == words
