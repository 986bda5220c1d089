"""Summaries of runs: what the tables and figures show, with intervals from repeats.

All functions take and return frames. The block is the unit of repetition: runs of one block share
an engine process, so only the spread between blocks says how well a number would repeat.
"""

import numpy as np
import pandas as pd

from specmoe.config.block import NO_DRAFT, PASSAGE_PREFIX, WAY
from specmoe.config.schema import Statistics

CELL = ["suite", "target", "draft", "gamma"]


def with_speedups(runs: pd.DataFrame) -> pd.DataFrame:
    """Return the speculative runs that something can be said against, with their speedup.

    A run is compared with its own baseline. In a suite where no run has one, as in the published
    study's B and D, all are compared with the target's entry of `unpaired_baselines`; elsewhere a
    run whose baseline is missing is left out, or one cell would mix the two.

    Added columns: `paired` (whether the baseline is the run's own), `baseline_tokens_per_second`,
    `speedup` (ratio of the two rates).
    """
    speculative = runs[runs["draft"] != NO_DRAFT].copy()
    own = _own_baseline_rates(speculative, runs)
    speculative["paired"] = own.notna()
    in_paired_suite = speculative.groupby("suite")["paired"].transform("any").astype(bool)
    ways = pd.MultiIndex.from_frame(speculative[[*WAY, "target"]])
    unpaired = unpaired_baselines(runs).reindex(ways).to_numpy(float)
    speculative["baseline_tokens_per_second"] = own.where(in_paired_suite, unpaired)
    compared = speculative[speculative["baseline_tokens_per_second"].notna()].copy()
    compared["speedup"] = compared["tokens_per_second"] / compared["baseline_tokens_per_second"]
    return compared


def _own_baseline_rates(speculative: pd.DataFrame, runs: pd.DataFrame) -> pd.Series:
    rates = runs.set_index("run")["tokens_per_second"]
    return speculative["baseline"].map(rates).astype(float)


def summarise_baselines(runs: pd.DataFrame) -> pd.DataFrame:
    """Return one row per way and target: its rate in the suites that have no draft at all.

    Columns: protocol, engine, target, tokens_per_second (mean over prompts of exact length and
    repeats), tokens_per_second_sd, prompt_tokens_per_second, runs. This is the paper's Table 4.
    """
    plain = _plain_suites(runs)
    plain = plain.assign(prompt_rate=plain["n_prompt"] / plain["prompt_ms"] * 1000)
    return (
        plain.groupby([*WAY, "target"], sort=False)
        .agg(
            tokens_per_second=("tokens_per_second", "mean"),
            tokens_per_second_sd=("tokens_per_second", "std"),
            prompt_tokens_per_second=("prompt_rate", "mean"),
            runs=("run", "size"),
        )
        .reset_index()
    )


def with_intervals(
    baselines: pd.DataFrame, runs: pd.DataFrame, settings: Statistics
) -> pd.DataFrame:
    """Return `summarise_baselines(runs)` with the intervals of its rates over blocks.

    Added columns: tokens_per_second_low, tokens_per_second_high; null with a single block.
    """
    ends = {
        key: interval_of_mean(members["tokens_per_second"], members["block"], settings)
        for key, members in _plain_suites(runs).groupby([*WAY, "target"])
    }
    keys = list(baselines[[*WAY, "target"]].itertuples(index=False, name=None))
    return baselines.assign(
        tokens_per_second_low=[ends[key][0] for key in keys],
        tokens_per_second_high=[ends[key][1] for key in keys],
    )


def unpaired_baselines(runs: pd.DataFrame) -> pd.Series:
    """Return, by way and target, what the paper divides by: the mean over all of exact length.

    Unlike its Table 4 this includes the baselines of the prompt-length sweep.
    """
    return _passage_baselines(runs).groupby([*WAY, "target"])["tokens_per_second"].mean()


def _plain_suites(runs: pd.DataFrame) -> pd.DataFrame:
    """Return the runs of exact length in the suites that have no draft at all."""
    speculative_suites = set(runs.loc[runs["draft"] != NO_DRAFT, "suite"])
    plain = _passage_baselines(runs)
    return plain[~plain["suite"].isin(speculative_suites)]


def _passage_baselines(runs: pd.DataFrame) -> pd.DataFrame:
    return runs[(runs["draft"] == NO_DRAFT) & runs["prompt"].str.startswith(PASSAGE_PREFIX)]


