"""Summaries of runs by setting, with intervals from repeats.

All functions take and return frames. The block is the unit of repetition: runs of one block share
an engine process, so only the deviation between blocks says how well a number would repeat.

A pair is a run with speculation and the baseline that it is compared with. Pairs are made once, by
`make_pairs`, and every table of settings is a `summarise` of them by some columns.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from enum import StrEnum
from operator import itemgetter
from typing import Any

import numpy as np
import pandas as pd

from specmoe.analysis import intervals
from specmoe.analysis.registry import records
from specmoe.audit.output import looping
from specmoe.config.block import MEASURED_BY, NO_DRAFT, PASSAGE_PREFIX, Protocol, Stop, Template
from specmoe.config.factors import THINKING, TURNS
from specmoe.config.methods import METHODS, Method
from specmoe.config.schema import Statistics
from specmoe.config.workloads import WorkloadBase
from specmoe.models.info import ModelInfo
from specmoe.runs.schema import excluded, undisturbed

_RATIOS = ("speedup", "first_token_ratio", "end_to_end", "user_speedup")
SETTING = ["suite", "target", "draft", "gamma"]
"""A setting at the campaign's own conditions, see `usual`."""
key_of = itemgetter(*SETTING)
"""The setting of a row."""


class Control(StrEnum):
    """What makes a setting a control: one whose outcome is known beforehand, to check a campaign.

    Its draft model is the target, or knows nothing of it, so it says nothing of one that one would
    use.
    """

    SELF = "self"
    UNRELATED = "unrelated"
    NONE = ""


def by_group(
    frame: pd.DataFrame,
    keys: Sequence[str],
    rows: Callable[[pd.DataFrame], Iterator[dict[str, Any]]],
) -> pd.DataFrame:
    """Return the rows that `rows` makes of each group, after the group's own `keys`, sorted.

    Null is a key like others.
    """
    return pd.DataFrame(
        dict(zip(keys, key, strict=True)) | row
        for key, members in frame.groupby([*keys], dropna=False)
        for row in rows(members)
    )


def with_conditions(runs: pd.DataFrame) -> pd.DataFrame:
    """Return runs with `condition`: the level of what their suite varies, null where it has none.

    Levels that are prompts of one block are none: a setting is measured over all of those.
    """
    level = runs["level"].astype(object)
    of_prompts = level.isin(TURNS) | (runs["prompt"] == PASSAGE_PREFIX + level)
    return runs.assign(condition=level.mask(of_prompts, None))


