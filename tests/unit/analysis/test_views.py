"""Rows that can be compared: of campaigns side by side, and of the methods of a suite."""

from dataclasses import replace

import pandas as pd
import pytest

from specmoe.analysis.build import list_drafts
from specmoe.analysis.views import compare_campaigns, compare_settings, method_settings

from .. import paper_analyses as made
from ..paper_analyses import analysis_of, full, named, several_ways, single, without_drafts


def settings(*analyses):
    """Return target, draft, γ, suite and speedups by heading of each setting, in order."""
    frame = compare_settings(analyses)
    keys = ["target_label", "draft_label", "gamma", "suite", "prompts"]
    return [
        (*setting[:4], dict(zip(members["heading"], members["speedup"].round(2), strict=True)))
        for setting, members in frame.groupby(keys, sort=False)
    ]


def of_prompt(*prompts, suite="B", rate=60):
    """Return a campaign of one target, draft and γ over those prompts."""
    rows = made.baseline_runs(["moe_q4"], prompts, 2)
    for prompt in prompts:
        rows += made.speculative_runs(suite, "moe_q4", "draft_0.8b", 4, [rate, rate], prompt)
    return rows


def test_a_setting_of_both_campaigns_is_one_row_and_comes_first():
    assert settings(full(), named(single(), "other")) == [
        ("Dense 4B", "Draft 0.8B", 4, "moe_speculative", {"by_hand": 0.9, "other": 1.2}),
        ("Dense 4B", "Draft 0.8B", 8, "moe_speculative", {"by_hand": 0.8}),
        ("MoE Q4", "Draft 0.8B", 4, "moe_speculative", {"by_hand": 1.2}),
        ("MoE Q4", "Draft 0.8B", 8, "moe_speculative", {"by_hand": 1.4}),
        ("MoE Q4", "Draft 2B", 4, "moe_speculative", {"by_hand": 1.0}),
        ("MoE Q4", "Draft 0.8B", 8, "prompt_length", {"by_hand": 1.2}),
    ]


def test_a_setting_is_known_by_its_prompts_whatever_suites_are_called():
    one = analysis_of(of_prompt("code"))
    assert settings(one, named(analysis_of(of_prompt("code", "story", rate=70)), "other")) == [
        ("MoE Q4", "Draft 0.8B", 4, "B", {"by_hand": 1.2}),
        ("MoE Q4", "Draft 0.8B", 4, "B", {"other": 1.4}),
    ]
    elsewhere = named(analysis_of(of_prompt("code", suite="mine")), "other")
    both = {"by_hand": 1.2, "other": 1.2}
    assert settings(one, elsewhere) == [("MoE Q4", "Draft 0.8B", 4, "B, mine", both)]


def test_lengths_in_words_are_not_lengths_in_tokens():
    one = analysis_of(of_prompt("passage-64", "passage-1024", "code"))
    study = made.of_campaign(named(one, "study", "published"), length_unit="words")
    prompts = compare_settings([one, study])["prompts"].tolist()
    assert prompts == ["code, 64, 1024 tokens", "code, 64, 1024 words"]


def test_a_campaign_that_measured_in_several_ways_has_a_column_for_each():
    headings = compare_campaigns([full(), named(several_ways(), "ways")])["heading"].tolist()
    assert headings == [
        "by_hand",
        "ways: llama-server, current-cpu",
        "ways: the study's commands, march-cpu",
    ]
    frame = compare_settings([full(), named(several_ways(), "ways")])
    assert set(frame["heading"]) == set(headings)
    both = frame[(frame["campaign"] == "ways") & (frame["gamma"] == 4)]
    assert both["speedup"].tolist() == pytest.approx([0.8, 1.2])


def test_controls_are_excluded():
    frame = compare_settings([made.controlled(), named(full(), "other")])
    assert "Stranger" not in set(frame["draft_label"])
    assert not (frame["target_label"] == frame["draft_label"]).any()


@pytest.mark.parametrize(("digest", "same"), [("0" * 64, True), ("1" * 64, False), (None, False)])
def test_shared_settings_say_whether_their_files_are_the_same(digest, same):
    models = made.MODELS.assign(sha256=digest)
    frame = compare_settings([full(), named(replace(single(), models=models), "other")])
    found = frame.groupby("campaigns")["same_files"].unique().map(list).to_dict()
    assert found == {1: [None], 2: [same]}


def test_runs_that_the_audit_flags_are_counted():
    analysis = full()
    flagged = analysis.flagged.assign(flagged=analysis.flagged["draft"].eq("draft_2b").astype(int))
    frame = compare_settings([replace(analysis, flagged=flagged), named(full(), "other")])
    found = frame[frame["flagged"] > 0]
    assert found[["campaign", "draft_label"]].to_numpy().tolist() == [["by_hand", "Draft 2B"]]


def test_campaigns_that_drafted_nothing_are_named_and_have_no_setting():
    own = made.compared_with(without_drafts(), named(without_drafts(), "other"))
    assert own.compared_settings.empty
    assert own.compared_campaigns["settings"].tolist() == [0, 0]
    frame = compare_settings([without_drafts(), named(single(), "other")])
    assert frame["heading"].tolist() == ["other"]


def test_the_settings_of_targets_with_several_methods_are_compared():
    methods = method_settings(made.several_methods())
    assert len(methods) == 7
    assert methods.groupby("target")["method"].nunique().to_dict() == {"moe_q4": 4, "dense_4b": 2}
    fastest = methods[methods["best"]].set_index("target")["speedup"].round(2).to_dict()
    # N-grams that drafted nothing reach 0.98 on the dense target, and are not the fastest.
    assert fastest == {"moe_q4": 1.6, "dense_4b": 0.9}


def test_several_draft_models_and_methods_of_different_suites_are_not_compared():
    assert method_settings(full()).empty
    rows = [
        *made.baseline_runs(["moe_q4"], ["code"], 2),
        *made.speculative_runs("moe_speculative", "moe_q4", "draft_0.8b", 4, [60, 60]),
        *made.logged_runs("moe_q4", "mtp", "draft-mtp", 4, [70, 70]),
    ]
    assert method_settings(analysis_of(rows)).empty


def test_a_file_is_named_where_a_target_has_several_for_a_method():
    def head(target, file):
        columns = {"draft_model": file}
        return made.logged_runs(target, f"eagle3@{file}", "draft-eagle3", 4, [60], **columns)

    apart = pd.DataFrame([*head("moe_q4", "a"), *head("dense_4b", "b")])
    assert list_drafts(apart, str.upper)["label"].tolist() == ["EAGLE-3", "EAGLE-3"]
    both = pd.DataFrame([*head("moe_q4", "a"), *head("moe_q4", "b")])
    assert list_drafts(both, str.upper)["label"].tolist() == ["EAGLE-3 (A)", "EAGLE-3 (B)"]
