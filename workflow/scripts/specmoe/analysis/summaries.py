"""Summaries of runs: what the tables and figures show, with intervals from repeats.

All functions take and return frames. The block is the unit of repetition: runs of one block share
an engine process, so only the spread between blocks says how well a number would repeat.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from specmoe.analysis.drafts import Control
from specmoe.analysis.intervals import Estimate, estimate_of_ratio, interval_of_rate
from specmoe.config.block import MEASURED_BY, NO_DRAFT, PASSAGE_PREFIX
from specmoe.config.schema import Statistics

CELL = ["suite", "target", "draft", "gamma"]


def by_group(
    frame: pd.DataFrame,
    keys: Sequence[str],
    rows: Callable[[pd.DataFrame], Iterator[dict[str, Any]]],
    columns: list[str] | None = None,
) -> pd.DataFrame:
    """Return the rows that `rows` makes of each group, after the group's own `keys`, sorted.

    `columns` are those of the result, also where it has no rows. Null is a key like others.
    """
    found = [
        dict(zip(keys, key, strict=True)) | row
        for key, members in frame.groupby([*keys], dropna=False)
        for row in rows(members)
    ]
    return pd.DataFrame(found, columns=columns)


def with_speedups(runs: pd.DataFrame) -> pd.DataFrame:
    """Return the runs with a draft that have a baseline, with their speedup.

    A run is compared with its own baseline. In a suite where no run has one, as in the published
    study's B and D, each run is compared with its target's mean baseline. Elsewhere a run without a
    baseline is left out, or one cell would mix the two.

    Added columns:

    - paired: whether the baseline is the run's own.
    - mean_baseline_tokens_per_second: what the paper divides by, the target's mean rate without a
      draft over all prompts of exact length, at the run's temperature. Unlike the paper's Table 4
      it includes the sweep of prompt lengths. Null where the target has no such run.
    - baseline_tokens_per_second: the rate that the run is compared with.
    - speedup: the ratio of the run's rate to that one.
    - first_token_ratio: the run's time to the first token over its own baseline's. The draft reads
      the prompt too, and that time is no part of the rate.
    - end_to_end: the speedup of the whole answer: the baseline's time for prompt and tokens over
      the run's. Both are null where a time is not known.
    """
    drafted = runs[runs["draft"] != NO_DRAFT].copy()
    rates = runs.set_index("run")["tokens_per_second"]
    own = drafted["baseline"].map(rates).astype(float)
    drafted["paired"] = own.notna()
    in_paired_suite = drafted.groupby("suite")["paired"].transform("any").astype(bool)
    keys = [*MEASURED_BY, "target", "temperature"]
    means = _passage_baselines(runs).groupby(keys)["tokens_per_second"].mean()
    of_target = pd.MultiIndex.from_frame(drafted[keys])
    drafted["mean_baseline_tokens_per_second"] = means.reindex(of_target).to_numpy(float)
    drafted["baseline_tokens_per_second"] = own.where(
        in_paired_suite, drafted["mean_baseline_tokens_per_second"]
    )
    # A text that ends with its first token has no rate.
    rated = drafted["baseline_tokens_per_second"].notna() & drafted["tokens_per_second"].notna()
    compared = drafted[rated]
    parts = ["prompt_ms", "decode_ms"]
    times = compared[parts].astype(float)
    baseline = runs.set_index("run")[parts].astype(float).reindex(compared["baseline"])
    baseline = baseline.set_index(compared.index)
    return compared.assign(
        speedup=compared["tokens_per_second"] / compared["baseline_tokens_per_second"],
        first_token_ratio=times["prompt_ms"] / baseline["prompt_ms"],
        end_to_end=baseline.sum(axis=1, skipna=False) / times.sum(axis=1, skipna=False),
    )


def summarise_baselines(runs: pd.DataFrame, settings: Statistics) -> pd.DataFrame:
    """Return one row per way and target: its rate in the suites that have no draft at all.

    This is the paper's Table 4. Columns: protocol, engine, target, tokens_per_second (mean over
    prompts of exact length and repeats) with tokens_per_second_sd, prompt_tokens_per_second, runs,
    and the interval of the rate over blocks, tokens_per_second_low and tokens_per_second_high (see
    `interval_of_rate`), null with a single block.
    """
    speculative_suites = set(runs.loc[runs["draft"] != NO_DRAFT, "suite"])
    plain = _passage_baselines(runs)
    plain = plain[~plain["suite"].isin(speculative_suites)]
    plain = plain.assign(prompt_rate=plain["n_prompt"] / plain["prompt_ms"] * 1000)
    groups = plain.groupby([*MEASURED_BY, "target"], sort=False)
    baselines = groups.agg(
        tokens_per_second=("tokens_per_second", "mean"),
        tokens_per_second_sd=("tokens_per_second", "std"),
        prompt_tokens_per_second=("prompt_rate", "mean"),
        runs=("run", "size"),
    ).reset_index()
    intervals = [
        interval_of_rate(members["tokens_per_second"], members["block"], settings.confidence)
        for _, members in groups
    ]
    ends = ["tokens_per_second_low", "tokens_per_second_high"]
    return baselines.join(pd.DataFrame(intervals, columns=ends, dtype=float))


def _passage_baselines(runs: pd.DataFrame) -> pd.DataFrame:
    return runs[(runs["draft"] == NO_DRAFT) & runs["prompt"].str.startswith(PASSAGE_PREFIX)]


def summarise_cells(
    compared: pd.DataFrame,
    settings: Statistics,
    keys: Sequence[str] = CELL,
    more: Callable[[pd.DataFrame], Mapping[str, Any]] = lambda members: {},
) -> pd.DataFrame:
    """Return one row per cell, sorted: rate, acceptance, speedup with its interval over blocks.

    `compared` is `with_speedups`'s frame, `keys` are the columns that make a cell, `more` returns
    further columns of the runs of one. Columns added:

    - protocol, engine, method, draft_model, control: those of its runs; runs, blocks: how many.
    - paired: whether every run is compared with a baseline of its own.
    - tokens_per_second, tokens_per_second_sd: over runs; block_sd: of the blocks' means.
    - baseline_tokens_per_second: mean over the runs' baselines.
    - acceptance_rate: accepted / drafted tokens, summed over runs; acceptance_rate_mean: the
      paper's way, mean of the runs' own rates; mean_accepted_length: 1 + accepted / rounds;
      replays_per_round: those that gave a token; tokens_per_round: what both yield together;
      rounds_per_run: their number; round_ms: decode time over rounds. Null where a count is not
      known of all, or nothing was drafted; replays that were not counted are none.
    - speedup: geometric mean of the blocks', each of which is that of its runs; speedup_low,
      speedup_high: its interval, null with a single block. Where a cell is not paired, it leaves
      out how the baseline itself varies.
    - first_token_ratio, end_to_end: the same of these columns of `compared`, with intervals; null
      unless known of all runs.
    - speedup_unpaired: the paper's way, the cell's mean rate over its target's mean baseline (see
      `with_speedups`); null where the target has none.
    - decode_failures: failed decodes per run; null where they were not counted.
    - common_prefix_min: shortest prefix shared with the baseline; identical: share of runs whose
      tokens all equal the baseline's. Both are over the runs with a known prefix, null without any.
    """

    def row(members: pd.DataFrame) -> Iterator[dict[str, Any]]:
        accepted, drafted, rounds = (
            _total(members[name]) for name in ("accepted", "drafted", "rounds")
        )
        # A method that finds no draft has no rounds to take a mean over.
        some_rounds = rounds if rounds > 0 else np.nan
        replays = (members["replays"] - members["replays_rejected"]).fillna(0).sum() / some_rounds
        rate = members["tokens_per_second"].mean()
        rates = members["accepted"].astype(float) / members["drafted"].astype(float)
        known = members.dropna(subset="common_prefix")
        first = members.iloc[0]
        yield {
            **first[[*MEASURED_BY, "method", "draft_model"]],
            "control": first.get("control", Control.NONE.value),
            "runs": len(members),
            "blocks": members["block"].nunique(),
            "paired": bool(members["paired"].all()),
            "tokens_per_second": rate,
            "tokens_per_second_sd": members["tokens_per_second"].std(),
            "block_sd": members.groupby("block")["tokens_per_second"].mean().std(),
            "baseline_tokens_per_second": members["baseline_tokens_per_second"].mean(),
            "acceptance_rate": accepted / drafted if drafted > 0 else np.nan,
            "acceptance_rate_mean": rates.mean(),
            "mean_accepted_length": 1 + accepted / some_rounds,
            "replays_per_round": replays,
            "tokens_per_round": 1 + accepted / some_rounds + replays,
            "rounds_per_run": rounds / len(members),
            "round_ms": members["decode_ms"].sum() / some_rounds,
            **mean_ratio("speedup", members, settings),
            **mean_ratio("first_token_ratio", members, settings),
            **mean_ratio("end_to_end", members, settings),
            "speedup_unpaired": rate / first["mean_baseline_tokens_per_second"],
            "common_prefix_min": known["common_prefix"].min() if len(known) else np.nan,
            "decode_failures": _total(members["decode_failures"]) / len(members),
            "identical": (known["common_prefix"] == known["generated"]).mean()
            if len(known)
            else np.nan,
            **more(members),
        }

    return by_group(compared, keys, row)


def with_rates_alone(cells: pd.DataFrame, compared: pd.DataFrame) -> pd.DataFrame:
    """Return cells with the rate of their target alone, over the same prompts.

    `compared` is `with_speedups`'s frame. Columns added: alone_tokens_per_second and its standard
    deviation, alone_tokens_per_second_sd, over the baselines of all cells of the suite, each once.
    Cells that are not paired have the mean that they are compared with, without a deviation.
    """
    if cells.empty:
        return cells
    keys = [*MEASURED_BY, "suite", "target"]
    baselines = compared.drop_duplicates([*keys, "baseline"]).groupby(keys)
    rates = baselines["baseline_tokens_per_second"].agg(["mean", "std"])
    named = {"mean": "alone_tokens_per_second", "std": "alone_tokens_per_second_sd"}
    return cells.merge(rates.rename(columns=named), how="left", left_on=keys, right_index=True)


def mean_ratio(name: str, members: pd.DataFrame, settings: Statistics) -> dict[str, float]:
    """Return the geometric mean of a column of ratios over blocks and its ends, by column."""
    known = members[name].notna().all()
    estimate = estimate_of_ratio(members, name, settings.confidence) if known else Estimate(np.nan)
    return estimate.columns(name)


def named_prompts(cells: pd.DataFrame, runs: pd.DataFrame) -> list[str]:
    """Return the ids of the prompts that each cell was sent, whichever of its runs count."""
    drafted = runs[runs["draft"] != NO_DRAFT].groupby(CELL)["prompt"].unique()
    keys = cells[CELL].itertuples(index=False, name=None) if len(cells) else ()
    return [", ".join(sorted(drafted[key])) for key in keys]


def fastest(cells: pd.DataFrame) -> "pd.Series[bool]":
    """Return whether each cell is the fastest of its target and way on the prompts it was sent.

    The same rule as of advice: cells of other prompts are no rivals, and one that drafted nothing
    is never the fastest.
    """
    drafting = cells[cells["rounds_per_run"] != 0]
    best = drafting.groupby([*MEASURED_BY, "target", "prompt_set"])["speedup"].transform("max")
    return (drafting["speedup"] == best).reindex(cells.index, fill_value=False)


def drafted_nothing(members: pd.DataFrame) -> bool:
    """Return whether runs are known to have had no round; their speedup is not that of drafting."""
    return bool(_total(members["rounds"]) == 0)


def _total(counts: pd.Series) -> float:
    """Return the sum of a counter over runs, NaN unless it is known of all."""
    return np.float64(counts.sum() if counts.notna().all() else np.nan)


def geometric_mean(ratios: np.ndarray) -> float:
    """Return the geometric mean, the average that treats a ratio and its inverse alike."""
    return float(np.exp(np.mean(np.log(ratios))))
