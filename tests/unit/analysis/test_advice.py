"""Advice on simulated campaigns with a known answer."""

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from specmoe.analysis.advice import Controls, Status, advice_from
from specmoe.analysis.advice_text import render_advice
from specmoe.analysis.build import list_drafts
from specmoe.analysis.decision import Answer, Fate
from specmoe.analysis.follow_up import Need, measuring_line
from specmoe.analysis.summaries import SETTING, describe_texts, make_pairs, summarise
from specmoe.audit.checks import CHECKS
from specmoe.audit.evidence import CheckVerdict, Level
from specmoe.config.load import load
from specmoe.engine.job import computing_flags
from specmoe.page.page import render_page
from specmoe.paper.documents import cited, render_documents

from ...conftest import ROOT
from ...recipes import made_info
from ..paper_analyses import LABELS, baseline_runs, full, speculative_runs

PROMPTS = ["code", "passage-64"]
TARGET, DRAFT = "qwen3.5-35b-a3b-q4", "qwen3.5-0.8b-q8"
# The models of the default configuration by what the hand-made campaigns call them.
BY_HAND = {TARGET: "moe_q4", "qwen3.5-4b-q8": "dense_4b", DRAFT: "draft_0.8b"}
INFOS = {model: made_info(sha256=model) for model in BY_HAND}


@pytest.fixture
def config(study, root):
    """The default configuration of a machine whose sessions are alike."""
    study["statistics"] = {"session_sd": 0.0}
    return load(study, root)


def setting(gamma, rates, *, draft=DRAFT, suite="B", prompts=PROMPTS):
    """Return a setting's runs of some prompts; the baselines run at 50 tok/s."""
    return [
        run
        for prompt in prompts
        for run in speculative_runs(suite, TARGET, draft, gamma, rates, prompt)
    ]


def campaign(*settings, prompts=PROMPTS):
    """Return the runs of settings and of their baselines."""
    runs = [*baseline_runs([TARGET], prompts, 3), *(run for one in settings for run in one)]
    return pd.DataFrame(runs).assign(p_min=0.0, n_match=None, partner_gamma=None)


def audit(runs, *, failed=(), check="draft_time", controls=()):
    """Return an audit in which all pass but the runs named; `controls` are verdicts of that one."""
    rows = pd.DataFrame({"run": runs["run"], "target": runs["target"]}).assign(
        check=check,
        level=CHECKS[check].level,
        why="0 of 9 drafted tokens accepted",
        verdict=[CheckVerdict.FAIL if run in failed else CheckVerdict.PASS for run in runs["run"]],
    )
    known = pd.DataFrame({"verdict": controls}).assign(
        run="k", target=TARGET, check="controls", level=Level.IMPOSSIBLE
    )
    return pd.concat([rows, known]) if len(known) else rows


def advised(runs, config, stages=(), **audits):
    """Return the advice for runs, all of them usual; `audits` says what their audit finds."""
    pairs = make_pairs(runs.assign(level=None), config.audit.unrelated_drafts, INFOS)
    settings = summarise(pairs, SETTING, config.statistics, describe_texts)
    return advice_from(runs, pairs, settings, audit(runs, **audits), config, INFOS, stages)


def advice_of(runs, config, **given):
    advice = advised(runs, config, **given)
    [row] = advice["advice"].to_dict("records")
    return row, advice["advice_settings"]


def shown(runs, config, **audits):
    advice = advised(runs, config, **audits)
    drafts = list_drafts(runs, lambda model: LABELS.get(BY_HAND.get(model), model))
    ids = {name: model for model, name in BY_HAND.items()}
    return replace(full(), **advice, drafts=drafts, models=full().models.replace({"model": ids}))


def printed(analysis):
    return render_advice(analysis, ROOT / "paper/advice.txt.j2", Path("advice.md"))


def statuses(settings):
    return dict(zip(settings["gamma"], settings["status"], strict=True))


WOBBLE = np.array([0.99, 1, 1.01])


