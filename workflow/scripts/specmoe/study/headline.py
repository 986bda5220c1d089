"""The headline claims of the study, and the tables that judge them by an analysis.

`resources/reported/statements.yaml` has the claims. For each a function gets the analysis of one
protocol and engine and yields comparisons; module `judge` has the rule by which these decide.
"""

import json
from collections.abc import Callable, Iterable
from functools import partial
from itertools import pairwise, permutations
from math import inf, isnan

import numpy as np
import pandas as pd

from specmoe.analysis import views
from specmoe.analysis.intervals import Estimate, block_mean
from specmoe.analysis.number_text import fixed, measured
from specmoe.analysis.registry import Analysis, Record, records
from specmoe.config.base import resource
from specmoe.study.judge import Comparison, Comparisons, Missing, StudyClaim, judge_claims
from specmoe.study.printed_numbers import compare_all, compare_printed, read_reported

CONSTRUCTED = (
    "acceptance was constructed: the targets have random weights, copied experts, or the network of"
    " their draft models"
)
_ACCEPTANCE = "acceptance_rate_mean"
_ONE = Estimate.exact(1)
_DENSE = {"dense_4b": "the dense 4B", "dense_9b": "the dense 9B"}
# What a router, or a padded vocabulary, may add to the parameters of a network.
_ADDED = 1.02


def speedups_round_to(settings: pd.DataFrame, low: float, high: float) -> Comparisons:
    """Compare the speedups of MoE targets with bounds that were printed with two decimals."""
    for row in records(_moe(settings[settings["speedup"].notna()])):
        yield Comparison(_estimate(row).within(low - 0.005, high + 0.005), _said(row), (row,))


def acceptance_is_low(settings: pd.DataFrame) -> Comparisons:
    """Compare acceptance rates, the study's means over runs, with 4 %, unless they were made."""
    known = settings[settings[_ACCEPTANCE].notna()]
    real = known[~known["constructed"]]
    if real.empty and len(known):
        raise Missing(CONSTRUCTED)
    for row in records(real):
        percent = 100 * row[_ACCEPTANCE]
        words = f"{_setting(row)}: {fixed(percent, 2)} %"
        yield Comparison(Estimate.exact(4 - percent), words, (row,))


def gain_without_acceptance(analysis: Analysis) -> Comparisons:
    """Compare the speedup that rounds would have without their accepted tokens with 1.

    A round and its replay yield L tokens, the target's own included. Without the accepted ones they
    would yield one a pass in the same time, so with p passes a round the speedup would be S p / L.
    On a steady machine no valid run has S p > L. Where the engine was forced to accept 4 % at most,
    the measured speedup decides.
    """
    made = analysis.predictions
    made = made[made["forced_acceptance"].notna() & (made["acceptance_rate"] <= 0.04)]
    for row in records(_moe(_sized(analysis, made)).query("smallest")):
        words = _said(row, f", made to accept {100 * row['acceptance_rate']:.1f} %")
        yield Comparison(_estimate(row).minus(_ONE), words, (row,))
    for row in records(_moe(_texts(analysis, "tokens_per_round")).query("smallest")):
        tokens, passes = row["tokens_per_round"], 1 + row["replays_per_round"]
        without = _estimate(row).times(passes / tokens)
        words = (
            f"{_setting(row)}: {row['speedup']:.2f} with {tokens:.2f} tokens a round; with"
            f" {passes:.3g} it would be {_number(without)}"
        )
        yield Comparison(without.minus(_ONE), words, (row,))


def checking_is_sublinear(analysis: Analysis) -> Comparisons:
    """Compare the cost of a verification with that of as many single passes.

    Where passes were timed by themselves, their times decide. Elsewhere a round of L tokens at
    speedup S takes the time of L / S single passes: an upper bound, as it includes drafting.
    """
    passes = analysis.pass_times[analysis.pass_times["n_tokens"] > 1]
    for row in records(passes):
        took = _estimate(row, "of_single")
        words = f"{row['label']}: a pass over {row['n_tokens']} tokens takes the time of"
        words += f" {_number(took)} of one token"
        yield Comparison(Estimate.exact(row["n_tokens"]).minus(took), words, ())
    if len(passes):
        return
    for row in records(_texts(analysis, "tokens_per_round")):
        positions = row["gamma"] + 1
        took = _estimate(row).inverse().times(row["tokens_per_round"])
        words = (
            f"{_setting(row)}: a round of {positions} positions, with its drafting, takes the"
            f" time of {_number(took)} passes"
        )
        yield Comparison(Estimate.exact(positions).minus(took._replace(low=-inf)), words, (row,))


def rises_with_gamma(analysis: Analysis) -> Comparisons:
    """Compare the speedups of neighbouring γ, of each target with each draft model."""
    for curve in _groups(_texts(analysis), "series", "draft"):
        yield from (_gains_more(analysis, after, before) for before, after in pairwise(curve))