def usual(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the runs, or pairs, at the campaign's own conditions; others are in `levels` alone."""
    return frame[frame["condition"].isna()]


def make_pairs(
    runs: pd.DataFrame,
    unrelated: Collection[str],
    infos: Mapping[str, ModelInfo],
    workloads: Mapping[str, WorkloadBase] | None = None,
) -> pd.DataFrame:
    """Return the pairs of a campaign's runs: `with_speedups`, `control`, `thinking` and `counts`.

    A pair that does not count, because the machine was disturbed (see `runs.schema`), has no
    speedup and is only counted. `unrelated` and `infos` are those of `with_controls`.
    """
    runs = with_conditions(runs.assign(thinking=_thinking(runs, infos, workloads or {})))
    pairs = with_speedups(undisturbed(runs)).assign(counts=True)
    lost = excluded(runs).assign(counts=False)
    lost = lost[lost["draft"] != NO_DRAFT]
    return with_controls(pd.concat([pairs, lost]) if len(lost) else pairs, unrelated, infos)


def _thinking(
    runs: pd.DataFrame, infos: Mapping[str, ModelInfo], workloads: Mapping[str, WorkloadBase]
) -> pd.Series:
    """Return how many tokens of each run's text are thinking; null where its marks are unknown."""

    def of(target: str, workload: Any, level: Any, tokens: Sequence[int] | None) -> int | None:
        marks = infos[target].thinking if target in infos else None
        if not marks or marks.end is None or tokens is None:
            return None
        sent = workloads.get(workload or "")
        chat = sent and sent.template == Template.CHAT
        # Told nothing, llama-server tells it to think (`enable_thinking`, server-context.cpp).
        opened = sent and chat and marks.opens[THINKING.get(level, sent.thinking) is not False]
        return marks.thought(tokens, opened=bool(opened))

    read = runs[["target", "workload", "level", "tokens"]]
    counts = [of(*row) for row in read.itertuples(index=False)]
    return pd.Series(counts, runs.index, "Int64")


def with_controls(
    settings: pd.DataFrame, unrelated: Collection[str], infos: Mapping[str, ModelInfo]
) -> pd.DataFrame:
    """Return settings, or runs, with `control`, a `Control`'s value.

    They have the columns target, method and draft_model. `unrelated` are the draft models that know
    nothing of any target, `infos` the models' by id: a file under another name is the same model.
    """
    digests = {model: info.sha256 for model, info in infos.items()}
    target, draft = settings["target"], settings["draft_model"]
    same = target.map(digests).notna() & (target.map(digests) == draft.map(digests))
    cases = [~by_model(settings), same | (draft == target), draft.isin(unrelated)]
    values = [Control.NONE.value, Control.SELF.value, Control.UNRELATED.value]
    return settings.assign(control=np.select(cases, values, Control.NONE.value).astype(object))


def by_model(frame: pd.DataFrame) -> "pd.Series[bool]":
    """Return which rows are of a draft model; heads, MTP and n-grams are others."""
    return frame["method"] == METHODS[Method.DRAFT].engine


def is_no_control(settings: pd.DataFrame) -> "pd.Series[bool]":
    """Return which rows of `with_controls` are no controls."""
    return settings["control"] == Control.NONE


def with_speedups(runs: pd.DataFrame) -> pd.DataFrame:
    """Return the runs with speculation that have a baseline, with their speedup.

    A run is compared with its own baseline. In a suite where no run has one, as in the published
    study's B and D, each run is compared with its target's mean baseline. Elsewhere a run without a
    baseline has no row, or one setting would mix the two. Added columns:

    - paired: whether the baseline is the run's own.
    - mean_baseline_tokens_per_second: what the study divides by, the target's mean rate without
      speculation over all prompts of exact length, at the run's temperature. Unlike the study's
      Table 4 it includes the sweep of prompt lengths. Null where the target has no such run.
    - baseline_tokens_per_second: the rate that the run is compared with; speedup: the ratio to it.
    - first_token_ratio: the run's time to the first token, without which rates are, over that of
      its own baseline; end_to_end: the speedup of prompt and tokens. Null where a time is unknown.
    - baseline_options: the engine's options in its own baseline.
    - user_speedup: of a run in a load (see `measure.load`), the speedup of its own rate; its rate,
      its baseline's, and speedup are then the throughputs of both loads. Null for others.
    """
    parts = ["prompt_ms", "decode_ms"]
    own_rate = runs["tokens_per_second"].astype(float)
    throughput = runs["load_tokens_per_second"].astype(float).where(own_rate.notna())
    options = runs.set_index("run")["engine_options"]
    runs = runs.assign(own_rate=own_rate, tokens_per_second=throughput.fillna(own_rate))
    baselines = runs.set_index("run")[["tokens_per_second", "own_rate", *parts]].astype(float)
    drafted = runs[runs["draft"] != NO_DRAFT]
    baseline_rate = drafted["baseline"].map(baselines["tokens_per_second"])
    keys = [*MEASURED_BY, "target", "temperature"]
    means = _passage_baselines(runs).groupby(keys)["tokens_per_second"].mean()
    mean = means.reindex(pd.MultiIndex.from_frame(drafted[keys])).to_numpy(float)
    drafted = drafted.assign(paired=baseline_rate.notna(), mean_baseline_tokens_per_second=mean)
    in_paired_suite = drafted.groupby("suite")["paired"].transform("any").astype(bool)
    drafted = drafted.assign(baseline_tokens_per_second=baseline_rate.where(in_paired_suite, mean))
    # A text that ends with its first token has no rate.
    compared = drafted.dropna(subset=["baseline_tokens_per_second", "tokens_per_second"])
    baseline = baselines.reindex(compared["baseline"]).set_index(compared.index)
    times, baseline_times = compared[parts].astype(float), baseline[parts]
    return compared.drop(columns="own_rate").assign(
        baseline_options=compared["baseline"].map(options),
        speedup=compared["tokens_per_second"] / compared["baseline_tokens_per_second"],
        user_speedup=compared["own_rate"].where(compared["load_s"].notna()) / baseline["own_rate"],
        first_token_ratio=times["prompt_ms"] / baseline_times["prompt_ms"],
        end_to_end=baseline_times.sum(axis=1, skipna=False) / times.sum(axis=1, skipna=False),
    )


def summarise_baselines(runs: pd.DataFrame, statistics: Statistics) -> pd.DataFrame:
    """Return the table `baselines`, of runs at the campaign's own conditions."""
    speculative_suites = set(runs.loc[runs["draft"] != NO_DRAFT, "suite"])
    plain = _passage_baselines(runs)
    plain = plain[~plain["suite"].isin(speculative_suites)]

    def row(members: pd.DataFrame) -> Iterator[dict[str, Any]]:
        rates = members["tokens_per_second"]
        # Of logarithms, so that it stays above 0, and blocks are compared on the same prompts.
        mean = intervals.mean_speedup(members, "tokens_per_second")
        reach = mean.reach(statistics.confidence)
        yield {
            **intervals.Estimate.of_ratio(rates.mean(), reach).columns("tokens_per_second"),
            "tokens_per_second_sd": rates.std(),
            "prompt_tokens_per_second": (members["n_prompt"] / members["prompt_ms"] * 1000).mean(),
            "runs": len(members),
        }

    return by_group(plain, [*MEASURED_BY, "target"], row)


def token_times(runs: pd.DataFrame) -> dict[tuple[str, str], float]:
    """Return the milliseconds that a token takes the server, by engine and model without a draft.

    Geometric means over all runs.
    """
    plain = runs[(runs["draft"] == NO_DRAFT) & (runs["protocol"] == Protocol.PAIRED)]
    rates: Any = plain.groupby(["engine", "target"])["tokens_per_second"]
    return {model: 1000 / intervals.geometric_mean(members) for model, members in rates}


def _passage_baselines(runs: pd.DataFrame) -> pd.DataFrame:
    return runs[(runs["draft"] == NO_DRAFT) & runs["prompt"].str.startswith(PASSAGE_PREFIX)]


def summarise(
    pairs: pd.DataFrame,
    by: Sequence[str],
    statistics: Statistics,
    more: Callable[[pd.DataFrame], Mapping[str, Any]] = lambda members: {},
) -> pd.DataFrame:
    """Return a row for each setting, sorted, with the groups of `tables.yaml` but for `texts`.

    `pairs` is `make_pairs`'s frame, `by` the columns that make a setting, `more` returns further
    columns of the pairs of one that count; without any it has no row. user_speedup is beside the
    other ratios, and the protocol, engine and control are those of its runs.
    """

    def row(sent: pd.DataFrame) -> Iterator[dict[str, Any]]:
        members = sent[sent["counts"]]
        if members.empty:
            return
        accepted, rounds = _total(members["accepted"]), _total(members["rounds"])
        # A method that finds no draft tokens has no rounds to take a mean over.
        some_rounds = rounds if rounds > 0 else np.nan
        replays = (members["replays"] - members["replays_rejected"]).fillna(0).sum() / some_rounds
        rate = members["tokens_per_second"].mean()
        rates = members["accepted"].astype(float) / members["drafted"].astype(float)
        first = members.iloc[0]
        by_repeat = intervals.log_means(members.assign(block=members["repeat"]))
        yield {
            **first[[*MEASURED_BY, "method", "draft_model", "control"]],
            "runs": len(members),
            "blocks": members["block"].nunique(),
            "paired": bool(members["paired"].all()),
            "tokens_per_second": rate,
            "tokens_per_second_sd": members["tokens_per_second"].std(),
            "baseline_tokens_per_second": members["baseline_tokens_per_second"].mean(),
            "acceptance_rate": acceptance_rate(members["accepted"], members["drafted"]),
            "acceptance_rate_mean": rates.mean(),
            "drafted_share": _total(members["drafted"]) / _total(members["generated"]),
            "replays_per_round": replays,
            "tokens_per_round": 1 + accepted / some_rounds + replays,
            "rounds_per_run": rounds / len(members),
            "round_ms": members["decode_ms"].sum() / some_rounds,
            **mean_ratios(members, *_RATIOS),
            "speedup_unpaired": rate / first["mean_baseline_tokens_per_second"],
            "decode_failures": _total(members["decode_failures"]) / len(members),
            "log_speedups": [*by_repeat.reindex(range(by_repeat.index.max() + 1))],
            **more(members),
            "excluded": len(sent) - len(members) or None,
            "pairs": len(sent),
            "prompt_set": ", ".join(sorted(sent["prompt"].unique())),
        }

    peers = [name for name in by if name not in ("draft", "gamma")]
    settings = with_ends(by_group(pairs, by, row), peers, statistics, *_RATIOS)
    counts = dict.fromkeys(["excluded", "pairs"], "Int64")
    return settings if settings.empty else settings.astype(counts)


def describe_texts(members: pd.DataFrame) -> dict[str, Any]:
    """Return what a setting's pairs were sent and wrote: `texts` of the table `settings`."""
    written = [tuple(tokens) for tokens in members["tokens"] if tokens is not None]
    cut = (members["stop"] == Stop.EOS) & (members["stopped_by"] == Stop.LENGTH)
    still = cut & (members["thinking"] == members["generated"])
    return {
        "texts": sorted({*members["workload"].fillna(members["prompt"])}),
        "looping": float(np.mean([*map(looping, written)])) if written else np.nan,
        "cut": int(cut.sum()),
        "cut_thinking": int(still.sum()),
        "thinking": _total(members["thinking"]) / members["generated"].sum(),
    }


def summarise_categories(pairs: pd.DataFrame, statistics: Statistics) -> pd.DataFrame:
    """Return the table `categories` of pairs at the campaign's own conditions, without controls."""

    def prompt_columns(its: pd.DataFrame) -> dict[str, Any]:
        low, high = intervals.mean_on_other_prompts(its).interval(statistics.confidence)
        return {"prompts": its["prompt"].nunique(), "speedup_low": low, "speedup_high": high}

    known = pairs[pairs["category"].notna()]
    return summarise(known, [*SETTING, "workload", "category"], statistics, prompt_columns)


def acceptance_by_position(pairs: pd.DataFrame) -> pd.DataFrame:
    """Return the table `positions` of pairs at the campaign's own conditions, without controls."""

    def rows(members: pd.DataFrame) -> Iterator[dict[str, Any]]:
        tried, accepted = (
            np.sum([*map(np.asarray, members[f"{name}_per_position"])], axis=0)
            for name in ("drafted", "accepted")
        )
        places = np.flatnonzero(tried)
        counts = {"position": places + 1, "tried": tried[places], "accepted": accepted[places]}
        conditional = counts["accepted"] / counts["tried"]
        chances = {"conditional": conditional, "cumulative": conditional.cumprod()}
        yield from records(pd.DataFrame(counts | chances))

    return by_group(pairs[pairs["drafted_per_position"].notna()], [*SETTING, *MEASURED_BY], rows)


def mean_ratios(members: pd.DataFrame, *names: str) -> dict[str, intervals.Mean | None]:
    """Return the means of columns of ratios over blocks, by column, for `with_ends`.

    They are null unless known of all runs, of which there may be none.
    """
    known = [name for name in names if len(members) and members[name].notna().all()]
    means = {name: intervals.mean_speedup(members, name) for name in known}
    return dict.fromkeys(names) | means


def with_ends(
    rows: pd.DataFrame, peers: Sequence[str], statistics: Statistics, *names: str
) -> pd.DataFrame:
    """Return rows whose columns of `mean_ratios` are geometric means, each followed by its ends.

    Their variances are moderated among rows that are alike in `peers`.
    """
    if rows.empty:
        return rows
    columns: dict[str, Any] = {}
    for name, column in rows.items():
        columns[str(name)] = column
        if name not in names:
            continue
        values = [intervals.Estimate(np.nan)] * len(rows)
        for at in rows.groupby([*peers], dropna=False).indices.values():
            known = [place for place in at if column.iloc[place]]
            for place, mean in zip(known, intervals.moderated([*column.iloc[known]]), strict=True):
                values[place] = mean.estimate(statistics.confidence)
        columns.update(pd.DataFrame([value.columns(str(name)) for value in values], rows.index))
    return pd.DataFrame(columns, rows.index)


def acceptance_rate(accepted: pd.Series, drafted: pd.Series) -> float:
    """Return accepted / drafted tokens of runs, NaN unless known of all and some were drafted."""
    total = _total(drafted)
    return float(_total(accepted) / total) if total > 0 else np.nan


IDLE_SHARE = 0.05
"""Drafted over written tokens, up to which a setting is idle: half the gain of `LITTLE`."""


def is_idle(settings: pd.DataFrame) -> "pd.Series[bool]":
    """Return whether each setting hardly drafts: its speedup then says nothing of drafting.

    An accepted token saves a pass, which takes as long as writing a token alone. So even if all
    that was drafted had been accepted and had cost nothing, no more than IDLE_SHARE of the time
    would be spared. Unknown counts are not idle.
    """
    return settings["drafted_share"] <= IDLE_SHARE


def _total(counts: pd.Series) -> float:
    """Return the sum of a counter over runs, NaN unless it is known of all."""
    return np.float64(counts.sum() if counts.notna().all() else np.nan)
