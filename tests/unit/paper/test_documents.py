"""The paper's words: true of the campaign, with its numbers, about tables and figures it has."""

import re
from dataclasses import replace

import jinja2
import pandas as pd
import pytest

from specmoe.analysis.templates import analysis_templates
from specmoe.figures.figures import PLOTS
from specmoe.paper.documents import DOCUMENTS, cited, render_documents

from .. import paper_analyses as made
from ..paper_analyses import advised, full, of_campaign, single, with_upcycled_pairs
from ..rendered_tables import MAKERS, latex

# Made once, and printed from what was simulated.
ALWAYS = {"tab:answers"}


def documents(analysis, drawn=PLOTS):
    """Return the words of the paper and of its supplement, as LaTeX with single spaces."""
    texts = render_documents(analysis, drawn)
    return [" ".join(texts[name].split()) for name in DOCUMENTS]


def daggers(analysis):
    """Return, for each setting of the table, whether its speedup is flagged."""
    text = latex("speculation", analysis)
    return [r"$^\dagger$" in line for line in text.splitlines() if "[" in line][1:]


def of_two_prompts():
    rows = made.baseline_runs(["moe_q4"], ["code", "chinese"], 2)
    rows += made.speculative_runs("moe_speculative", "moe_q4", "draft_2b", 4, [60, 60], "code")
    rows += made.speculative_runs("moe_speculative", "moe_q4", "draft_2b", 8, [60, 60], "code")
    return made.analysis_of(
        [*rows, *made.speculative_runs("quantization", "moe_q4", "draft_2b", 2, [60], "chinese")]
    )


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (full, r"campaign by\_hand: 1\,234 runs on Processor \& Sons."),
        (full, "the speedup is 0.80 to 1.40 and the acceptance rate is 50.0"),
        (
            lambda: of_campaign(full(), engine_commit=f"{'a' * 40}, {'b' * 7}"),
            rf"commit \texttt{{{'a' * 12}, bbbbbbb}}",
        ),
        (of_two_prompts, "Over all settings (2 settings on code; 1 setting on chinese) the"),
        (made.several_methods, "MoE Q4 and Dense 4B we measured 4 drafting methods in 7 settings"),
        (
            lambda: of_campaign(full(), excluded="N/draft"),
            r"\textbf{Excluded} by the configuration: ",
        ),
        (lambda: made.controlled(failed=1), r"\textbf{Controls failed}: 1 run did not have"),
        (full, "On the dense target Dense 4B it is 0.80 to 0.90. On the MoE target MoE Q4 it is"),
        (lambda: advised(full(), answer="little to gain"), "There is little to gain for MoE Q4:"),
        (
            lambda: advised(full(), not_compared=1),
            "1 of 3 settings could not be compared, as they were flagged, lost",
        ),
        (made.costed, "In $o$ are: checkpoint, sampling (MoE Q4); sampling (Dense 4B)."),
        (made.costed, r"is 0.8\,\%, the largest 0.9\,\% and the bias 0.7\,\%. On"),
        (with_upcycled_pairs, "pass by its tokens, with a new graph each. Then"),
        (with_upcycled_pairs, r"of 1\,000\,GB/s would take 22 and 15\,\% of its time over 1"),
        (with_upcycled_pairs, r"takes 27.3\,ms with Dense 4B and 54.5\,ms with MoE Q4; reading"),
        (with_upcycled_pairs, r"would take 14 to 15\,\% of the time of passes over 5 tokens"),
    ],
)
def test_the_paper_says_what_the_campaign_measured(make, words):
    assert words in documents(make())[0]


@pytest.mark.parametrize("make", MAKERS)
def test_a_table_or_figure_is_referred_to_only_where_it_is_included(make):
    for drawn in (PLOTS, ()):
        for text in documents(make(), drawn):
            included = {
                f"{kind[:3]}:{name}"
                for kind, name in re.findall(r"\\(?:float|pages)(table|figure)\{(\w+)\}", text)
            }
            assert set(re.findall(r"\\ref\{((?:tab|fig):\w+)\}", text)) - ALWAYS <= included
            assert not re.search(r"<<|>>|<%|%>|\bnan\b|None", text)


def test_a_template_escapes_and_refuses_unknown_names(tmp_path):
    (tmp_path / "a.html.j2").write_text("{{ value }}")
    template = analysis_templates(tmp_path).get_template("a.html.j2")
    assert template.render(value="<a href='#'>") == "&lt;a href=&#39;#&#39;&gt;"
    assert template.render(value=None) == "–"
    with pytest.raises(jinja2.UndefinedError):
        template.render()


def test_a_number_without_an_interval_leaves_no_hole_in_a_sentence():
    main = documents(made.with_experiment(wide=True))[0]
    assert "speedup is 0.40 (too few repeats) times the" in main
    assert not re.search(r"[^(]too few repeats", main)


def test_the_study_is_out_of_the_paper_of_ones_own_models():
    for text in documents(of_campaign(full(), is_study=False)):
        assert not re.search(r"\\section\{[^}]*(?:study|claims|as published)", text)


def test_one_target_measured_once_is_no_several_and_has_no_interval():
    text = documents(of_campaign(single(), is_study=False, repeats=1))[0]
    assert "In the one setting (on code) the speedup is 1.20 and the acceptance rate" in text
    assert "measured once." in text
    assert "With a single repeat there are none." in text
    assert "There was one repeat:" in text
    assert "does not show how much of a pass's time is spent on reading" in text
    assert not re.search("targets? Dense|targets are|repeats followed|interval over|luckiest", text)


def test_runs_that_were_all_disturbed_are_runs_and_the_unknown_answer_has_its_reason():
    lost = advised(single(), target="dense_4b", answer="not known", reason="all were disturbed")
    lost = of_campaign(replace(lost, required_time=lost.required_time.iloc[:0]), is_study=False)
    text = documents(lost)[0]
    assert "not known for Dense 4B: all were disturbed." in text
    assert "no runs with speculation" not in text
    none = of_campaign(made.without_drafts(), is_study=False)
    assert "no runs with speculation" in documents(none)[0]


def test_settings_without_baselines_of_their_own_are_flagged():
    analysis = full()
    assert daggers(analysis) == [False] * 5
    assert "dagger marks" not in documents(analysis)[1]
    paired = analysis.settings["target"] != "dense_4b"
    unpaired = replace(analysis, settings=analysis.settings.assign(paired=paired))
    assert "A dagger marks settings whose runs have no baselines" in documents(unpaired)[1]
    assert daggers(unpaired) == [False, False, False, True, True]


def test_a_setting_that_cannot_pay_is_counted_by_its_interval_and_not_by_its_estimate():
    ends = {"at_100": [0.9, 0.9, 1.1, 1.3], "at_100_low": [0.8, 0.8, 0.9, 1.2]}
    table = pd.DataFrame(ends | {"at_100_high": [0.95, 1.1, 1.3, 1.4], "break_even": None})
    settings = table.assign(target="moe_q4", draft="draft_0.8b", gamma=[1, 2, 4, 8])
    settings = settings.assign(extrapolated=settings["gamma"] == 8)
    columns = {name: None for name in made.costed().break_even if name not in settings}
    known = cited(replace(made.costed(), break_even=settings.assign(**columns)))
    assert known["break_even"] == {"settings": 4, "never": 1, "undecided": 2, "extrapolated": 1}
    assert not known["all_copy"]  # as the dense target needs none
