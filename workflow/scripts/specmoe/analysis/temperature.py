"""Sampled text: whether a draft leaves the distribution of the target's tokens as it is.

Two sampled texts may differ and both be right, so runs at a temperature above zero are compared
as distributions. A run and its baseline are a pair: one prompt, temperature and seed. Were their
distributions equal, it would make no difference which of the two is called the baseline, and that
is what is permuted, sequence by sequence, as a sequence's tokens depend on each other. It holds
however alike the shared seed makes the two; texts that are equal count neither way.

The statistic is the squared Euclidean distance between the mean token histograms of both sides,
pooled over positions and prompts. It counts how often two texts share a token. The total variation
distance is easier to read and is told beside it, but not tested: between few short texts, in which
most tokens occur once, it is near one whatever the distributions are.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import pandas as pd

from specmoe.analysis.summaries import CELL, summarise_cells, unpaired_baselines, with_speedups
from specmoe.config.block import NO_DRAFT
from specmoe.config.schema import Statistics

EXACT_PAIRS = 12
"""Up to so many pairs all swaps are tried; with more, as many as a bootstrap has resamples."""

SHARES = (0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.75, 1.0)
"""Shares of spoilt tokens that are tried for the smallest which would be found."""

POWER = 0.8
SIMULATIONS = 100

Sequences = Sequence[Sequence[int]] | Sequence[np.ndarray]
_Matrix = np.ndarray


@dataclass(frozen=True)
class Comparison:
    """What the texts of two sides say of their distributions.

    - pairs: how many were compared; identical: share of pairs with one text.
    - distance: total variation between the pooled histograms, 0 to 1; distance_expected: its mean
      over swaps, which is what these texts would give if the distributions were equal.
    - p_value: share of swaps that set the sides as far apart as they are.
    """

    pairs: int
    identical: float
    distance: float
    distance_expected: float
    p_value: float


def compare_temperatures(runs: pd.DataFrame, settings: Statistics) -> pd.DataFrame:
    """Return one row per suite, target, draft, gamma and temperature, sorted.

    `runs` are those measured, without imposed acceptance. Suites of several temperatures are
    compared at each, others where theirs is above zero. Columns: those of `summarise_cells`, and

    - temperature, and pairs, identical, distance, distance_expected, p_value: see `Comparison`.
      The latter three are null for greedy runs, whose every token is checked by the audit.
    - p_adjusted: by Holm's method over all rows that have a p-value.
    - detectable: the smallest share of tokens that would have been found in 80 % of campaigns as
      small as this, see `smallest_detectable`; null if none would.
    """
    sampled = runs["temperature"] > 0
    several = runs.groupby("suite")["temperature"].transform("nunique") > 1
    chosen = runs[sampled | several]
    keys = [*CELL, "temperature"]
    compared = with_speedups(chosen) if (chosen["draft"] != NO_DRAFT).any() else pd.DataFrame()
    if compared.empty:
        return pd.DataFrame()
    cells = summarise_cells(compared, unpaired_baselines(chosen), settings, keys)
    texts = chosen.set_index("run")["tokens"]
    pairs = {cell: _pairs(members, texts) for cell, members in compared.groupby(keys)}
    listed = [pairs[cell] for cell in cells[keys].itertuples(index=False, name=None)]
    found = [compare_texts(*sides, settings) for sides in listed]
    frame = pd.DataFrame([vars(one) for one in found], index=cells.index)
    untested = (cells["temperature"] == 0) | (frame["pairs"] == 0)
    frame.loc[untested, ["distance", "distance_expected", "p_value"]] = np.nan
    frame["p_adjusted"] = holm(frame["p_value"])
    strictest = (1 - settings.confidence) / max(int(frame["p_value"].notna().sum()), 1)
    frame["detectable"] = [
        np.nan if greedy else smallest_detectable(*sides, strictest, settings)
        for sides, greedy in zip(listed, untested, strict=True)
    ]
    return cells.join(frame.drop(columns="identical")).assign(identical=frame["identical"])


def compare_texts(texts: Sequences, baselines: Sequences, settings: Statistics) -> Comparison:
    """Compare texts with their baselines, pair by pair; a text is a list of token ids."""
    if not texts:
        return Comparison(0, np.nan, np.nan, np.nan, np.nan)
    differences = _histograms([*texts, *baselines])
    differences = differences[: len(texts)] - differences[len(texts) :]
    swaps = _swaps(len(texts), settings)
    expected = np.abs(swaps[: settings.resamples] @ differences).sum(axis=1) / len(texts) / 2
    return Comparison(
        pairs=len(texts),
        identical=float(
            np.mean([list(a) == list(b) for a, b in zip(texts, baselines, strict=True)])
        ),
        distance=float(np.abs(differences.mean(axis=0)).sum() / 2),
        distance_expected=float(expected.mean()),
        p_value=_p_value(differences @ differences.T, swaps),
    )


def holm(p_values: "pd.Series[float]") -> "pd.Series[float]":
    """Return p-values adjusted for how many there are (Holm 1979); null ones count for nothing."""
    ranked = p_values.dropna().sort_values()
    steps = ranked * np.arange(len(ranked), 0, -1)
    return steps.cummax().clip(upper=1).reindex(p_values.index)


def smallest_detectable(
    texts: Sequences, baselines: Sequences, level: float, settings: Statistics
) -> float:
    """Return the smallest of `SHARES` that the test finds in `POWER` of simulated campaigns.

    A campaign is simulated from the pairs there are: sides are named by chance, and that share of
    one side's tokens is replaced by others, drawn evenly from all tokens seen. What a model does
    after a wrong token is not simulated. Where the sides differ already, that is taken for noise,
    and the share is too large. NaN if no share is found that often.
    """
    count = len(texts)
    if count == 0 or 2.0 ** (1 - count) > level:
        return float("nan")
    swaps, generator = _swaps(count, settings), np.random.default_rng(settings.seed)
    for share in SHARES:
        found = sum(
            _p_value(_spoilt(texts, baselines, share, generator), swaps) <= level
            for _ in range(SIMULATIONS)
        )
        if found >= POWER * SIMULATIONS:
            return share
    return float("nan")


def _pairs(compared: pd.DataFrame, texts: "pd.Series[Any]") -> tuple[Sequences, Sequences]:
    """Return the texts of runs and of their baselines, where both are known."""
    pairs = [
        (list(own), list(other))
        for own, other in zip(compared["tokens"], compared["baseline"].map(texts), strict=True)
        if isinstance(own, np.ndarray | list) and isinstance(other, np.ndarray | list)
    ]
    return [own for own, _ in pairs], [other for _, other in pairs]


def _histograms(texts: Sequences) -> _Matrix:
    """Return each text's share of each token seen, texts by tokens."""
    _, columns = np.unique(
        np.concatenate([np.asarray(text) for text in texts]), return_inverse=True
    )
    histograms = np.zeros((len(texts), columns.max() + 1))
    rows = np.repeat(np.arange(len(texts)), [len(text) for text in texts])
    np.add.at(histograms, (rows, columns.ravel()), 1)
    shares: _Matrix = histograms / histograms.sum(axis=1, keepdims=True)
    return shares