def corner_is_best(analysis: Analysis) -> Comparisons:
    """Compare a target's smallest draft model and largest γ with others, if it has two of both."""
    for rows in _groups(_texts(analysis), "series"):
        corner = min(rows, key=lambda row: (row["draft_parameters"], -row["gamma"]))
        larger = [_fewer(corner, row, "draft_parameters") for row in rows]
        shorter = [row["gamma"] < corner["gamma"] for row in rows]
        if any(larger) and any(shorter):
            others = zip(rows, larger, shorter, strict=True)
            yield from (_gains_more(analysis, corner, row) for row, *worse in others if any(worse))


def smaller_draft_gains_more(analysis: Analysis) -> Comparisons:
    """Compare the speedups of two draft models of an MoE target at the same γ."""
    for rows in _groups(_moe(_texts(analysis)), "series", "gamma"):
        for small, large in permutations(rows, 2):
            if _fewer(small, large, "draft_parameters"):
                yield _gains_more(analysis, small, large)


def between_the_dense(analysis: Analysis) -> Comparisons:
    """Compare MoE targets at their best with the dense 4B and 9B at theirs."""
    best = _at_best(analysis)
    ends = {name: [row for row in best if row["target"] == name] for name in _DENSE}
    if lacking := " or of ".join(_DENSE[name] for name, rows in ends.items() if not rows):
        raise Missing(
            f"no runs of {lacking} with a draft model (controls and forced acceptance aside)"
        )
    low, high = ends.values()
    if not _fewer(low[0], high[0], "parameters_total"):
        raise Missing("one network stands for both the dense 4B and the dense 9B")
    for row in (row for row in best if row["family"] == "moe"):
        yield from (_gains_more(analysis, row, dense) for dense in low)
        yield from (_gains_more(analysis, dense, row) for dense in high)


def gain_follows(analysis: Analysis, column: str, *, holds: bool) -> Comparisons:
    """Compare the best gains of an MoE and a dense target in the order of their parameters.

    The one with more of them gains more, or less if the claim denies that (not `holds`).
    """
    for less, more in permutations(_at_best(analysis), 2):
        if less["family"] != more["family"] and _fewer(less, more, column):
            yield _gains_more(analysis, *((more, less) if holds else (less, more)))


def reads_its_file(analysis: Analysis) -> Comparisons:
    """Compare the baselines of MoE targets, file size times rate, with the memory's bandwidth.

    Without any, timed passes over one token decide. Rates can refute the claim but never prove it.
    A probed bandwidth may be too low by a tenth, see `audit.limits`.
    """
    bandwidth = analysis.campaign.iloc[0].get("machine_memory_bandwidth_bytes_per_second")
    if bandwidth is None or not bandwidth > 0:
        raise Missing("the machine's memory bandwidth is not known")
    baselines, passes = _moe(analysis.baselines), _moe(analysis.pass_times).query("n_tokens == 1")
    if baselines.empty:
        baselines = passes.merge(analysis.models[["model", "size_bytes", "in_cache"]])
    rows = records(baselines[~baselines["in_cache"].astype(bool)])
    if len(baselines) and not rows:
        raise Missing("a cache may hold the weights of these targets")
    for row in rows:
        size, of_pass = row["size_bytes"] / 1e9, "target" not in row
        rate = _estimate(row, "ms" if of_pass else "tokens_per_second")
        rate = rate.inverse().times(1000) if of_pass else rate
        needed = rate.times(size)
        words = (
            f"{row['label']}: {size:.2f} GB a token at {rate.value:.1f} tok/s need"
            f" {_number(needed, 0)} GB/s; memory delivers {bandwidth / 1e9:.0f}"
        )
        most = Estimate.exact(bandwidth / 1e9 * 1.1)
        yield Comparison(most.minus(needed)._replace(low=-inf), words, () if of_pass else (row,))


def _sized(analysis: Analysis, settings: pd.DataFrame) -> pd.DataFrame:
    """Return settings with `draft_parameters`, and `smallest`: the target's fewest.

    A target that its own network drafts for, in another type, is `constructed`.
    """
    models = analysis.models.set_index("model")["parameters_total"]
    sizes = settings["draft"].map(analysis.drafts.set_index("draft")["draft_model"].map(models))
    smallest = sizes == sizes.groupby(settings["series"]).transform("min")
    itself = (settings["parameters_total"] / sizes).between(1 / _ADDED, _ADDED)
    constructed = settings["constructed"].astype(bool) | itself
    return settings.assign(draft_parameters=sizes, smallest=smallest, constructed=constructed)


def _texts(analysis: Analysis, known: str = "speedup") -> pd.DataFrame:
    """Return the settings of suites that send whole texts, or of all suites if none does."""
    settings = views.text_settings(analysis)
    settings = views.usual_settings(analysis) if settings.empty else settings
    return _sized(analysis, settings[settings[known].notna()])


def _moe(frame: pd.DataFrame) -> pd.DataFrame:
    return frame[frame["family"] == "moe"]


def _groups(settings: pd.DataFrame, *keys: str) -> list[list[Record]]:
    """Return the settings in groups of equal values of `keys`, each in order of γ."""
    settings = settings.sort_values("gamma", kind="stable")
    return [records(members) for _, members in settings.groupby(list(keys), sort=False)]


