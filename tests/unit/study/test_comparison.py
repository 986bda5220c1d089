"""The study next to a campaign: printed, recomputed and measured numbers, and the times of all."""

import json
from dataclasses import replace
from math import isnan

import pandas as pd
import pytest

from specmoe.analysis.build import required_times
from specmoe.analysis.registry import TABLES
from specmoe.campaign.gate import load_campaign
from specmoe.config.matrix import STUDY_PASSAGE
from specmoe.errors import ConfigError
from specmoe.study.headline import with_study_names
from specmoe.study.printed_numbers import compare_printed, read_reported, recompute

from ...conftest import CSV, ROOT, needs_csv
from .. import paper_analyses as made
from ..paper_analyses import full, named

REPORTED = read_reported()
SETTING = "speedup moe_q4 draft_0.8b 4"


def numbers(own, *others):
    """Return the comparison's numbers of SETTING: recomputed, measured."""
    row = compare_printed(REPORTED, own, others).set_index("what").loc[SETTING]
    assert row["printed"] == "1.15"
    return [None if isnan(row[key]) else round(row[key], 6) for key in ("recomputed", "measured")]


def with_speedup(speedup, name, source="measured"):
    settings = full().settings.assign(speedup_unpaired=speedup)
    return replace(named(full(), name, source), settings=settings)


def test_recomputed_is_of_the_studys_rows_and_measured_of_another_campaign():
    study, other = with_speedup(1.15, "published", "study_rows"), with_speedup(9.0, "other")
    # By hand: 60 tok/s with the draft model, 50 without.
    assert numbers(full()) == [None, 1.2]
    assert numbers(study) == [1.15, None]
    assert numbers(full(), other, study) == [1.15, 1.2]
    assert numbers(study, other) == [1.15, None]


def test_a_models_id_becomes_the_studys_name_of_it_as_a_target_or_as_a_draft_model():
    names = {"moe_q4": "moe", "dense_2b": "small", "draft_2b": "small"}
    rows = [*made.baseline_runs(["moe", "small"], ["code", "passage-64"], 2)]
    rows += made.speculative_runs("moe_speculative", "moe", "small", 4, [60, 60])
    models = pd.DataFrame([{"model": "moe"}, {"model": "small"}]).merge(
        made.MODELS, "left", "model"
    )
    models["label"] = ["Small MoE", "Small"]
    analysis = replace(made.analysis_of(rows), models=models)
    campaign = analysis.campaign.assign(study_names=json.dumps(names))
    timed = pd.DataFrame([dict.fromkeys(TABLES["pass_times"].columns) | {"model": "moe"}])
    found = with_study_names(replace(analysis, campaign=campaign, pass_times=timed))
    assert found.settings[["target", "draft"]].to_numpy().tolist() == [["moe_q4", "draft_2b"]]
    assert found.pass_times[["model", "label"]].to_numpy().tolist() == [["moe_q4", "Small MoE"]]
    assert set(found.baselines["target"]) == {"moe_q4", "dense_2b"}
    assert sorted(found.models["model"]) == ["dense_2b", "draft_2b", "moe_q4"]


def recomputed(*settings):
    """Return the numbers of `full` with these settings instead."""
    return recompute(replace(full(), settings=pd.concat(settings, ignore_index=True)))


def test_a_number_that_two_suites_give_is_none():
    settings = full().settings
    of_b = settings["suite"] == "moe_speculative"
    one, other = (settings[of_b].assign(suite=suite) for suite in "GQ")
    assert SETTING in recomputed(settings[~of_b], one)
    assert SETTING not in recomputed(settings[~of_b], one, other)


def test_where_the_studys_own_suites_are_measured_their_numbers_count():
    settings = full().settings
    faster = settings[settings["suite"] == "moe_speculative"].assign(suite="draft_length")
    faster["tokens_per_second"] *= 2
    assert recomputed(settings, faster)[SETTING] == recompute(full())[SETTING]


def test_no_curve_is_not_a_count_of_rising_ones():
    curves = "speedup curves that rise with gamma"
    assert recompute(full())[curves] == 1  # of the MoE; its other draft has a single γ
    assert isnan(recompute(made.without_drafts())[curves])


def test_what_drafts_without_a_model_is_none_of_the_studys_numbers():
    settings = full().settings
    lookup = {"draft": "ngram-simple-n3", "method": "ngram-simple", "speedup_unpaired": 9.0}
    found = recomputed(settings, settings.assign(**lookup, acceptance_rate_mean=1.0))
    pd.testing.assert_series_equal(pd.Series(found), pd.Series(recompute(full())))


def test_a_campaign_compared_with_brings_its_own_times_alone():
    other = named(full(), "other")
    other = replace(other, required_time=required_times([other, named(full(), "third")]))
    assert set(required_times([full(), other])["campaign"]) == {"by_hand", "other"}


def test_a_campaign_that_was_not_rendered_is_refused_with_the_command(study, tmp_path):
    with pytest.raises(ConfigError, match=r"there is no .*/mine/analysis; render campaign 'mine'"):
        load_campaign(study | {"compare_with": ["mine"]}, ROOT, tmp_path)


def test_every_printed_number_is_transcribed_as_printed():
    expected = {"Table 3": 6, "Table 4": 6 * 4, "Table 5": 18 * 3, "Table 6": 6 * 2 * 3}
    assert REPORTED["source"].value_counts()[[*expected]].to_dict() == expected
    [zero] = REPORTED.query("what == 'tokens_per_second_sd dense_9b'")["printed"]
    assert zero == "0.0"
    runs = REPORTED[REPORTED["source"] == "Table 3"].set_index("what")["printed"].astype(int)
    assert runs.drop("runs total").sum() == runs["runs total"] == 306


@needs_csv
def test_the_prompts_of_suite_f_are_as_the_paper_says():
    rows = pd.read_csv(CSV)
    swept = rows[rows["job_id"].str.startswith("F_")]
    words = len((ROOT / STUDY_PASSAGE).read_text().split())
    assert words == 156
    assert {256, 512, 1024} == {length for length in swept["n_prompt"] if length > words}