SURE = "the interval of the best setting is above 1 for other prompts too"
NEITHER = "another session may differ by more than any setting gains or loses"
# The rates of each repeat by γ, the answer with its γ, and how its reason begins.
KNOWN = {
    "a draft that is free and always right": (
        {g: 50 * (g + 1) * WOBBLE for g in (2, 4, 8)}, Answer.ON, 8, SURE),
    "nothing is accepted, and the one that loses least is named": (
        {g: 50 / (1 + 0.1 * g) * WOBBLE for g in (2, 4, 8)}, Answer.OFF, 2,
        "the interval of every setting by itself is below 1"),
    "γ drafted at the target's own pace, and all accepted": (
        {g: [49, 50, 51] for g in (2, 4, 8)}, Answer.LITTLE, 2, "no setting gains a tenth"),
    "the same where blocks differ": (
        {g: [44, 50, 57] for g in (2, 4, 8)}, Answer.UNDECIDED, 2, NEITHER),
    "a loss, and a faster setting of a single block": (
        {4: [39, 40, 41], 8: [70]}, Answer.UNDECIDED, 8, NEITHER),
    "a sure gain, and a faster setting of a single block": (
        {4: [100], 8: [59, 60, 61]}, Answer.ON, 8, SURE),
    "a gain that is due to the choice of the best": (
        {4: [54, 57.5, 61.2]} | {g: [46.5, 50, 53.8] for g in (1, 2, 8, 16, 32)},
        Answer.UNDECIDED, 4, "no interval is above 1 after allowing for the choice among"),
    "a single block": (
        {4: [100]}, Answer.UNKNOWN, 4, "every setting was measured once, so no interval is known"),
}  # fmt: skip


@pytest.mark.parametrize(("rates", "answer", "gamma", "reason"), KNOWN.values(), ids=KNOWN)
def test_the_answer_to_known_rates(config, rates, answer, gamma, reason):
    row, settings = advice_of(campaign(*(setting(*one) for one in rates.items())), config)
    assert (row["answer"], row["gamma"]) == (answer, gamma)
    assert row["reason"].startswith(reason)
    assert all(settings["simultaneous_low"].isna() == (settings["blocks"] == 1))


def test_words_replace_the_flag_that_a_gpu_gets():
    assert computing_flags(99, ["-fa", "off"]) == ["--gpu-layers", "99", "-fa", "off"]
    assert computing_flags(99, ["--cpu-moe"])[2:] == ["--flash-attn", "on", "--cpu-moe"]
    assert computing_flags(0, ["--cpu-moe"]) == ["--cpu-moe"]


BEATEN = {"suite": "B", "target": TARGET, "draft": DRAFT, "gamma": 8, "verdict": Fate.BEATEN}


def test_an_undecided_answer_comes_with_more_repeats_or_minutes_and_their_command(
    study, root, config
):
    runs = campaign(setting(4, [51, 55, 59]), setting(8, [29, 30, 31]))
    row, _ = advice_of(runs, config)
    assert (row["answer"], row["gamma"]) == (Answer.UNDECIDED, 4)
    repeats, deviation = 3 + row["more_repeats"], np.log([51, 55, 59]).std(ddof=1)

    def reach(repeats):
        # The deviation is known by the two degrees of freedom of each three repeats.
        quantile = stats.t.ppf(1 - 0.025 / 2, 2 * repeats / 3)
        return quantile * deviation / np.sqrt(repeats)

    assert reach(repeats) < np.log(row["speedup"]) < reach(repeats - 1)
    assert row["needs"] == Need.REPEATS
    assert row["command"] == measuring_line(config, 3, row["more_repeats"])
    # A setting that was dropped is one of the choice.
    dropped, _ = advice_of(runs, config, stages=[BEATEN])
    assert dropped["more_repeats"] == row["more_repeats"]
    # Minutes ended the same repeats.
    study["measurement"] |= {"minutes": 10.0, "repeats": {"least": 1, "most": 6}}
    row, _ = advice_of(runs, load(study, root))
    repeats = 3 + row["more_repeats"]
    assert row["needs"] == Need.MINUTES
    assert f"minutes={np.ceil(10 * repeats / 3):.0f} " in row["command"]


def of_spread(speedup, sd):
    """Return the rates of three repeats whose logarithms have exactly this mean and deviation."""
    return 50 * speedup * np.exp(sd * np.array([-1, 0, 1]))


