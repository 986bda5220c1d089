"""Sampled texts are compared as distributions: differences are found, equality is not rejected."""

import numpy as np
import pandas as pd
import pytest

from specmoe.analysis.summaries import with_speedups
from specmoe.analysis.temperature import (
    EXACT_PAIRS,
    compare_temperatures,
    compare_texts,
    holm,
    smallest_detectable,
)
from specmoe.config.schema import Statistics

from .test_summaries import run

SETTINGS = Statistics()
VOCABULARY, LENGTH = 200, 64
# A few tokens are common and most are rare, as in text.
USUAL = 1 / np.arange(1, VOCABULARY + 1)
USUAL = USUAL / USUAL.sum()
FLAT = np.full(VOCABULARY, 1 / VOCABULARY)


def texts(generator, count, weights=USUAL):
    """Return texts of independent tokens."""
    return generator.choice(VOCABULARY, (count, LENGTH), p=weights).tolist()


def test_a_flatter_distribution_is_found_with_enough_texts():
    generator = np.random.default_rng(1)
    off = 0.4 * USUAL + 0.6 * FLAT
    found = compare_texts(texts(generator, 12, off), texts(generator, 12))
    assert found.p_value < 0.01
    assert found.distance > 1.3 * found.distance_expected
    few = compare_texts(texts(generator, 3, off), texts(generator, 3))
    assert few.p_value >= 2 / 2**3


@pytest.mark.parametrize(("pairs", "times"), [(6, 300), (EXACT_PAIRS + 4, 150)])
def test_equal_distributions_give_uniform_p_values(pairs, times):
    generator = np.random.default_rng(2)
    p_values = [
        compare_texts(texts(generator, pairs), texts(generator, pairs)).p_value
        for _ in range(times)
    ]
    for level in (0.1, 0.25, 0.5, 0.75):
        # Three standard deviations of a share of 300, two of one of 150.
        assert np.mean(np.array(p_values) <= level) == pytest.approx(level, abs=0.09)


def test_pairs_that_share_their_first_tokens_give_uniform_p_values():
    # As two runs of one seed do until rounding parts them.
    generator = np.random.default_rng(3)
    p_values = []
    for _ in range(200):
        one, other = np.array(texts(generator, 6)), np.array(texts(generator, 6))
        other[:, : LENGTH // 2] = one[:, : LENGTH // 2]
        p_values.append(compare_texts(one.tolist(), other.tolist()).p_value)
    assert np.mean(np.array(p_values) <= 0.25) == pytest.approx(0.25, abs=0.1)


def test_equal_texts_have_distance_0_and_p_value_1():
    same = texts(np.random.default_rng(4), 5)
    found = compare_texts(same, same)
    assert (found.pairs, found.identical, found.distance, found.p_value) == (5, 1, 0, 1)


def test_the_sides_can_be_exchanged():
    generator = np.random.default_rng(5)
    one, other = texts(generator, 7), texts(generator, 7)
    assert compare_texts(one, other) == compare_texts(other, one)


def test_holm_multiplies_the_smallest_by_their_number_and_never_falls():
    adjusted = holm(pd.Series([0.04, np.nan, 0.01, 0.03]))
    assert adjusted.tolist() == pytest.approx([0.06, np.nan, 0.03, 0.06], nan_ok=True)
    assert holm(pd.Series([0.9, 0.8])).tolist() == [1, 1]


def test_more_texts_find_smaller_faults_and_too_few_find_none():
    generator = np.random.default_rng(6)
    shares = [
        smallest_detectable(texts(generator, pairs), texts(generator, pairs), 0.05)
        for pairs in (3, 6, 12)
    ]
    assert np.isnan(shares[0])  # of 3 pairs p is 1/4 at least
    assert 1 >= shares[1] > shares[2] > 0


def campaign(spoilt, *, temperatures=(0.0, 0.7), pairs=10):
    """Return runs with a draft and their baselines; `spoilt` of the former's tokens are others."""
    generator = np.random.default_rng(7)
    rows = []
    for temperature in temperatures:
        for repeat, (own, other) in enumerate(
            zip(texts(generator, pairs), texts(generator, pairs), strict=True)
        ):
            at = {"temperature": temperature, "suite": "T", "repeat": repeat}
            wrong = generator.random(LENGTH) < spoilt
            own = np.where(wrong, generator.choice(VOCABULARY, LENGTH), own)
            base = f"b{temperature}{repeat}"
            rows += [
                run(base, 10.0, tokens=np.array(other), **at),
                run(f"s{temperature}{repeat}", 12.0, draft="d", gamma=4,
                    baseline=base, tokens=own, **at),
            ]  # fmt: skip
    return pd.DataFrame(rows)


def compared(runs):
    """Return the comparison of a campaign's runs."""
    texts = runs.set_index("run")["tokens"]
    return compare_temperatures(with_speedups(runs), texts, SETTINGS)


def test_every_temperature_has_its_speedup_and_sampled_ones_a_p_value():
    frame = compared(campaign(spoilt=0))
    greedy, warm = frame.to_dict("records")
    assert (greedy["temperature"], warm["temperature"]) == (0, 0.7)
    assert [greedy["speedup"], warm["speedup"]] == pytest.approx([1.2, 1.2])
    assert (greedy["pairs"], warm["pairs"]) == (10, 10)
    assert np.isnan([greedy["p_value"], greedy["distance"], greedy["detectable"]]).all()
    assert warm["p_value"] == warm["p_adjusted"] > 0.05
    assert 0 < warm["detectable"] <= 1


def test_a_draft_that_changes_the_distribution_is_found_at_every_temperature():
    frame = compared(campaign(spoilt=0.5, temperatures=(0.3, 0.7, 1.0)))
    assert (frame["p_adjusted"] < 0.05).all()


def test_a_greedy_campaign_has_nothing_to_compare():
    assert compared(campaign(0, temperatures=(0.0,))).empty


def test_runs_of_unknown_tokens_are_not_compared():
    frame = compared(campaign(0).assign(tokens=None))
    assert frame["pairs"].tolist() == [0, 0]
    assert frame[["p_value", "detectable"]].isna().all(axis=None)
