"""Summaries of runs: what the tables and figures show, with intervals from repeats.

All functions take and return frames. The block is the unit of repetition: runs of one block share
an engine process, so only the spread between blocks says how well a number would repeat.
"""

import numpy as np
import pandas as pd

from specmoe.block import NO_DRAFT, PASSAGE_PREFIX
from specmoe.config import Statistics

CELL = ["suite", "target", "draft", "gamma"]


def pair_runs(runs: pd.DataFrame) -> pd.DataFrame:
    """Return the speculative runs that have a baseline, with its rate and their speedup.

    Added columns: `baseline_tokens_per_second`, `speedup` (ratio of the two rates).
    """
    rates = runs.set_index("run")["tokens_per_second"]
    pairs = runs[runs["baseline"].notna()].copy()
    pairs["baseline_tokens_per_second"] = rates.loc[pairs["baseline"]].to_numpy()
    pairs["speedup"] = pairs["tokens_per_second"] / pairs["baseline_tokens_per_second"]
    return pairs


def summarise_baselines(runs: pd.DataFrame) -> pd.DataFrame:
    """Return one row per target: its rate without a draft, in the suites that have none at all.

    Columns: target, tokens_per_second (mean over prompts of exact length and repeats),
    tokens_per_second_sd, prompt_tokens_per_second, runs. This is the paper's Table 4.
    """
    speculative_suites = set(runs.loc[runs["draft"] != NO_DRAFT, "suite"])
    plain = _passage_baselines(runs)
    plain = plain[~plain["suite"].isin(speculative_suites)]
    plain = plain.assign(prompt_rate=plain["n_prompt"] / plain["prompt_ms"] * 1000)
    return (
        plain.groupby("target", sort=False)
        .agg(
            tokens_per_second=("tokens_per_second", "mean"),
            tokens_per_second_sd=("tokens_per_second", "std"),
            prompt_tokens_per_second=("prompt_rate", "mean"),
            runs=("run", "size"),
        )
        .reset_index()
    )


def unpaired_baselines(runs: pd.DataFrame) -> pd.Series:
    """Return, by target, what the paper divides by: the mean over all runs of exact length.

    Unlike its Table 4 this includes the baselines of the prompt-length sweep.
    """
    return _passage_baselines(runs).groupby("target")["tokens_per_second"].mean()


def _passage_baselines(runs: pd.DataFrame) -> pd.DataFrame:
    return runs[(runs["draft"] == NO_DRAFT) & runs["prompt"].str.startswith(PASSAGE_PREFIX)]


def summarise_cells(
    pairs: pd.DataFrame,
    unpaired: pd.Series,
    settings: Statistics,
    keys: list[str] | None = None,
) -> pd.DataFrame:
    """Return one row per cell, sorted: rate, acceptance, speedup with its interval over blocks.

    `unpaired` is `unpaired_baselines`; `keys` are the columns that make a cell (default: suite,
    target, draft, gamma). Columns added:

    - runs, blocks: how many.
    - tokens_per_second, tokens_per_second_sd: over runs; block_sd: of the blocks' means.
    - baseline_tokens_per_second: mean over the paired baselines.
    - acceptance_rate: accepted / drafted tokens; mean_accepted_length: tokens a round yields, the
      target's own included, 1 + accepted / rounds.
    - speedup: geometric mean of the paired speedups; speedup_low, speedup_high: its interval,
      null with a single block.
    - speedup_unpaired: the paper's way, mean rate over the target's entry of `unpaired`;
      null where it has none.
    - common_prefix_min: shortest prefix shared with the baseline; identical: share of runs whose
      tokens are all the baseline's.
    """
    keys = keys or CELL
    rows = []
    for cell, members in pairs.groupby(keys):
        accepted, drafted = members["accepted"].sum(), members["drafted"].sum()
        rate = members["tokens_per_second"].mean()
        low, high = bootstrap_interval(members, settings)
        rows.append(
            dict(zip(keys, cell, strict=True))
            | {
                "runs": len(members),
                "blocks": members["block"].nunique(),
                "tokens_per_second": rate,
                "tokens_per_second_sd": members["tokens_per_second"].std(),
                "block_sd": members.groupby("block")["tokens_per_second"].mean().std(),
                "baseline_tokens_per_second": members["baseline_tokens_per_second"].mean(),
                "acceptance_rate": accepted / drafted,
                "mean_accepted_length": 1 + accepted / members["rounds"].sum(),
                "speedup": geometric_mean(members["speedup"].to_numpy(float)),
                "speedup_low": low,
                "speedup_high": high,
                "speedup_unpaired": rate / unpaired.get(members["target"].iloc[0], np.nan),
                "common_prefix_min": members["common_prefix"].min(),
                "identical": (members["common_prefix"] == members["n_predict"]).mean(),
            }
        )
    return pd.DataFrame(rows)


def geometric_mean(ratios: np.ndarray) -> float:
    """Return the geometric mean, the average that treats a ratio and its inverse alike."""
    return float(np.exp(np.mean(np.log(ratios))))


def bootstrap_interval(pairs: pd.DataFrame, settings: Statistics) -> tuple[float, float]:
    """Return the percentile-bootstrap interval of the geometric mean speedup over blocks.

    Whole blocks are drawn with replacement. With one block there is no spread to draw from, and
    both ends are NaN. With few blocks (three give 10 distinct draws) the interval spans about
    their range and is narrower than its nominal confidence.
    """
    logs = np.log(pairs["speedup"].to_numpy(float))
    blocks = pd.Series(logs).groupby(pairs["block"].to_numpy())
    sums, sizes = blocks.sum().to_numpy(), blocks.size().to_numpy()
    if len(sums) < 2:
        return float("nan"), float("nan")
    generator = np.random.default_rng(settings.seed)
    drawn = generator.integers(len(sums), size=(settings.resamples, len(sums)))
    means = sums[drawn].sum(axis=1) / sizes[drawn].sum(axis=1)
    tail = (1 - settings.confidence) / 2
    low, high = np.exp(np.quantile(means, [tail, 1 - tail]))
    return float(low), float(high)
