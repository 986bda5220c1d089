"""The tables show the analysis's numbers, in order, and only what was measured."""

import re
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

from specmoe.claims.printed_numbers import compare_printed, read_reported
from specmoe.errors import ConfigError, SchemaError
from specmoe.figures.figures import FIGURES
from specmoe.paper.latex import command_name
from specmoe.paper.macros import macros
from specmoe.paper.tables import NOT_MEASURED, TABLES, render_table

from ..paper_analyses import (
    MODELS,
    analysis_of,
    baseline_runs,
    controlled,
    full,
    relabelled,
    sampled,
    several_types,
    several_ways,
    single,
    speculative_runs,
    without_drafts,
)

PAPER = Path(__file__).parents[3] / "paper"
DOCUMENTS = ("main.tex", "supplement.tex", "preamble.tex")
# What the documents define, and TeX.
TEX_COMMANDS = {"ControlsSentence", "DeclareUnicodeCharacter", "DeclareSIUnit", "PagesCaption"}


def render(name, analysis):
    """Return a table as LaTeX."""
    return render_table(name, analysis, PAPER / "templates")


def rows(name, analysis):
    """Return a table's rows as lists of cells; the alignment's thin spaces are left in."""
    return [
        [cell.strip() for cell in line.removesuffix(r"\\").split(" & ")]
        for line in render(name, analysis).splitlines()
        if line.endswith(r"\\")
    ]


def commands(analysis):
    """Return the macros as a dict from command to value."""
    return dict(re.findall(r"^\\newcommand{\\(\w+)}{(.*)} %", macros(analysis), re.MULTILINE))


def test_every_table_has_a_template_and_every_template_a_table():
    assert sorted(TABLES) == sorted(
        path.name.removesuffix(".tex.j2") for path in PAPER.glob("templates/*")
    )


@pytest.mark.parametrize("name", TABLES)
def test_the_supplement_includes_every_table(name):
    text = (PAPER / "supplement.tex").read_text()
    assert rf"\floattable{{{name}}}" in text or rf"\pagestable{{{name}}}" in text


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("make", [full, single, without_drafts, sampled, several_types, controlled])
def test_every_table_is_one_tabular_with_rows_of_equal_length(name, make):
    text = render(name, make())
    assert text.startswith(r"\begin{tabular}")
    assert text.endswith("\\end{tabular}\n")
    body = [line for line in text.splitlines() if line.endswith(r"\\") and "multicol" not in line]
    assert len({re.sub(r"\\&", "", line).count("&") for line in body}) == 1
    assert "nan" not in text
    assert "None" not in text


def test_suites_are_summed():
    assert rows("suites", full())[1:] == [
        ["B", r"Drafts\_50\%", "12", r"1\,200", r"1\,199"],
        ["F", "Lengths", "5", "34", "34"],
        ["& Total", "17", r"1\,234", r"1\,233"],
    ]


def test_models_say_what_part_they_have_and_moe_comes_first():
    assert [(row[0], row[4], row[-1]) for row in rows("models", full())[1:]] == [
        ("MoE Q4", "8 of 256", "target"),
        ("Draft 0.8B", "--", "draft"),
        ("Draft 2B", "--", "draft"),
        ("Dense 4B", "--", "target"),
    ]


def test_a_model_that_drafts_for_nobody_and_has_no_draft_is_a_baseline():
    assert {row[-1] for row in rows("models", without_drafts())[1:]} == {"baseline"}


def test_hardware_is_escaped_has_units_and_leaves_out_what_the_host_does_not_tell():
    analysis = full()
    campaign = analysis.campaign.assign(
        host_gpu="GPU_1",
        host_gpu_memory_bytes=None,
        host_given="",
        host_memory_bandwidth_bytes_per_second=8e11,
    )
    shown = dict(rows("hardware", replace(analysis, campaign=campaign)))
    assert shown["Processor"] == r"Processor \& Sons"
    assert shown["Memory"] == r"16.0\,GiB"
    assert shown["Engine commit"] == "0123456789ab"
    assert shown["GPU"] == r"GPU\_1"
    assert shown["Memory bandwidth"] == r"800.0\,GB/s"
    assert {"GPU memory", "Stated by hand"}.isdisjoint(shown)


