"""Small analyses for the tests of tables and figures, made from a few rows computed by hand.

Rates are round numbers: the baseline of every target runs at 50 tok/s, so a run at 60 tok/s has a
speedup of 1.20. Each analysis is made once: a test that wants another one replaces its tables.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import yaml

from specmoe.analysis import cost_tables
from specmoe.analysis.build import list_drafts, setting_tables
from specmoe.analysis.gamma_curves import gamma_curves
from specmoe.analysis.registry import TABLES, Analysis
from specmoe.analysis.summaries import (
    MEASURED_BY,
    acceptance_by_position,
    is_no_control,
    make_pairs,
    summarise_baselines,
    summarise_categories,
    usual,
    with_conditions,
    with_speedups,
)
from specmoe.analysis.upcycled_pairs import compare_pairs, compare_passes
from specmoe.analysis.views import compare_campaigns, compare_settings
from specmoe.audit.checks import ALL, CHECKS
from specmoe.audit.draft_rounds import scores_by_run
from specmoe.config.schema import Statistics
from specmoe.models.info import Size

from ..blocks import row as made_row
from . import simulated_rounds

BASELINE_RATE = 50.0
UNRELATED = "stranger"

GIVEN = yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text())
MODELS = pd.DataFrame(GIVEN["models"]).assign(
    sha256="0" * 64, in_cache=False, constructed=False, network=""
)
CAMPAIGN = pd.DataFrame([GIVEN["campaign"]])
N_PREDICT = GIVEN["campaign"]["n_predict"]
SUITES = pd.DataFrame(GIVEN["suites"])
LABELS = dict(zip(MODELS["model"], MODELS["label"], strict=True))

SIZES = {
    "moe_q4": Size(20_600_000_000, 1.5e9, 19e9, 256, 8, 40),
    "dense_4b": Size(4_400_000_000, 4.4e9, 0.0, 0, 0, 32),
}

# A dense model and MoEs that are made of it.
DENSE, MOE, SINGLE, DRAFT = "dense_4b", "moe_q4", "moe_1", "draft_0.8b"
DENSE_OF = {MOE: DENSE, SINGLE: DENSE}
STEPS = {MOE: (SINGLE, "file and experts"), SINGLE: (DENSE, "kernel")}
PAIR_SIZES = {MOE: Size(10**10, 1e9, 9e9, 4, 1, 2), DENSE: Size(4 * 10**9, 4e9, 0, 0, 0, 2)}
BANDWIDTH = 1e12  # bytes a second, so that a gigabyte takes a millisecond


def baseline_runs(targets: Iterable[str], prompts: Iterable[str], repeats: int) -> list[dict]:
    """Return runs without speculation, all at BASELINE_RATE."""
    return [
        _row("P", target, "none", 0, prompt, repeat, BASELINE_RATE)
        for target in targets
        for prompt in prompts
        for repeat in range(repeats)
    ]


def speculative_runs(
    suite: str, target: str, draft: str, gamma: int, rates: Iterable[float], prompt: str = "code"
) -> list[dict]:
    """Return runs with speculation, a block for each rate (tok/s); half of the drafted is kept."""
    return [
        _row(suite, target, draft, gamma, prompt, repeat, rate)
        | {
            "rounds": 10,
            "drafted": 10 * gamma,
            "accepted": 5 * gamma,
            "baseline": f"P/{target}/none/0/{repeat}/{prompt}",
            "common_prefix": N_PREDICT if repeat == 0 else 40,
        }
        for repeat, rate in enumerate(rates)
    ]


def logged_runs(
    target: str, draft: str, method: str, gamma: int, rates: Iterable[float], **columns: Any
) -> list[dict]:
    """Return runs of a suite whose ten rounds were logged; every second one keeps all its tokens.

    `method` has the engine's types, `columns` replace others of each row.
    """
    return [
        row
        | {
            "run": f"{row['run']}/{method}",
            "method": method,
            "draft_model": None,
            "accepted_per_position": [5] * gamma,
            "drafted_per_position": [10] + [5] * (gamma - 1),
            "accepted_lengths": [5, *[0] * (gamma - 1), 5],
            "replays": 0,
            "replays_rejected": 0,
        }
        | columns
        for row in speculative_runs("methods", target, draft, gamma, rates)
    ]


def analysis_of(rows: list[dict]) -> Analysis:
    """Return the analysis of runs as a campaign's; each run takes twice the time it needs."""
    runs = pd.DataFrame(rows)
    pairs = make_pairs(runs, [UNRELATED], {})
    own = usual(pairs[is_no_control(pairs)])
    drafted = runs[runs["draft"] != "none"]
    too_fast = ["too_fast", "too_fast_alone", "reads_too_fast", "reads_too_fast_alone"]
    return replace(
        settings_of(rows),
        positions=acceptance_by_position(own),
        categories=summarise_categories(own, Statistics()),
        required_time=drafted[["run", "suite", "target", "draft", "gamma"]].assign(
            family=[target.partition("_")[0] for target in drafted["target"]],
            campaign="by_hand",
            **{"decode_ms": 2000.0, "required_ms": 1000.0} | dict.fromkeys(too_fast, False),
        ),
    )


