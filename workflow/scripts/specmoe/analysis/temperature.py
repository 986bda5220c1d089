"""Sampled text: whether a draft leaves the distribution of the target's tokens as it is.

Two sampled texts may differ and both be right, so runs at a temperature above zero are compared
as distributions. A run and its baseline are a pair: one prompt, temperature and seed. If their
distributions are equal, it makes no difference which of the two is called the baseline. The test
permutes that label, sequence by sequence, since a sequence's tokens depend on each other. It is
valid however alike the shared seed makes the two; equal texts count neither way.

The statistic is the squared Euclidean distance between the mean token histograms of both sides,
pooled over positions and prompts. It counts how often two texts share a token. The total variation
distance is easier to read and is reported beside it, but not tested: between few short texts, in
which most tokens occur once, it is near one whatever the distributions are.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import pandas as pd

from specmoe.analysis.summaries import CELL, summarise_cells
from specmoe.config.schema import Statistics

EXACT_PAIRS = 12
"""Up to this many pairs all swaps are tried; with more, SWAPS are drawn."""

SWAPS = 10_000
_SEED = 1

SHARES = (0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.75, 1.0)
"""Shares of spoilt tokens, of which the smallest detectable one is reported."""

POWER = 0.8
SIMULATIONS = 100

Sequences = Sequence[Sequence[int]]
_Matrix = np.ndarray


@dataclass(frozen=True)
class TextComparison:
    """How far the texts of two sides are from one distribution.

    - pairs: how many were compared; identical: share of pairs with one text.
    - distance: total variation between the pooled histograms, 0 to 1; distance_expected: its mean
      over swaps, which is the distance of these texts under equal distributions.
    - p_value: share of swaps with at least the distance of the two sides.
    """

    pairs: int
    identical: float
    distance: float
    distance_expected: float
    p_value: float


def compare_temperatures(
    compared: pd.DataFrame, texts: "pd.Series[Any]", settings: Statistics
) -> pd.DataFrame:
    """Return one row per suite, target, draft, gamma and temperature, sorted.

    `compared` is `with_speedups`'s frame without runs of imposed acceptance, `texts` the token ids
    of every run by its id. Suites of several temperatures are compared at each, others where theirs
    is above zero. Columns: those of `summarise_cells`, and

    - temperature, and pairs, identical, distance, distance_expected, p_value: see `TextComparison`.
      The latter three are null for greedy runs, whose every token is checked by the audit.
    - p_adjusted: by Holm's method over all rows that have a p-value.
    - detectable: the smallest share of tokens that would have been found in 80 % of campaigns as
      small as this, see `smallest_detectable`; null if none would.
    """
    sampled = compared["temperature"] > 0
    several = compared.groupby("suite")["temperature"].transform("nunique") > 1
    chosen = compared[sampled | several]
    if chosen.empty:
        return pd.DataFrame()
    keys = [*CELL, "temperature"]
    cells = summarise_cells(chosen, settings, keys)
    sides = [_pairs(members, texts) for _, members in chosen.groupby(keys)]
    found = pd.DataFrame([vars(compare_texts(*texts)) for texts in sides])
    untested = (cells["temperature"] == 0) | (found["pairs"] == 0)
    found.loc[untested, ["distance", "distance_expected", "p_value"]] = np.nan
    found["p_adjusted"] = holm(found["p_value"])
    strictest = (1 - settings.confidence) / max(int(found["p_value"].notna().sum()), 1)
    found["detectable"] = [
        np.nan if is_untested else smallest_detectable(*own, strictest)
        for own, is_untested in zip(sides, untested, strict=True)
    ]
    return cells.assign(**{str(name): found[name] for name in found})


def compare_texts(texts: Sequences, baselines: Sequences) -> TextComparison:
    """Compare texts with their baselines, pair by pair; a text is a list of token ids."""
    if not texts:
        return TextComparison(0, np.nan, np.nan, np.nan, np.nan)
    differences = _differences(texts, baselines)
    swaps = _swaps(len(texts))
    expected = np.abs(swaps[:SWAPS] @ differences).sum(axis=1) / len(texts) / 2
    return TextComparison(
        pairs=len(texts),
        identical=float(np.mean([a == b for a, b in zip(texts, baselines, strict=True)])),
        distance=float(np.abs(differences.mean(axis=0)).sum() / 2),
        distance_expected=float(expected.mean()),
        p_value=_p_value(differences @ differences.T, swaps),
    )


def holm(p_values: "pd.Series[float]") -> "pd.Series[float]":
    """Return p-values adjusted for their number (Holm 1979); null ones are not counted."""
    ranked = p_values.dropna().sort_values()
    steps = ranked * np.arange(len(ranked), 0, -1)
    return steps.cummax().clip(upper=1).reindex(p_values.index)


def smallest_detectable(texts: Sequences, baselines: Sequences, level: float) -> float:
    """Return the smallest of `SHARES` that the test finds in `POWER` of simulated campaigns.

    A campaign is simulated from the measured pairs: sides are labelled by chance, and that share of
    one side's tokens is replaced by others, drawn evenly from all tokens seen. What a model does
    after a wrong token is not simulated. A difference between the sides counts as noise and makes
    the share too large. NaN if no share is found that often.
    """
    count = len(texts)
    if count == 0 or 2.0 ** (1 - count) > level:
        return float("nan")
    swaps, generator = _swaps(count), np.random.default_rng(_SEED)
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
    sides = compared.assign(other=compared["baseline"].map(texts))[["tokens", "other"]].dropna()
    return [list(own) for own in sides["tokens"]], [list(other) for other in sides["other"]]


def _differences(texts: Sequences, baselines: Sequences) -> _Matrix:
    """Return by how much the share of each token seen differs in each pair, pairs by tokens."""
    every = [*texts, *baselines]
    _, columns = np.unique(np.concatenate([np.asarray(one) for one in every]), return_inverse=True)
    histograms = np.zeros((len(every), columns.max() + 1))
    rows = np.repeat(np.arange(len(every)), [len(text) for text in every])
    np.add.at(histograms, (rows, columns.ravel()), 1)
    shares = histograms / histograms.sum(axis=1, keepdims=True)
    differences: _Matrix = shares[: len(texts)] - shares[len(texts) :]
    return differences


def _swaps(pairs: int) -> _Matrix:
    """Return signs, swaps by pairs; the first swap leaves all pairs as they are.

    Swapping all pairs gives the same distance as swapping no pair, so the first pair is never
    swapped.
    """
    if pairs <= EXACT_PAIRS:
        return np.array([(1.0, *rest) for rest in product((1.0, -1.0), repeat=pairs - 1)])
    drawn = np.random.default_rng(_SEED).choice((1.0, -1.0), (SWAPS, pairs))
    return np.vstack([np.ones(pairs), drawn])


def _p_value(products: _Matrix, swaps: _Matrix) -> float:
    """Return the share of swaps that give at least the distance of the first, the identity.

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
        ones.append(one.tolist())
        others.append(pair[1 - first])
    differences = _differences(ones, others)
    products: _Matrix = differences @ differences.T
    return products