@pytest.mark.parametrize(
    ("rates", "alike", "apart"),
    [
        ((51.8, 52, 52.2), Answer.ON, Answer.UNDECIDED),
        ((47.8, 48, 48.2), Answer.OFF, Answer.LITTLE),
        ((69, 70, 71), Answer.ON, Answer.ON),
        ((29, 30, 31), Answer.OFF, Answer.OFF),
    ],
)
def test_a_session_decides_only_what_no_other_session_may_turn(study, root, rates, alike, apart):
    runs = campaign(setting(4, rates))
    for spread, expected in ((0.0, alike), (0.03, apart)):
        of_sessions = load(study | {"statistics": {"session_sd": spread}}, root)
        row, _ = advice_of(runs, of_sessions)
        assert row["answer"] == expected
    needs = Need.DAY if apart == Answer.UNDECIDED else None
    assert (row["needs"], pd.isna(row["more_repeats"])) == (needs, True)


def on_prompts(of_prompt, gamma=4):
    """Return a setting's runs; `of_prompt` has the speedup on each prompt."""
    return [
        run
        for prompt, speedup in of_prompt.items()
        for run in setting(gamma, 50 * speedup * WOBBLE, prompts=[prompt])
    ]


def test_a_gain_is_on_only_if_it_is_one_on_other_prompts_and_else_on_for_these(config):
    alike = {f"text-{n}": 1.2 + 0.01 * (n % 2) for n in range(4)}
    unlike = {f"text-{n}": 1.2 + 0.3 * (-1) ** n for n in range(4)}
    on, _ = advice_of(campaign(on_prompts(alike), prompts=alike), config)
    assert (on["answer"], on["other_prompts_low"] > 1) == (Answer.ON, True)
    here, _ = advice_of(campaign(on_prompts(unlike), prompts=unlike), config)
    assert here["answer"] == Answer.HERE
    assert here["simultaneous_low"] > 1 > here["other_prompts_low"]
    assert here["command"].startswith("llama-server")
    assert (here["needs"], on["needs"]) == (Need.PROMPTS, None)


@pytest.mark.parametrize(("speedup", "answer"), [(1.3, Answer.ON), (0.8, Answer.OFF)])
def test_one_repeat_answers_where_each_prompt_is_a_block(config, speedup, answer):
    settings = (
        on_prompts({p: share * (speedup + 0.02 * (n % 3)) for n, p in enumerate(MANY)}, gamma)
        for gamma, share in ((4, 1), (8, 0.8))
    )
    runs = campaign(*settings, prompts=MANY)
    runs = runs[runs["repeat"] == 0].assign(block=lambda once: once["prompt"])
    row, settings = advice_of(runs, config)
    assert (row["answer"], row["blocks"], row["repeats"]) == (answer, len(MANY), 1)
    assert settings.set_index("gamma")["slower"].to_dict() == {4: speedup < 1, 8: True}


def test_a_slower_setting_that_gains_on_other_prompts_is_advised_before_a_faster_one(config):
    sent = [f"text-{n}" for n in range(4)]
    unlike = {prompt: np.exp(0.5 + 0.22 * (-1) ** n) for n, prompt in enumerate(sent)}
    fast = on_prompts(unlike, gamma=8)
    sure = on_prompts(dict.fromkeys(sent, np.exp(0.45)))
    row, settings = advice_of(campaign(fast, sure, prompts=sent), config)
    assert settings.set_index("gamma").loc[8, "simultaneous_low"] > 1
    assert (row["answer"], row["gamma"]) == (Answer.ON, 4)


def of_kinds(*settings):
    """Return a campaign of settings by their speedups on kinds of four prompts each."""
    sent = [[f"{kind}-{n}" for kind in settings[0] for n in range(4)]] * len(settings)
    speedups = [{one: own[one[:4]] for one in of} for of, own in zip(sent, settings, strict=True)]
    both = (on_prompts(own, 4 * gamma) for gamma, own in enumerate(speedups, start=1))
    return campaign(*both, prompts=sent[0]).assign(category=lambda runs: runs["prompt"].str[:4])