def settings_of(rows: list[dict]) -> Analysis:
    """Return the analysis of runs with no more than what claims are judged by: half the time."""
    runs, statistics = with_conditions(pd.DataFrame(rows)), Statistics()
    settings = runs.groupby([*MEASURED_BY, "suite", "target", "draft", "gamma", "prompt"])
    return Analysis(
        setting_tables(make_pairs(runs, [UNRELATED], {}), statistics),
        baselines=summarise_baselines(runs, statistics),
        models=MODELS,
        drafts=list_drafts(runs, lambda model: LABELS.get(model, model)),
        suites=SUITES,
        campaign=CAMPAIGN,
        flagged=settings.size().reset_index(name="runs").assign(flagged=0, impossible=0),
    )


@cache
def full() -> Analysis:
    """Return two targets, two drafts, γ of 4 and 8, and a sweep of one target.

    Speedups (γ = 4, 8): MoE with the 0.8B draft 1.20, 1.40; with the 2B draft 1.00 (γ = 4 alone);
    dense with the 0.8B draft 0.90, 0.80. Sweep: 1.10 at 64 tokens, 1.30 at 1024.
    """
    return analysis_of(
        [
            *baseline_runs(["moe_q4", "dense_4b"], ["code", "passage-64", "passage-1024"], 2),
            *speculative_runs("moe_speculative", "moe_q4", "draft_0.8b", 4, [60, 60]),
            *speculative_runs("moe_speculative", "moe_q4", "draft_0.8b", 8, [70, 70]),
            *speculative_runs("moe_speculative", "moe_q4", "draft_2b", 4, [50, 50]),
            *speculative_runs("moe_speculative", "dense_4b", "draft_0.8b", 4, [45, 45]),
            *speculative_runs("moe_speculative", "dense_4b", "draft_0.8b", 8, [40, 40]),
            *speculative_runs("prompt_length", "moe_q4", "draft_0.8b", 8, [55, 55], "passage-64"),
            *speculative_runs("prompt_length", "moe_q4", "draft_0.8b", 8, [65, 65], "passage-1024"),
        ]
    )


@cache
def single() -> Analysis:
    """Return one dense target, one draft, one γ, one repeat: no interval and no sweep."""
    return analysis_of(
        [
            *baseline_runs(["dense_4b"], ["code", "passage-64"], 1),
            *speculative_runs("moe_speculative", "dense_4b", "draft_0.8b", 4, [60]),
        ]
    )