def _swaps(pairs: int, settings: Statistics) -> _Matrix:
    """Return signs, swaps by pairs, the first of which swaps nothing.

    Swapping all pairs gives the distance that swapping none does, so the first is never swapped.
    """
    if pairs <= EXACT_PAIRS:
        return np.array([(1.0, *rest) for rest in product((1.0, -1.0), repeat=pairs - 1)])
    drawn = np.random.default_rng(settings.seed).choice((1.0, -1.0), (settings.resamples, pairs))
    return np.vstack([np.ones(pairs), drawn])


def _p_value(products: _Matrix, swaps: _Matrix) -> float:
    """Return the share of swaps that give at least the distance of the first, which swaps nothing.

    `products` are the inner products of the pairs' differences.
    """
    distances = np.einsum("ij,jk,ik->i", swaps, products, swaps, optimize=True)
    return float(np.mean(distances >= distances[0] * (1 - 1e-9)))


def _spoilt(
    texts: Sequences, baselines: Sequences, share: float, generator: np.random.Generator
) -> _Matrix:
    """Return the inner products of a simulated campaign's differences."""
    seen = np.unique(np.concatenate([np.asarray(text) for text in [*texts, *baselines]]))
    ones, others = [], []
    for pair in zip(texts, baselines, strict=True):
        first = int(generator.integers(2))
        one = np.array(pair[first])
        wrong = generator.random(len(one)) < share
        one[wrong] = generator.choice(seen, int(wrong.sum()))
        ones.append(one)
        others.append(np.asarray(pair[1 - first]))
    histograms = _histograms([*ones, *others])
    differences = histograms[: len(ones)] - histograms[len(ones) :]
    products: _Matrix = differences @ differences.T
    return products