def test_kinds_that_differ_have_a_setting_each_and_the_gain_of_all_prompts(config):
    four = {"code": 1.44, "chat": 0.7}
    runs = of_kinds(four, {"code": 1.3, "chat": 0.8})
    analysis = shown(runs, config)
    [row], kinds = analysis.advice.to_dict("records"), analysis.advice_kinds.set_index("kind")
    assert (row["answer"], row["command"], row["open_kinds"]) == (Answer.BY_KIND, None, 0)
    # Half of the prompts are 1.44 times as fast, the others as fast as without drafting.
    assert row["by_kind"] == pytest.approx(1.2, rel=1e-3)
    assert 1 < row["by_kind_low"] < 1.2 < row["by_kind_high"]
    told = [*zip(kinds["answer"], kinds["gamma"], kinds["speedup"].round(2), strict=True)]
    assert told == [(Answer.ON, 4, 1.44), (Answer.OFF, 8, 0.8)]
    assert ["--spec" in line for line in kinds["command"]] == [True, False]
    assert "\n  code (4 prompts): switch on; Draft 0.8B, γ = 4, 1.44 [" in printed(analysis)
    assert "speedup of 1.20 [" in " ".join(render_documents(analysis, ())["main"].split())
    page = render_page(analysis, {}, None)
    assert "with the setting of each kind: " in page
    assert "按提示词的类别打开" in page
    # A target that is on needs a loss, flags fall on fast runs, and loops are easy to draft.
    flagged = {"failed": of_prompt(runs, 8, "chat-1")[:1], "check": "baseline_time"}
    on = of_kinds(dict.fromkeys(four, 1.44), four)
    without = runs.assign(category=None)
    for other, audits in ((on, {}), (runs, flagged), (looping_in(runs, 100), {}), (without, {})):
        assert advised(other, config, **audits)["advice_kinds"].empty


def test_off_needs_every_setting_to_lose_by_itself_so_the_choice_takes_nothing_away(config):
    wide = setting(8, of_spread(0.5, sd=0.2))
    row, settings = advice_of(campaign(setting(4, of_spread(0.9, sd=0.03)), wide), config)
    nearest = settings.set_index("gamma").loc[4]
    assert nearest["simultaneous_high"] > 1 > nearest["setting_high"]
    assert row["answer"] == Answer.OFF


def test_settings_are_ranked_among_those_on_the_same_prompts_and_texts_answer(config):
    lengths = setting(4, [149, 150, 151], suite="F", prompts=PROMPTS[1:])
    runs = campaign(setting(4, [59, 60, 61]), setting(8, [69, 70, 71]), lengths)
    row, settings = advice_of(runs, config)
    assert (row["answer"], row["suite"], row["gamma"]) == (Answer.ON, "B", 8)
    assert (row["settings"], len(settings)) == (2, 3)
    assert row["prompt_set"] == "code, passage-64"
    alone = settings.set_index("suite").loc["F"]
    assert (alone["status"], alone["prompt_set"]) == (Status.BEST, "passage-64")
    # With one setting on its prompts there is no choice to allow for.
    own = [alone["setting_low"], alone["setting_high"]]
    assert [alone["simultaneous_low"], alone["simultaneous_high"]] == pytest.approx(own)


def test_settings_with_flagged_runs_or_baselines_are_excluded(config):
    runs = campaign(setting(4, [99, 100, 101]), setting(8, [59, 60, 61]))
    fastest = runs.loc[(runs["gamma"] == 4), "run"].iloc[0]
    row, settings = advice_of(runs, config, failed=[fastest])
    assert (row["answer"], row["gamma"]) == (Answer.ON, 8)
    assert (row["settings"], row["excluded_settings"], row["flagged"]) == (1, 1, 0)
    assert (row["not_compared"], row["sent_settings"]) == (1, 2)
    assert statuses(settings)[4] == Status.EXCLUDED
    assert np.isnan(settings.set_index("gamma").loc[4, "simultaneous_low"])
    row, _ = advice_of(runs, config, failed=[runs["run"].iloc[0]])  # a baseline of both
    assert (row["answer"], row["excluded_settings"]) == (Answer.UNKNOWN, 2)


def test_beside_a_beaten_setting_an_excluded_one_leaves_no_answer(config):
    runs = campaign(setting(4, [99, 100, 101]), setting(8, [59, 60, 61]))
    fastest = runs.loc[(runs["gamma"] == 4), "run"].iloc[0]
    found = shown(runs, config, stages=[BEATEN], failed=[fastest])
    for text in (printed(found), render_page(found, {}, None)):
        assert "every setting that was not beaten is flagged or was lost" in text


