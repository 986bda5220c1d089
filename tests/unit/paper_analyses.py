"""Small analyses for the tests of tables and figures, made from a few rows computed by hand.

Rates are round numbers: the baseline of every target runs at 50 tok/s, so a run at 60 tok/s has a
speedup of 1.20.
"""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pandas as pd

from specmoe.analysis import Analysis
from specmoe.config import Statistics
from specmoe.statistics import (
    CELL,
    WAY,
    summarise_baselines,
    summarise_cells,
    unpaired_baselines,
    with_intervals,
    with_speedups,
)

BASELINE_RATE = 50.0
N_PREDICT = 100

MODELS = pd.DataFrame(
    [
        # model, label, family, total, active, bytes, type, experts, experts used
        (
            "dense_4b",
            "Dense 4B",
            "dense",
            4_000_000_000,
            4_000_000_000,
            4_400_000_000,
            "Q8_0",
            0,
            0,
        ),
        (
            "moe_q4",
            "MoE Q4",
            "moe",
            35_000_000_000,
            3_000_000_000,
            20_600_000_000,
            "Q4_K_M",
            256,
            8,
        ),
        ("draft_0.8b", "Draft 0.8B", "dense", 800_000_000, 800_000_000, 810_000_000, "Q8_0", 0, 0),
        (
            "draft_2b",
            "Draft 2B",
            "dense",
            2_000_000_000,
            2_000_000_000,
            2_000_000_000,
            "Q8_0",
            0,
            0,
        ),
    ],
    columns=[
        "model",
        "label",
        "family",
        "parameters_total",
        "parameters_active",
        "size_bytes",
        "type",
        "experts",
        "experts_used",
    ],
).assign(sha256="0" * 64)

CAMPAIGN = pd.DataFrame(
    [
        {
            "campaign": "by_hand",
            "source": "measured",
            "length_unit": "tokens",
            "synthetic": True,
            "protocol": "paired",
            "engine": "current",
            "engine_commit": "0123456789abcdef",
            "backend": "cpu",
            "n_predict": N_PREDICT,
            "temperature": 0.0,
            "repeats": 2,
            "confidence": 0.95,
            "started_at": pd.Timestamp("2026-01-02T03:04Z"),
            "ended_at": pd.Timestamp("2026-01-03T03:04Z"),
            "load_average_max": 1.25,
            "host_id": "abc",
            "host_chip": "Processor & Sons",
            "host_memory_bytes": 16 * 2**30,
        }
    ]
)

SUITES = pd.DataFrame(
    [("B", "Drafts_50%", 1200, 12, 1199), ("F", "Lengths", 34, 5, 34)],
    columns=["suite", "title", "runs", "blocks", "measured"],
)


def baseline_runs(targets: Iterable[str], prompts: Iterable[str], repeats: int) -> list[dict]:
    """Return runs without a draft, all at BASELINE_RATE."""
    return [
        _row("P", target, "none", 0, prompt, repeat, BASELINE_RATE)
        for target in targets
        for prompt in prompts
        for repeat in range(repeats)
    ]


def speculative_runs(
    suite: str, target: str, draft: str, gamma: int, rates: Iterable[float], prompt: str = "code"
) -> list[dict]:
    """Return runs with a draft, a block for each rate (tok/s); half of the drafted is kept."""
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


def needed_times(runs: pd.DataFrame) -> pd.DataFrame:
    """Return, for the runs with a draft, times in which each takes twice what it needs."""
    drafted = runs[runs["draft"] != "none"]
    times = drafted[["run", "suite", "target", "draft", "gamma"]].copy()
    times["family"] = ["moe" if target.startswith("moe") else "dense" for target in times["target"]]
    return times.assign(decode_ms=2000.0, required_ms=1000.0, campaign="by_hand")


def analysis_of(rows: list[dict]) -> Analysis:
    """Return the analysis of runs, summarised as a campaign's are."""
    runs = pd.DataFrame(rows)
    settings = Statistics(resamples=200)
    compared, baselines, unpaired = (
        with_speedups(runs),
        with_intervals(summarise_baselines(runs), runs, settings),
        unpaired_baselines(runs),
    )
    of_length = compared["prompt"].str.startswith("passage-").astype(bool)
    sweep = summarise_cells(compared[of_length], unpaired, settings, [*CELL, "prompt", "n_prompt"])
    if not sweep.empty:
        sweep["baseline_tokens_per_second"] = BASELINE_RATE
    cells = summarise_cells(compared, unpaired, settings)
    tables = (baselines, cells, sweep, MODELS, SUITES, CAMPAIGN)
    return Analysis(
        *tables,
        by_prompt=summarise_cells(compared[~of_length], unpaired, settings, [*CELL, "prompt"]),
        marked=unmarked(runs),
        required_time=needed_times(runs),
    )