def test_baselines_show_rate_deviation_and_prompt_rate():
    assert rows("baselines", full())[1] == [
        "MoE Q4", r"3.0\,B", r"35.0\,B", "50.0", r"$\pm$\,0.0", "800.0", "4"
    ]  # fmt: skip


def test_the_best_speedup_of_each_target_is_bold_and_no_other():
    bold = re.findall(r"\\textbf{(.*?)}", render("speculation", full()))
    assert bold == ["1.40", "0.90"]


def test_speculation_shows_paired_and_unpaired_speedup_acceptance_and_accepted_length():
    first = rows("speculation", full())[1]
    # 20 of 40 drafted tokens in 10 rounds are kept: 50 %, 1 + 20/10 tokens a round.
    assert first == [
        "MoE Q4", "Draft 0.8B", "4", "60.0", r"$\pm$\,0.0", "1.20", "[1.20, 1.20]", "1.20",
        "50.0", "3.00",
    ]  # fmt: skip


def test_speculation_leaves_out_the_suites_of_exact_length():
    assert len(rows("speculation", full())) == 1 + 5


def test_what_was_measured_in_several_ways_stands_side_by_side():
    shown = rows("protocols", several_ways())
    server, _, tools, _ = [row for row in shown if row[3] in {"4", "8"}]
    assert server[:2] == ["MoE Q4", "llama-server, current-cpu"]
    assert (server[6], server[8]) == ("0.80", "0.0")
    assert tools[1] == "the study's commands, march-cpu"
    assert (tools[6], tools[8]) == ("1.20", "100.0")


def test_every_engine_of_a_campaign_is_named_by_the_head_of_its_commit():
    commits = f"{'a' * 40}, {'b' * 7}"
    analysis = replace(full(), campaign=full().campaign.assign(engine_commit=commits))
    assert commands(analysis)["EngineCommit"] == f"{'a' * 12}, bbbbbbb"


def test_temperatures_stand_in_order_with_their_distance_and_what_could_be_found():
    greedy, warm = rows("temperatures", sampled())[2:]
    assert greedy[2:5] == ["4", "0.0", "50.0"]
    assert greedy[10:] == ["-- (--)", "--", "--"]
    assert warm[2:7] == ["", "0.7", "50.0", "60.0", "1.20"]
    # Of two pairs that share nothing, both swaps are as far apart; no difference could be found.
    assert warm[8:] == ["2", "0", "1.00 (1.00)", "1.000", "--"]


def test_types_stand_by_the_bytes_of_a_pass_with_the_gain_over_the_smallest():
    small, large = rows("types", several_types())[1:]
    assert small[:7] == ["MoE", "Draft 0.8B", "4", r"1.0\,GB", "MoE Q4", r"Q4\_K\_M", "50.0"]
    assert small[7:] == ["1.20", "[1.20, 1.20]", "1.00", ""]
    assert large[3:] == [
        r"2.0\,GB", "MoE Q8", r"Q8\_0", "50.0", "1.50", "[1.50, 1.50]", "1.25", "[1.25, 1.25]",
    ]  # fmt: skip


def test_controls_have_what_is_due_and_the_runs_that_fail():
    itself, unrelated, uncounted = rows("controls", controlled(failed=1))[1:]
    assert itself[:6] == ["MoE Q4", "MoE Q4", "4", "drafts for itself", "50.0", "at least 95"]
    assert itself[-1] == "1 / 2"
    assert unrelated[3:6] == ["unrelated draft", "50.0", "at most 5"]
    assert unrelated[-1] == "0 / 2"
    assert uncounted[-1] == "--"


@pytest.mark.parametrize("name", ["speculation", "drafts", "prompt_lengths"])
def test_controls_are_in_no_other_table_of_speedups(name):
    text = render(name, controlled())
    assert "Stranger" not in text
    assert not {"2.10", "3.10"} & set(text.replace("&", " ").split())


def test_an_unrelated_draft_is_a_control_among_the_models():
    roles = {row[0]: row[-1] for row in rows("models", controlled())[1:]}
    assert roles["Stranger"] == "control"
    assert roles["MoE Q4"] == "target"