@cache
def several_methods() -> Analysis:
    """Return two targets with several drafting methods; every second round keeps all or nothing.

    Speedups: MoE with the 0.8B draft 1.20 and 1.40 (γ = 4, 8), MTP 1.50, n-grams 1.10, others
    1.60; dense with the 0.8B draft 0.90, and n-grams, which never draft, 0.98.
    """
    file = {"draft_model": "draft_0.8b"}
    never = {"rounds": 0, "drafted": 0, "accepted": 0}
    never |= {"accepted_per_position": [0] * 4, "drafted_per_position": [0] * 4}
    never |= {"accepted_lengths": [0] * 5, "n_match": 3}
    moe, dense = "moe_q4", "dense_4b"
    return analysis_of(
        [
            *baseline_runs([moe, dense], ["code", "passage-64"], 2),
            *logged_runs(moe, "draft_0.8b", "draft-simple", 4, [60, 60], **file),
            *logged_runs(moe, "draft_0.8b", "draft-simple", 8, [70, 70], **file),
            *logged_runs(moe, "mtp-p0.5", "draft-mtp", 2, [75, 75], p_min=0.5),
            *logged_runs(moe, "ngram-simple-n3", "ngram-simple", 4, [55, 55], n_match=3),
            *logged_runs(moe, "ngram-mod-n2", "ngram-mod", 4, [80, 80], n_match=2),
            *logged_runs(dense, "draft_0.8b", "draft-simple", 4, [45, 45], **file),
            *logged_runs(dense, "ngram-simple-n3", "ngram-simple", 4, [49, 49], **never),
        ]
    )


@cache
def several_ways() -> Analysis:
    """Return one target, draft and γ = 4, 8, by llama-server and by the study's commands.

    Speedups: 0.80 and 0.60 of the former, without a failed decode; 1.20 and 1.40 of the latter,
    with 100 and 200 a run.
    """

    def runs(short: float, long: float) -> list[dict]:
        return [
            *baseline_runs(["moe_q4"], ["passage-64"], 2),
            *speculative_runs("S", "moe_q4", "draft_0.8b", 4, [short] * 2, "passage-64"),
            *speculative_runs("S", "moe_q4", "draft_0.8b", 8, [long] * 2, "passage-64"),
        ]

    tools = [
        row
        | {key: f"tools/{row[key]}" for key in ("suite", "block", "run", "baseline") if row[key]}
        | {"protocol": "study", "engine": "march-cpu-0a1b2c3d"}
        | {"decode_failures": 25 * row["gamma"]}
        for row in runs(60, 70)
    ]
    names = ["P", "S", "tools/P", "tools/S"]
    return replace(
        analysis_of([*runs(40, 30), *tools]), suites=SUITES.iloc[[0] * 4].assign(suite=names)
    )


def of_campaign(analysis: Analysis, **columns: Any) -> Analysis:
    """Return the analysis with other columns of its campaign."""
    return replace(analysis, campaign=analysis.campaign.assign(**columns))


def named(analysis: Analysis, name: str, source: str = "measured") -> Analysis:
    """Return the analysis as that of another campaign."""
    times = analysis.required_time.assign(campaign=name)
    return replace(of_campaign(analysis, campaign=name, source=source), required_time=times)


def compared_with(own: Analysis, *others: Analysis) -> Analysis:
    """Return a campaign's analysis next to others."""
    analyses = [own, *others]
    return replace(
        own,
        compared_settings=compare_settings(analyses),
        compared_campaigns=compare_campaigns(analyses),
    )


@cache
def compared() -> Analysis:
    """Return `full` next to `single`, in which the dense target has a speedup of 1.20 at γ = 4."""
    return compared_with(full(), named(single(), "other"))


@cache
def costed() -> Analysis:
    """Return two targets whose costs were measured, and settings that follow from them.

    γ = 16 is wider than the rounds that the MoE's costs are fitted on.
    """
    statistics, (fitted, compared, times) = Statistics(), fitted_pairs()
    predicted = cost_tables.predictions(fitted, compared, statistics)
    agrees = [place % 4 != 0 for place in range(simulated_rounds.N_PREDICT)]
    read = simulated_rounds.frame(
        simulated_rounds.agreed("moe_speculative", "moe_q4", (4, 8), agrees)
    )
    scores = scores_by_run(simulated_rounds.agreement("moe_q4", agrees))
    curves = gamma_curves(with_speedups(read), read, scores, fitted, times, statistics)
    tokens = {("current-cpu", "moe_q4"): simulated_rounds.STEP_MS}
    return replace(
        full(),
        gamma_curves=curves,
        verification=cost_tables.verification(fitted, statistics),
        pass_times=compare_passes(times, tokens, {}, SIZES, 400e9, statistics),
        campaign=CAMPAIGN.assign(machine_memory_bandwidth_bytes_per_second=400e9),
        fitted_costs=cost_tables.fitted_costs(fitted),
        predictions=predicted,
        prediction_errors=cost_tables.prediction_errors(predicted, curves),
        break_even=cost_tables.break_even(fitted, predicted).assign(
            reported_low=None, reported_high=None
        ),
    )