MANY = [f"text-{number}" for number in range(8)]


def workload(*settings):
    """Return a campaign of eight texts; `settings` are γ and the rate of each repeat."""
    return campaign(*(setting(*one, prompts=MANY) for one in settings), prompts=MANY)


def of_prompt(runs, gamma, prompt):
    return runs.loc[(runs["gamma"] == gamma) & (runs["prompt"] == prompt), "run"].tolist()


def test_a_setting_without_a_prompt_is_compared_at_all_and_takes_it_from_nobody(config):
    """All settings are slower on one prompt, of which one setting has no pair left."""
    of_prompts = dict.fromkeys(MANY, 1.2) | {"text-3": 0.6}
    slower = {prompt: 0.9 * speedup for prompt, speedup in of_prompts.items()}
    runs = campaign(on_prompts(of_prompts), on_prompts(slower, gamma=8), prompts=MANY)
    whole, _ = advice_of(runs, config)
    gone = of_prompt(runs, 8, "text-3")
    for found in ({"runs": disturb(runs, gone)}, {"failed": gone, "check": "baseline_time"}):
        row, settings = advice_of(**({"runs": runs} | found), config=config)
        assert (row["gamma"], row["speedup"]) == (4, pytest.approx(whole["speedup"]))
        assert settings["lacking_prompts"].tolist() == ["", "text-3"]
        assert settings["speedup"].tolist() == pytest.approx(
            [whole["speedup"] * x for x in (1, 0.9)]
        )


def test_no_answer_is_made_of_what_happens_to_be_left(config):
    """Most settings on the chats are lost; one on an editing prompt gains."""
    edits = setting(4, [69, 70, 71], suite="E", prompts=["edit"])
    chats = [setting(gamma, [39, 40, 41], prompts=MANY) for gamma in (2, 4, 8)]
    runs = campaign(*chats, edits, prompts=[*MANY, "edit"])

    chat = runs["suite"] == "B"
    lost = disturb(runs, runs.loc[chat & (runs["gamma"] == 2), "run"])
    flagged = {gamma: {*runs.loc[chat & (runs["gamma"] == gamma), "run"]} for gamma in (4, 8)}
    one, settings = advice_of(lost, config)
    assert (one["answer"], one["not_compared"], one["sent_settings"]) == (Answer.OFF, 1, 3)
    assert settings["status"].tolist() == [Status.BEST, Status.COMPARED, Status.LOST, Status.BEST]
    two, _ = advice_of(lost, config, failed=flagged[4])
    assert (two["answer"], two["lost_settings"]) == (Answer.UNKNOWN, 1)
    assert two["reason"].startswith("most settings are flagged or were lost")
    none = shown(lost, config, failed=flagged[4] | flagged[8])
    assert none.advice["answer"].tolist() == [Answer.UNKNOWN]
    assert "MoE Q4: 3 of 3 settings could not be compared." in printed(none)


def test_flags_on_fast_runs_alone_do_not_make_a_loss(config):
    """Without the fastest fifth of its pairs a setting looks surely slow."""
    runs = workload((4, [47, 47.2, 47.4]))
    fast = [run for prompt in MANY[:5] for run in of_prompt(runs, 4, prompt)[2:]]
    runs.loc[runs["run"].isin(fast), "tokens_per_second"] *= 1.3
    row, settings = advice_of(runs, config, failed=fast, check="baseline_time")
    assert row["setting_high"] < 1 < row["unfiltered_high"]
    assert (row["answer"], settings["flagged"].tolist()) == (Answer.UNDECIDED, [5])
    assert row["reason"].startswith("no setting gains without the pairs that the audit flags")