def summarise_cells(
    compared: pd.DataFrame,
    unpaired: pd.Series,
    settings: Statistics,
    keys: list[str] | None = None,
) -> pd.DataFrame:
    """Return one row per cell, sorted: rate, acceptance, speedup with its interval over blocks.

    `compared` is `with_speedups`, `unpaired` is `unpaired_baselines`; `keys` are the columns that
    make a cell (default: suite, target, draft, gamma). Columns added:

    - protocol, engine: those of its suite; runs, blocks: how many.
    - paired: whether every run is compared with a baseline of its own.
    - tokens_per_second, tokens_per_second_sd: over runs; block_sd: of the blocks' means.
    - baseline_tokens_per_second: mean over the runs' baselines.
    - acceptance_rate: accepted / drafted tokens, summed over runs; acceptance_rate_mean: the
      paper's way, mean of the runs' own rates; mean_accepted_length: tokens a round yields, the
      target's own included, 1 + accepted / rounds. Null where a count is not known of all.
    - speedup: geometric mean of the runs' speedups; speedup_low, speedup_high: its interval, null
      with a single block. Where a cell is not paired, it leaves out how the baseline itself varies.
    - speedup_unpaired: the paper's way, mean rate over the target's entry of `unpaired`;
      null where it has none.
    - decode_failures: decodes that failed, a run; null where they were not counted.
    - common_prefix_min: shortest prefix shared with the baseline; identical: share of runs whose
      tokens are all the baseline's; both over runs of which that is known, null if it is of none.
    """
    keys = keys or CELL
    rows = []
    for cell, members in compared.groupby(keys):
        accepted, drafted = _total(members["accepted"]), _total(members["drafted"])
        rate = members["tokens_per_second"].mean()
        low, high = bootstrap_interval(members, settings)
        rates = members["accepted"].astype(float) / members["drafted"].astype(float)
        known = members[members["common_prefix"].notna()]
        first = members.iloc[0]
        alone = unpaired.get(tuple(first[[*WAY, "target"]]), np.nan)
        rows.append(
            dict(zip(keys, cell, strict=True))
            | {
                **first[WAY],
                "runs": len(members),
                "blocks": members["block"].nunique(),
                "paired": bool(members["paired"].all()),
                "tokens_per_second": rate,
                "tokens_per_second_sd": members["tokens_per_second"].std(),
                "block_sd": members.groupby("block")["tokens_per_second"].mean().std(),
                "baseline_tokens_per_second": members["baseline_tokens_per_second"].mean(),
                "acceptance_rate": accepted / drafted,
                "acceptance_rate_mean": rates.mean(),
                "mean_accepted_length": 1 + accepted / _total(members["rounds"]),
                "speedup": geometric_mean(members["speedup"].to_numpy(float)),
                "speedup_low": low,
                "speedup_high": high,
                "speedup_unpaired": rate / alone,
                "common_prefix_min": known["common_prefix"].min() if len(known) else np.nan,
                "decode_failures": _total(members["decode_failures"]) / len(members),
                "identical": (known["common_prefix"] == known["n_predict"]).mean()
                if len(known)
                else np.nan,
            }
        )
    return pd.DataFrame(rows)


def _total(counts: pd.Series) -> float:
    """Return the sum of a counter over runs, NaN unless it is known of all."""
    return np.float64(counts.sum() if counts.notna().all() else np.nan)


def geometric_mean(ratios: np.ndarray) -> float:
    """Return the geometric mean, the average that treats a ratio and its inverse alike."""
    return float(np.exp(np.mean(np.log(ratios))))


def bootstrap_interval(compared: pd.DataFrame, settings: Statistics) -> tuple[float, float]:
    """Return the percentile-bootstrap interval of the geometric mean speedup over blocks.

    Whole blocks are drawn with replacement. Prompts are not: every block sends the same ones, and
    the speedup is that of these (for others of their kind see `intervals.interval_over_prompts`).
    With one block there is no spread to draw from, and both ends are NaN. With few blocks (three
    give 10 distinct draws) the interval spans about their range and is narrower than its nominal
    confidence.
    """
    low, high = interval_of_mean(np.log(compared["speedup"]), compared["block"], settings)
    return float(np.exp(low)), float(np.exp(high))


def interval_of_mean(
    values: pd.Series, blocks: pd.Series, settings: Statistics
) -> tuple[float, float]:
    """Return the percentile-bootstrap interval of a mean over whole blocks; NaN of a single one."""
    if blocks.nunique() < 2:
        return float("nan"), float("nan")
    means = _resampled_means(values, blocks, settings, np.random.default_rng(settings.seed))
    return _interval(means, settings)


def interval_of_ratio(
    compared: pd.DataFrame, reference: pd.DataFrame, settings: Statistics
) -> tuple[float, float]:
    """Return the percentile-bootstrap interval of one cell's geometric mean speedup over another's.

    The blocks of each are drawn by themselves; NaN where one of them has a single block.
    """
    if min(frame["block"].nunique() for frame in (compared, reference)) < 2:
        return float("nan"), float("nan")
    generator = np.random.default_rng(settings.seed)
    means, others = (
        _resampled_means(np.log(frame["speedup"]), frame["block"], settings, generator)
        for frame in (compared, reference)
    )
    return _interval(np.exp(means - others), settings)


def _resampled_means(
    values: pd.Series, blocks: pd.Series, settings: Statistics, generator: np.random.Generator
) -> np.ndarray:
    grouped = values.astype(float).groupby(blocks)
    sums, sizes = grouped.sum().to_numpy(), grouped.size().to_numpy()
    drawn = generator.integers(len(sums), size=(settings.resamples, len(sums)))
    means: np.ndarray = sums[drawn].sum(axis=1) / sizes[drawn].sum(axis=1)
    return means


def _interval(resampled: np.ndarray, settings: Statistics) -> tuple[float, float]:
    tail = (1 - settings.confidence) / 2
    low, high = np.quantile(resampled, [tail, 1 - tail])
    return float(low), float(high)
