"""The ways of drafting: what they are called, what they take, what they multiply to."""

import pytest
from pydantic import ValidationError

from specmoe.config.block import History, Side
from specmoe.config.drafting import Drafting
from specmoe.config.methods import METHODS, Method, engine_types, history_needed, methods_of


def sides(gammas=(), **given):
    """Return the sides of a way of drafting."""
    return [Side(**setting) for setting in Drafting(**given).settings(list(gammas))]


def fault(**given):
    """Return the line that refuses a way of drafting."""
    with pytest.raises(ValidationError) as refused:
        Drafting(**given)
    return refused.value.errors()[0]["msg"]


def test_every_method_has_a_type_of_the_engine_and_back():
    assert set(METHODS) == set(Method)
    for method in Method:
        assert methods_of(engine_types([method])) == (method,)
    chain = (Method.NGRAM_MOD, Method.MTP)
    assert engine_types(chain) == "ngram-mod,draft-mtp"
    assert methods_of("ngram-mod,draft-mtp") == chain
    assert (engine_types([]), methods_of("none")) == ("none", ())


def test_lists_multiply_and_what_is_not_given_is_the_default():
    made = sides(method="mtp", gammas=[1, 2], p_min=[0, 0.5])
    assert [(side.gamma, side.p_min) for side in made] == [(1, 0), (1, 0.5), (2, 0), (2, 0.5)]
    [lookup] = sides([8], method="ngram-simple")
    assert (lookup.gamma, lookup.n_match, lookup.p_min, lookup.history) == (8, 3, None, None)
    [cache] = sides([4], method="ngram-cache")
    assert (cache.gamma, cache.history) == (8, History.NONE)  # the engine's own length
    [chain] = sides([2], method=["ngram-mod", "mtp"], ngram_gammas=[12])
    assert (chain.gamma, chain.ngram_gamma, chain.longest) == (2, 12, 12)


def test_sides_that_differ_have_names_that_differ():
    every = {
        "gammas": [2, 4], "ngram_gammas": [8, 12], "p_min": [0, 0.5], "n_min": [0, 2],
        "n_match": [2, 3], "min_hits": [1, 2],
    }  # fmt: skip
    chained = sides(method=["ngram-map-k4v", "mtp"], **every)
    remembering = sides([4], method="ngram-mod", history=["none", "earlier"])
    names = [side.name for side in (*chained, *remembering)]
    assert len(set(names)) == len(names) == 2**6 + 2
    assert chained[0].name == "g2-m8-n2"
    assert chained[-1].name == "g4-m12-n3-l2-h2-p0.5"


@pytest.mark.parametrize(
    ("given", "line"),
    [
        ({"method": "ngram-simple", "p_min": [0.5]}, "ngram-simple ignores p_min; it takes"),
        ({"method": "ngram-map-k", "min_hits": [2]}, "ngram-map-k ignores min_hits"),
        ({"method": "ngram-cache", "gammas": [4]}, "ngram-cache ignores gammas; it takes history"),
        ({"method": "mtp", "n_match": [2]}, "mtp ignores n_match"),
        ({"method": "mtp", "ngram_gammas": [2]}, "mtp ignores ngram_gammas"),
        ({"method": "eagle3", "gammas": [4]}, "eagle3 loads a file: name it in `drafts`"),
        ({"method": "ngram-mod", "drafts": ["x"]}, "ngram-mod loads no file"),
        ({"method": ["draft", "mtp"], "drafts": ["x"]}, "at most one method beside n-grams"),
        ({"method": ["mtp", "ngram-mod"]}, "n-gram methods come first in a chain: put mtp last"),
        ({"method": ["ngram-mod", "ngram-mod"]}, "a chain names a method twice"),
        ({"method": "mtp", "p_min": [0.5, 0.5]}, "a value is named twice"),
    ],
)
def test_what_a_method_ignores_or_lacks_is_refused(given, line):
    assert line in fault(**given)


def test_a_lookup_needs_so_many_tokens_before_it_can_draft():
    assert history_needed([Method.NGRAM_SIMPLE], n_match=3, gamma=8) == 13
    assert history_needed([Method.NGRAM_MAP_K], n_match=3, gamma=8) == 14
    assert history_needed([Method.NGRAM_SIMPLE, Method.MTP], n_match=3, gamma=8) == 0