def unmarked(runs: pd.DataFrame) -> pd.DataFrame:
    """Return the counts of an audit that marks none of the runs."""
    cells = runs.groupby([*WAY, "suite", "target", "draft", "gamma", "prompt"])
    return cells.size().reset_index(name="runs").assign(marked=0)


def full() -> Analysis:
    """Return two targets, two drafts, γ of 4 and 8, and a sweep of one target.

    Speedups (γ = 4, 8): MoE with the 0.8B draft 1.20, 1.40; with the 2B draft 1.00 (γ = 4 alone);
    dense with the 0.8B draft 0.90, 0.80. Sweep: 1.10 at 64 tokens, 1.30 at 1024.
    """
    return analysis_of(
        [
            *baseline_runs(["moe_q4", "dense_4b"], ["code", "passage-64", "passage-1024"], 2),
            *speculative_runs("B", "moe_q4", "draft_0.8b", 4, [60, 60]),
            *speculative_runs("B", "moe_q4", "draft_0.8b", 8, [70, 70]),
            *speculative_runs("B", "moe_q4", "draft_2b", 4, [50, 50]),
            *speculative_runs("B", "dense_4b", "draft_0.8b", 4, [45, 45]),
            *speculative_runs("B", "dense_4b", "draft_0.8b", 8, [40, 40]),
            *speculative_runs("F", "moe_q4", "draft_0.8b", 8, [55, 55], "passage-64"),
            *speculative_runs("F", "moe_q4", "draft_0.8b", 8, [65, 65], "passage-1024"),
        ]
    )


def single() -> Analysis:
    """Return one dense target, one draft, one γ, one repeat: no interval and no sweep."""
    return analysis_of(
        [
            *baseline_runs(["dense_4b"], ["code", "passage-64"], 1),
            *speculative_runs("B", "dense_4b", "draft_0.8b", 4, [60]),
        ]
    )


def several_ways() -> Analysis:
    """Return one target, draft and γ = 4, 8, by llama-server and by the study's commands.

    Speedups: 0.80 and 0.60 of the former, without a failed decode; 1.20 and 1.40 of the latter,
    with 100 and 200 a run.
    """
    server = [
        *baseline_runs(["moe_q4"], ["passage-64"], 2),
        *speculative_runs("S", "moe_q4", "draft_0.8b", 4, [40, 40], "passage-64"),
        *speculative_runs("S", "moe_q4", "draft_0.8b", 8, [30, 30], "passage-64"),
    ]
    faster = {4: 60, 8: 70}
    tools = [
        row
        | {key: f"tools/{row[key]}" for key in ("suite", "block", "run")}
        | {"protocol": "published", "engine": "march-cpu"}
        | (
            {
                "tokens_per_second": faster[row["gamma"]],
                "baseline": f"tools/{row['baseline']}",
                "decode_failures": 25 * row["gamma"],
            }
            if row["draft"] != "none"
            else {}
        )
        for row in server
    ]
    names = ["P", "S", "tools/P", "tools/S"]
    return replace(analysis_of([*server, *tools]), suites=SUITES.iloc[[0] * 4].assign(suite=names))


def without_drafts() -> Analysis:
    """Return a campaign of baselines alone."""
    return analysis_of(baseline_runs(["moe_q4"], ["passage-64"], 2))


def relabelled(analysis: Analysis, model: str, label: str) -> Analysis:
    """Return the analysis with another label for a model."""
    models = analysis.models.copy()
    models.loc[models["model"] == model, "label"] = label
    return replace(analysis, models=models)


def _row(
    suite: str, target: str, draft: str, gamma: int, prompt: str, repeat: int, rate: float
) -> dict[str, Any]:
    block = f"{suite}/{target}/{draft}/{gamma}/{repeat}"
    n_prompt = int(prompt.partition("-")[2] or 20)
    return {
        "suite": suite,
        "block": block,
        "run": f"{block}/{prompt}",
        "target": target,
        "protocol": "paired",
        "engine": "current-cpu",
        "decode_failures": 0,
        "draft": draft,
        "gamma": gamma,
        "prompt": prompt,
        "n_prompt": n_prompt,
        "n_predict": N_PREDICT,
        "prompt_ms": n_prompt / 0.8,  # 800 tokens a second
        "tokens_per_second": rate,
        "rounds": None,
        "drafted": None,
        "accepted": None,
        "baseline": None,
        "common_prefix": None,
    }