def fitted_pairs() -> tuple[list[cost_tables.Fitted], pd.DataFrame, pd.DataFrame]:
    """Return the costs of both targets, the runs and the passes that they are fitted on.

    The MoE's passes visit fewer experts than even routing would.
    """
    rows = [
        *simulated_rounds.forced("moe_q4", gammas=(1, 2, 4, 8), repeats=3, noise=0.01),
        *simulated_rounds.forced("dense_4b", hybrid=False, repeats=3, noise=0.01),
        *simulated_rounds.real("moe_speculative", "moe_q4", 4, 0.7),
        *simulated_rounds.real("moe_speculative", "moe_q4", 16, 0.7),
        *simulated_rounds.real("dense_speculative", "dense_4b", 4, 0.3, hybrid=False),
    ]
    runs = with_speedups(simulated_rounds.frame(rows))
    times = simulated_rounds.pass_times("moe_q4", "dense_4b", repeats=3)
    experts = 8.0 * times["n_tokens"] ** 0.8
    layers = pd.Series([[0.9 * mean, 1.1 * mean] for mean in experts])
    routed = pd.DataFrame({"experts": experts, "layers": layers}).where(times["model"] == "moe_q4")
    times = times.assign(**routed)
    return cost_tables.fit_pairs(runs, times, Statistics()), runs, times


def workload_runs(speedups: Mapping[str, Iterable[float]]) -> list[dict]:
    """Return three repeats of a workload by the speedups on each category's prompts.

    The second and third repeat are faster by 1 % and 2 %; half of every text is a loop.
    """
    rows, half = [], N_PREDICT // 2
    for category, of_prompts in speedups.items():
        text = {"workload": "mine", "category": category, "tokens": [*range(half), *[7] * half]}
        for number, speedup in enumerate(of_prompts):
            prompt = f"{category}{number}"
            rates = [BASELINE_RATE * speedup * 1.01**repeat for repeat in range(3)]
            of_prompt = baseline_runs(["moe_q4"], [prompt], 3)
            of_prompt += speculative_runs("W", "moe_q4", "draft_0.8b", 4, rates, prompt)
            rows += [row | text for row in of_prompt]
    return rows


def loads(gains: Mapping[int, float], gamma: int = 4) -> list[dict]:
    """Return runs with speculation and without, by the gain at each number of requests.

    A pass of the target gives every user a token.
    """
    rows = []
    counts = {"rounds": 40, "drafted": 160, "accepted": 59, "replays": 0, "replays_rejected": 0}
    for (at_once, gain), repeat, prompt in product(gains.items(), range(3), ("code", "poem")):
        block = f"U/moe_q4/{at_once}/draft_0.8b-{gamma}/r{repeat}"
        plain = {"run": f"{block}/baseline/{prompt}"}
        drafted = counts | {"run": f"{block}/g{gamma}/{prompt}", "baseline": plain["run"]}
        for draft, arm_gamma, rate, more in (
            ("none", 0, BASELINE_RATE, plain),
            ("draft_0.8b", gamma, BASELINE_RATE * gain, drafted),
        ):
            common = {"block": block, "concurrency": at_once, "level": str(at_once), "load_s": 1.0}
            common["load_tokens_per_second"] = at_once * rate
            rows.append(_row("U", "moe_q4", draft, arm_gamma, prompt, repeat, rate) | common | more)
    return rows


@cache
def with_loads() -> Analysis:
    """Return a campaign whose gain falls with γ = 4, from 1.3 to 0.9, and with γ = 2 does not."""
    rows = loads({1: 1.3, 2: 1.1, 4: 0.9}) + loads({1: 1.2, 2: 1.2, 4: 1.2}, gamma=2)
    suites = SUITES.iloc[:1].assign(suite="U", factor="requests")
    return replace(full(), levels=settings_of(rows).levels, suites=pd.concat([SUITES, suites]))