@pytest.mark.parametrize(("drafted", "idle"), [(0, True), (5, True), (6, False)])
def test_a_setting_that_hardly_drafts_is_not_the_fastest_and_no_obstacle_to_off(
    config, drafted, idle
):
    """A run is 100 tokens long."""
    runs = workload((4, [39, 40, 41]), (8, [55, 56, 57]))
    few = runs["gamma"] == 8
    runs.loc[few, ["rounds", "drafted", "accepted"]] = [float(drafted)] * 3
    row, settings = advice_of(runs, config)
    expected = (Answer.OFF, 4, 1) if idle else (Answer.ON, 8, 0)
    assert (row["answer"], row["gamma"], row["idle"]) == expected
    assert (statuses(settings)[8] == Status.IDLE) == idle
    if idle:
        alone, _ = advice_of(runs[runs["gamma"] != 4], config)
        assert (alone["answer"], alone["settings"]) == (Answer.LITTLE, 0)
        assert alone["command"] == alone["baseline_command"] is not None


def test_a_setting_that_was_beaten_is_not_compared_and_counts_among_those_chosen_from(config):
    runs = campaign(setting(4, [70, 71, 72]), setting(8, [40, 41, 42]))
    runs = runs[(runs["gamma"] != 8) | (runs["repeat"] == 0)]
    beaten = {"suite": "B", "target": TARGET, "draft": DRAFT, "gamma": 8}
    stages = [beaten | {"verdict": "beaten"}]
    alone, _ = advice_of(campaign(setting(4, [70, 71, 72])), config)
    row, settings = advice_of(runs, config, stages=stages)
    assert (row["answer"], row["settings"]) == (Answer.ON, 2)
    assert statuses(settings) == {4: "best", 8: "beaten"}
    assert 1 < row["simultaneous_low"] < alone["simultaneous_low"]


def disturb(runs, names):
    busy = runs["run"].isin(names)
    why, share = np.where(busy, "a thread waited", None), np.where(busy, 0.4, 0.04)
    return runs.assign(disturbed_reason=why, wait_share=share)


def test_disturbed_pairs_leave_the_answer_and_are_counted_beside_it(config):
    runs = workload((4, [59, 60, 61]))
    busy = of_prompt(runs, 4, "text-1")[:2]
    runs.loc[runs["run"].isin(busy), "tokens_per_second"] /= 10
    undecided, _ = advice_of(runs, config)
    assert undecided["answer"] == Answer.UNDECIDED
    row, _ = advice_of(disturb(runs, busy), config)
    assert (row["answer"], row["excluded"], row["pairs"]) == (Answer.ON, 2, 24)
    assert row["speedup"] == pytest.approx(1.2, rel=1e-3)


def test_a_target_of_which_no_pair_is_left_is_not_known_and_says_why(config):
    runs = workload((4, [59, 60, 61]))
    quiet = baseline_runs(["another"], MANY, 6)
    busy = disturb(pd.concat([runs, pd.DataFrame(quiet)]), runs.loc[runs["gamma"] == 4, "run"])
    row, settings = advice_of(busy, config)
    assert (row["answer"], row["lost_settings"]) == (Answer.UNKNOWN, 1)
    assert (
        row["reason"] == "the machine was disturbed far more than usual during every pair of runs"
    )
    assert settings["status"].tolist() == [Status.LOST]


def test_the_answer_says_what_it_compares_and_what_is_fastest_on_other_prompts(config):
    lengths = setting(4, [59, 60, 61], suite="F", prompts=PROMPTS[1:])
    runs = campaign(setting(4, [39, 40, 41]), setting(8, [36, 37, 38]), lengths)
    analysis = shown(runs, config)
    gains = "MoE Q4 gains on passage-64: Draft 0.8B, γ = 4, 1.20 ["
    assert gains in printed(analysis)
    # The paper names it where its own interval is above 1.
    [gain] = cited(analysis)["gains_elsewhere"]
    assert (gain["label"], gain["gamma"], gain["prompt_set"]) == ("MoE Q4", 4, "passage-64")
    assert not cited(shown(campaign(setting(4, [39, 40, 41])), config))["gains_elsewhere"]


@pytest.mark.parametrize("check", ["determinism", "measured_bandwidth", "expected_time"])
def test_runs_that_fail_what_was_seen_or_is_about_others_are_not_excluded(config, check):
    runs = campaign(setting(4, [99, 100, 101]))
    row, _ = advice_of(runs, config, failed=set(runs["run"]), check=check)
    assert row["answer"] == Answer.ON


def test_a_network_of_which_nothing_is_accepted_is_told_with_the_answer_once(config):
    runs = campaign(setting(4, [29, 30, 31]))
    broken = shown(runs, config, failed=set(runs["run"]), check="rejected_drafts")
    assert "\nMoE Q4: 0 of 9 drafted tokens accepted.\n" in printed(broken)