@pytest.mark.parametrize(
    ("make", "measured", "passed"),
    [
        (full, "false", "false"),
        (controlled, "true", "true"),
        (lambda: controlled(failed=1), "true", "false"),
    ],
)
def test_the_first_page_knows_whether_controls_passed(make, measured, passed):
    text = macros(make())
    assert rf"\newif\ifControlsMeasured \ControlsMeasured{measured}" in text
    assert rf"\newif\ifControlsPassed \ControlsPassed{passed}" in text
    for document in ("main", "supplement"):
        head = (PAPER / f"{document}.tex").read_text().partition(r"\section")[0]
        assert r"\ControlsSentence" in head


def test_names_stand_once_in_a_group():
    names = [row[:2] for row in rows("speculation", full())[1:]]
    assert names == [
        ["MoE Q4", "Draft 0.8B"], ["", ""], ["", "Draft 2B"], ["Dense 4B", "Draft 0.8B"], ["", ""]
    ]  # fmt: skip


def test_identity_counts_the_runs_whose_tokens_are_known():
    analysis = full()
    cells = analysis.cells
    unknown = cells.assign(identical=float("nan"), common_prefix_min=float("nan"))
    assert render("identity", replace(analysis, cells=unknown)) == NOT_MEASURED
    sparse = cells["draft"].ne("draft_2b")
    shown = rows("identity", replace(analysis, cells=cells.where(sparse, unknown)))[1:]
    assert [row[:3] for row in shown] == [
        ["MoE Q4", "Draft 0.8B", "8"],
        ["Dense 4B", "Draft 0.8B", "4"],
    ]


def test_drafts_stand_side_by_side_with_a_dash_where_one_was_not_measured():
    table = rows("drafts", full())
    assert table[2:] == [
        ["MoE Q4", "4", "1.20", "50.0", "60.0", "1.00", "50.0", "50.0"],
        ["", "8", "1.40", "50.0", "70.0", "--", "--", "--"],
    ]
    assert render("drafts", full()).startswith(r"\begin{tabular}{lrrrrrrr}")


def test_each_text_has_its_own_row_where_a_campaign_sends_several():
    runs = [
        *baseline_runs(["moe_q4"], ["code", "chinese"], 2),
        *speculative_runs("B", "moe_q4", "draft_0.8b", 4, [60, 60], "code"),
        *speculative_runs("B", "moe_q4", "draft_0.8b", 4, [40, 40], "chinese"),
    ]
    text = render("prompts", analysis_of(runs))
    assert "& Chinese & 50.0 & 40.0 " in text
    assert "& Code & 50.0 & 60.0 " in text
    assert "0.80 & [0.80, 0.80]" in text
    assert "1.20 & [1.20, 1.20]" in text
    assert render("prompts", full()) == NOT_MEASURED  # one text alone


def test_prompt_lengths_are_in_order_with_their_own_baseline():
    table = rows("prompt_lengths", full())[2:]
    assert [(row[3], row[4], row[5], row[7]) for row in table] == [
        ("64", "50.0", "55.0", "1.10"),
        (r"1\,024", "50.0", "65.0", "1.30"),
    ]


def test_identity_counts_runs_over_suites_and_gammas():
    # The second repeat of every cell leaves the baseline after 40 tokens.
    assert rows("identity", full())[1:] == [
        ["MoE Q4", "Draft 0.8B", "8", "4", "40"],
        ["MoE Q4", "Draft 2B", "2", "1", "40"],
        ["Dense 4B", "Draft 0.8B", "4", "2", "40"],
    ]


def test_a_single_repeat_has_neither_deviation_nor_interval():
    assert rows("speculation", single())[1][3:7] == ["60.0", "", r"\textbf{1.20}", ""]


@pytest.mark.parametrize("name", ["speculation", "drafts", "prompt_lengths", "identity"])
def test_a_campaign_without_drafts_says_so(name):
    assert render(name, without_drafts()) == NOT_MEASURED


@pytest.mark.parametrize("name", ["models", "baselines", "speculation", "drafts", "identity"])
def test_a_label_cannot_run_latex(name):
    text = render(name, relabelled(full(), "moe_q4", r"\input{/etc/passwd} & $x^2 % #"))
    assert r"\input" not in text
    assert r"\textbackslash{}input\{/etc/passwd\} \& \$x\textasciicircum{}2 \% \#" in text