def _at_best(analysis: Analysis) -> list[Record]:
    """Return each target's setting of highest speedup; its interval ignores the choice."""
    groups = _groups(_texts(analysis), "series")
    return [max(rows, key=lambda row: float(row["speedup"])) for rows in groups]


def _fewer(less: Record, more: Record, column: str) -> bool:
    """Return whether one has fewer parameters, and is not the same network in another type."""
    return bool(_ADDED * less[column] < more[column])


def _gains_more(analysis: Analysis, more: Record, less: Record) -> Comparison:
    """Compare the speedups of two settings, the first of which should be higher.

    Their ratio is taken in each repeat: it has nothing of what a repeat does to both.
    """
    shared = zip(more["log_speedups"], less["log_speedups"], strict=False)
    logs = np.array([faster - slower for faster, slower in shared])
    confidence = float(analysis.campaign["confidence"].iloc[0])
    ratio = block_mean(logs[~np.isnan(logs)]).estimate(confidence)
    words = f"{_said(more)}, {_said(less)}; ratio {_number(ratio)}"
    return Comparison(ratio.minus(_ONE), words, (more, less))


def _estimate(row: Record, column: str = "speedup") -> Estimate:
    """Return a number of a row with its interval."""
    return Estimate(*(row[f"{column}{end}"] for end in ("", "_low", "_high")))


def _setting(row: Record) -> str:
    """Return a setting's name."""
    where = f", length {row['n_prompt']}" if "n_prompt" in row else ""
    return f"{row['label']}, {row['draft_label']}, γ = {row['gamma']}{where}"


def _said(row: Record, how: str = "") -> str:
    """Return a setting's name, how it was made, and its speedup."""
    return f"{_setting(row)}{how}: {_number(_estimate(row))}"


def _number(number: Estimate, digits: int = 2) -> str:
    """Return a number and, if it has one, its interval."""
    if number.low == number.high:
        return fixed(number.value, digits)
    return measured(*number, digits) + " (one block, no interval)" * isnan(number.low)


_COMPARE: dict[str, Callable[[Analysis], Comparisons]] = {
    "moe_gain": lambda analysis: speedups_round_to(_texts(analysis), 1.18, 1.30),
    "moe_gain_small_draft": lambda analysis: speedups_round_to(
        _texts(analysis).query("smallest and gamma in [8, 16]"), 1.18, 1.30
    ),
    "acceptance_low": lambda analysis: acceptance_is_low(_texts(analysis, _ACCEPTANCE)),
    "acceptance_low_everywhere": lambda analysis: acceptance_is_low(
        _sized(analysis, views.usual_settings(analysis))
    ),
    "gain_without_acceptance_moe": gain_without_acceptance,
    "checking_is_sublinear": checking_is_sublinear,
    "rises_with_gamma": rises_with_gamma,
    "best_configuration": corner_is_best,
    "smaller_draft_gains_more": smaller_draft_gains_more,
    "between_at_best": between_the_dense,
    "gain_follows_total": partial(gain_follows, column="parameters_total", holds=True),
    "gain_ignores_active": partial(gain_follows, column="parameters_active", holds=False),
    "lengths_gain": lambda analysis: speedups_round_to(views.length_settings(analysis), 1.19, 1.26),
    "moe_reads_its_file": reads_its_file,
}
CLAIMS = {
    name: StudyClaim(**words, compare=_COMPARE[name])
    for name, words in resource("reported/statements").items()
}


def tables_of_study(analysis: Analysis, others: Iterable[Analysis]) -> dict[str, pd.DataFrame]:
    """Return the tables that compare an analysis with the study, and with `others` beside it."""
    printed, judged = read_reported(), with_study_names(analysis)
    tables = {
        "claims": judge_claims(CLAIMS, judged),
        "comparison": compare_printed(printed, judged, map(with_study_names, others)),
    }
    if analysis.campaign["source"].iloc[0] == "study_rows":
        tables["reported"] = compare_all(printed, judged)
    return tables


def with_study_names(analysis: Analysis) -> Analysis:
    """Return the analysis with the study's own names of its models in place of their ids.

    The study has two names for a model that is both a target and a draft model.
    """
    ids: dict[str, str] = json.loads(analysis.campaign["study_names"].iloc[0])
    if not ids:
        return analysis
    names = sorted(ids, key=lambda name: not name.startswith("draft_"))
    # Where two names are one model's, the last one counts.
    as_target, as_draft = ({ids[name]: name for name in order} for order in (names, names[::-1]))
    columns = dict.fromkeys(("target", "model", "dense"), as_target)
    columns |= dict.fromkeys(("draft", "draft_model"), as_draft)
    tables = {name: getattr(analysis, name).replace(columns) for name in analysis.tables}
    models = [analysis.models.replace({"model": names}) for names in (as_target, as_draft)]
    tables["models"] = pd.concat(models).sort_index(kind="stable").drop_duplicates("model")
    return Analysis(tables)