@cache
def with_categories() -> Analysis:
    """Return a campaign of a workload: code gains, poems lose."""
    prompts = 1 + 0.01 * np.arange(4)
    return analysis_of(workload_runs({"code": 1.5 * prompts, "poems": 0.8 * prompts}))


@cache
def controlled(failed: int = 0) -> Analysis:
    """Return `full` with two controls at γ = 4, 2 runs each, of which so many failed.

    The MoE drafts for itself at a speedup of 3.10, and has an unrelated draft at 2.10.
    """
    rows = [
        *baseline_runs(["moe_q4", "dense_4b"], ["code", "passage-64"], 2),
        *speculative_runs("moe_speculative", "moe_q4", "draft_0.8b", 4, [60, 60]),
        *speculative_runs("controls", "moe_q4", "moe_q4", 4, [155, 155]),
        *speculative_runs("controls", "moe_q4", UNRELATED, 4, [105, 105]),
        *speculative_runs("controls", "moe_q4", UNRELATED, 8, [105, 105], "passage-64"),
    ]
    counts = {"protocol": "paired", "engine": "current-cpu", "target": "moe_q4", "gamma": 4}
    audit = [
        counts | {"draft": "moe_q4", "controls_passed": 2 - failed, "controls_failed": failed},
        counts | {"draft": UNRELATED, "controls_passed": 2, "controls_failed": 0},
        dict.fromkeys([*MEASURED_BY, "target", "draft"], ALL)
        | {"controls_passed": 4 - failed, "controls_failed": failed},
    ]
    nothing = dict.fromkeys(["flagged", "impossible", "suspicious"], 0)
    zero = {f"{check}_{word}": 0 for check in CHECKS for word in ("passed", "failed")}
    stranger = MODELS[MODELS["model"] == "draft_0.8b"].assign(model=UNRELATED, label="Stranger")
    return replace(
        analysis_of(rows),
        models=pd.concat([MODELS, stranger], ignore_index=True),
        audit=pd.DataFrame([zero | row | {"runs": 2} | nothing for row in audit]),
    )


def runs_of_pair(
    speedups: Mapping[str, float], *, gammas: tuple[int, ...] = (4,), forced: float | None = None
) -> pd.DataFrame:
    """Return runs of both targets: three repeats of two prompts."""
    prompts, repeats = ("code", "letter"), 3
    rows = baseline_runs(speedups, prompts, repeats)
    for gamma, prompt, (target, speedup) in product(gammas, prompts, speedups.items()):
        made = speculative_runs("S", target, DRAFT, gamma, [50 * speedup] * repeats, prompt)
        rows += [row | {"forced_acceptance": forced, "tokens": [1, 2, 3]} for row in made]
    return pd.DataFrame(rows)


def pairs_of(runs: pd.DataFrame) -> pd.DataFrame:
    """Return what the MoE gains next to its dense counterpart."""
    return compare_pairs(with_speedups(runs), DENSE_OF, STEPS, Statistics())


def with_experiment(*, wide: bool = False) -> Analysis:
    """Return a dense model, an MoE of one expert and one of several, at two γ.

    `wide`: with intervals that say nothing.
    """
    pairs = pairs_of(runs_of_pair({DENSE: 1.0, SINGLE: 0.8, MOE: 0.4}, gammas=(2, 4)))
    ends = {"_low": 0.01, "_high": 100.0} if wide else {}
    pairs = pairs.assign(
        **{name: end for name in pairs for ending, end in ends.items() if name.endswith(ending)}
    )
    single = pd.DataFrame([{"model": SINGLE, "label": "MoE of one", "experts": 1}])
    models = pd.concat([full().models, single], ignore_index=True)
    setting = full().settings.iloc[[0]].assign(suite="S", draft=DRAFT, gamma=4)
    settings = pd.concat(
        setting.assign(target=name, speedup=speedup, end_to_end=end_to_end)
        for name, (speedup, end_to_end) in {DENSE: (1.0, 0.9), MOE: (0.4, 0.3)}.items()
    )
    return replace(full(), upcycled_pairs=pairs, models=models, settings=settings)