@pytest.mark.parametrize(
    "verdicts, controls, answer",
    [
        ([CheckVerdict.NOT_APPLICABLE], Controls.NONE, Answer.ON),
        ([CheckVerdict.PASS, CheckVerdict.NOT_APPLICABLE], Controls.PASSED, Answer.ON),
        ([CheckVerdict.PASS, CheckVerdict.FAIL], Controls.FAILED, Answer.UNKNOWN),
    ],
)
def test_failed_controls_leave_nothing_to_advise(config, verdicts, controls, answer):
    row, _ = advice_of(campaign(setting(4, [99, 100, 101])), config, controls=verdicts)
    assert (row["controls"], row["answer"]) == (controls, answer)


def test_controls_and_the_studys_commands_are_no_settings(config):
    itself = setting(4, [99, 100, 101], draft=TARGET)
    tools = [run | {"protocol": "study"} for run in setting(8, [99, 100, 101])]
    row, settings = advice_of(campaign(itself, tools), config)
    assert settings.empty
    assert row["answer"] == Answer.UNKNOWN
    assert row["reason"] == "no run with speculation was measured against baselines of its own"


def looping_in(runs, looped):
    """Return runs whose text is of 200 tokens, so many of which repeat one."""
    text = [*range(200 - looped), *[7] * looped]
    return runs.assign(tokens=[text] * len(runs))


def test_what_gains_on_text_that_loops_is_on_for_looping_text_and_never_on(config):
    gaining = campaign(setting(8, [59, 60, 61]))
    few, _ = advice_of(looping_in(gaining, 19), config)
    assert (few["answer"], few["looping"]) == (Answer.ON, pytest.approx(0.095))
    more, _ = advice_of(looping_in(gaining, 21), config)
    assert (more["answer"], more["command"]) == (Answer.LOOPING, None)
    # A loss on text that is easy to draft stays a loss.
    off, _ = advice_of(looping_in(campaign(setting(8, [39, 40, 41])), 200), config)
    assert off["answer"] == Answer.OFF


def test_the_terminal_has_a_line_for_each_target_and_a_command_to_be_pasted(config):
    near = shown(campaign(setting(4, [50, 52, 54]), setting(8, [29, 30, 31])), config)
    lines = printed(near).splitlines()
    heads, answer, _, more, command = lines[lines.index("") + 1 :][:5]
    assert heads.startswith("target  answer     best drafting      prompts  speedup")
    assert answer.startswith("MoE Q4  undecided  Draft 0.8B, γ = 4  2        1.04 [0.")
    assert re.fullmatch(r"MoE Q4: \d+ more repeats would decide, if speedups vary as before:", more)
    assert command.startswith("  snakemake --cores 1 advise --configfile CAMPAIGN.yaml --config")
    assert len(lines) <= 12


@pytest.mark.parametrize(("lowest", "faulty"), [(0.1, False), (0.99, True)])
def test_less_accepted_than_others_report_of_such_models_is_called_a_fault(config, lowest, faulty):
    near = shown(campaign(setting(4, 30 * WOBBLE)), config)
    beside = near.advice.assign(reported_low=lowest, reported_high=0.99)
    text = printed(replace(near, advice=beside))
    assert "% of the draft tokens were accepted; others report" in text
    assert ("on models of this size: look for a fault (resources" in text) == faulty
    assert "others report" not in printed(near)


@pytest.mark.parametrize("verdict", [Fate.UNTRIED, Fate.CONTENDER])
def test_what_there_were_no_minutes_for_is_counted(config, verdict):
    stages = [{"suite": "B", "target": TARGET, "draft": DRAFT, "gamma": 16, "verdict": verdict}]
    runs = campaign(setting(2, 30 * WOBBLE))
    row, _ = advice_of(runs, config, stages=stages)
    assert (row["answer"], row["not_compared"], row["sent_settings"]) == (Answer.OFF, 1, 2)
    row, _ = advice_of(runs, config, stages=[*stages, stages[0] | {"gamma": 8}])
    assert (row["answer"], row["needs"]) == (Answer.UNDECIDED, Need.MINUTES)