def test_two_suites_with_the_same_cell_are_told_apart():
    analysis = analysis_of(
        [
            *baseline_runs(["moe_q4"], ["code"], 1),
            *speculative_runs("B", "moe_q4", "draft_2b", 4, [60]),
            *speculative_runs("C", "moe_q4", "draft_2b", 4, [70]),
        ]
    )
    assert [row[0] for row in rows("speculation", analysis)[1:]] == [
        "MoE Q4 (suite B)",
        "MoE Q4 (suite C)",
    ]


def test_an_analysis_without_a_column_that_is_shown_is_refused_by_name():
    analysis = full()
    lacking = replace(analysis, cells=analysis.cells.drop(columns="acceptance_rate"))
    with pytest.raises(SchemaError, match=r"'cells'.*'acceptance_rate'"):
        render("speculation", lacking)


def test_macros_hold_the_numbers_of_the_text():
    values = commands(full())
    expected = {
        "CampaignName": r"by\_hand",
        "CampaignRuns": r"1\,234",
        "CampaignStarted": "2026-01-02",
        "CampaignConfidence": "95",
        "EngineCommit": "0123456789ab",
        "HostChip": r"Processor \& Sons",
        "HostMemory": r"16.0\,GiB",
        "BaselineMoeQFour": "50.0",
        "SpeedupMinAll": "0.80",
        "SpeedupMaxAll": "1.40",
        "SpeedupMaxDense": "0.90",
        "AcceptanceMaxMoe": "50.0",
        "BestSpeedupMoeQFour": "1.40",
        "BestGammaMoeQFour": "8",
        "BestDraftMoeQFour": "Draft 0.8B",
        "BestSpeedupMoeQFourDraftTwoB": "1.00",
        "SpeedupDenseFourBDraftZeroPointEightBGammaEight": "0.80",
        "IntervalDenseFourBDraftZeroPointEightBGammaEight": "[0.80, 0.80]",
    }
    assert {name: values[name] for name in expected} == expected


def test_every_macro_has_a_name_tex_accepts_and_says_what_it_is():
    lines = macros(full()).splitlines()[1:]
    definition = re.compile(
        r"\\newif\\if([A-Za-z]+) \\\1(true|false)|\\newcommand{\\[A-Za-z]+}{.*} % \S.*"
    )
    assert all(definition.fullmatch(line) for line in lines)


def test_the_documents_use_only_macros_that_every_campaign_has():
    texts = "".join((PAPER / name).read_text() for name in DOCUMENTS)
    asked = set(re.findall(r"\\((?:if)?[A-Z][a-z]+[A-Z]\w+)", texts)) - TEX_COMMANDS
    analysis = without_drafts()
    reported = read_reported(PAPER.parent / "resources/reported")
    analysis = replace(analysis, comparison=compare_printed(reported, analysis, []))
    switches = set(re.findall(r"\\newif\\(if\w+)", macros(analysis)))
    switches |= {f"if{command_name('figure', name)}" for name in FIGURES}
    # What \ifCostsPredicted guards is there only with it.
    lacking = asked - set(commands(analysis)) - switches
    assert {name for name in lacking if not name.startswith("Prediction")} == set()


def test_the_switches_say_what_was_measured():
    text = macros(single())
    assert r"\newif\ifCampaignSynthetic \CampaignSynthetictrue" in text
    assert r"\newif\ifMeasuredMoe \MeasuredMoefalse" in text
    assert r"\newif\ifMeasuredDense \MeasuredDensetrue" in text


def test_ranges_of_what_was_not_measured_are_dashes():
    assert commands(without_drafts())["SpeedupMaxAll"] == "--"


def test_two_ids_that_give_one_command_are_refused_by_name():
    analysis = full()
    twin = MODELS[MODELS["model"] == "dense_4b"].assign(model="dense-4b")
    row = analysis.baselines.iloc[[1]].assign(target="dense-4b")
    clash = replace(
        analysis,
        models=pd.concat([MODELS, twin], ignore_index=True),
        baselines=pd.concat([analysis.baselines, row], ignore_index=True),
    )
    with pytest.raises(ConfigError, match=r"'dense-4b'.*'dense_4b'.*BaselineDenseFourB"):
        macros(clash)