def times_of_pair(costs: Mapping[str, Mapping[int, float]], repeats: int = 3) -> pd.DataFrame:
    """Return passes timed by themselves, by model and width, in ms; repeats scale them."""
    return pd.DataFrame(
        [
            simulated_rounds.timed_pass(model, n_tokens, ms * (1 + repeat), repeat)
            | {"experts": 1.0 + 0.5 * (n_tokens - 1) if model == MOE else None}
            for model, of_model in costs.items()
            for n_tokens, ms in of_model.items()
            for repeat in range(repeats)
        ]
    )


@cache
def with_upcycled_pairs() -> Analysis:
    """Return a campaign with an upcycled pair.

    The MoE gains 0.75 times what its dense counterpart does, also at forced acceptance; its pass
    over five tokens costs 3.0 single ones, and the dense model's 1.5. Each had a new graph.
    """
    speedups = {DENSE: 1.2, MOE: 0.9}
    own = runs_of_pair(speedups, gammas=(2, 4))
    forced = [
        runs_of_pair(speedups, gammas=(2, 4), forced=share).assign(suite="I", draft_model=DRAFT)
        for share in (0.0, 1.0)
    ]
    times = times_of_pair({DENSE: {1: 10, 5: 15}, MOE: {1: 10, 5: 30}}).assign(first_ms=None)
    tokens = {("current-cpu", model): 1000 / BASELINE_RATE for model in speedups}
    known = {"machine_memory_bandwidth_bytes_per_second": BANDWIDTH}
    return replace(
        full(),
        campaign=full().campaign.assign(**known, machine_memory_bandwidth_source="config"),
        upcycled_pairs=pd.concat([pairs_of(runs) for runs in [own, *forced]], ignore_index=True),
        pass_times=compare_passes(times, tokens, DENSE_OF, PAIR_SIZES, BANDWIDTH, Statistics()),
    )


@cache
def without_drafts() -> Analysis:
    """Return a campaign of baselines alone."""
    return analysis_of(baseline_runs(["moe_q4"], ["passage-64"], 2))


def relabelled(analysis: Analysis, model: str, label: str) -> Analysis:
    """Return the analysis with another label for a model."""
    own = analysis.models["label"].mask(analysis.models["model"] == model, label)
    return replace(analysis, models=analysis.models.assign(label=own))


def _row(
    suite: str, target: str, draft: str, gamma: int, prompt: str, repeat: int, rate: float
) -> dict[str, Any]:
    block = f"{suite}/{target}/{draft}/{gamma}/{repeat}"
    n_prompt = int(prompt.partition("-")[2] or 20)
    given = {
        "suite": suite,
        "block": block,
        "run": f"{block}/{prompt}",
        "repeat": repeat,
        "started_at": pd.Timestamp("2026-01-02T03:04Z"),
        "gamma": gamma,
        "prompt": prompt,
        "level": prompt.partition("-")[2] or None,
        "n_prompt": n_prompt,
        "n_predict": N_PREDICT,
        "generated": N_PREDICT,
        "prompt_ms": n_prompt / 0.8,  # 800 tokens a second
        "decode_ms": 1000 * (N_PREDICT - 1) / rate,
        "tokens_per_second": rate,
    }
    uncounted = dict.fromkeys(["replays", "replays_rejected"], float("nan"))
    return made_row(target, draft, **given, **uncounted)


def with_state():
    """Return a campaign whose speedup clearly moves with the other baselines, of the MoE alone."""
    quarters = {
        "quarter": [1, 2, 3, 4],
        "other_tokens_per_second": [40.0, 45.0, 50.0, 60.0],
        "speedup": [1.2, 1.0, 1.1, 0.9],
        "expected": [1.16, 1.1, 1.04, 0.95],
    }
    whole = {"settings": 2, "blocks": 3, "slope": -0.5, "slope_low": -0.9, "slope_high": -0.1}
    rows = pd.DataFrame(quarters).assign(**whole, speedup_low=0.8, speedup_high=1.3)
    both = [rows.assign(target=name, clear=name == "moe_q4") for name in ("dense_4b", "moe_q4")]
    return replace(full(), state=pd.concat(both))


def advised(analysis, **columns):
    """Return the analysis with an answer for its MoE."""
    row = dict.fromkeys(TABLES["advice"].columns) | GIVEN["advice"]
    return replace(analysis, advice=pd.DataFrame([row | columns]))
