"""The drafting methods: what they are called, what they take, what they multiply to."""

from specmoe.config.block import Arm
from specmoe.config.methods import BY_TYPE, METHODS, Drafting, Method, draft_label, engine_type


def arms(gammas=(), **given):
    """Return the arms of a drafting method."""
    return [Arm(**setting) for setting in Drafting(**given).settings("t", list(gammas))]


def test_every_method_has_a_type_of_the_engine_and_back():
    assert set(METHODS) == set(Method)
    for method in Method:
        assert BY_TYPE[engine_type(method)] == method
    assert engine_type(None) == "none"


def test_lists_multiply_and_what_is_not_given_is_the_default():
    made = arms(method="mtp", gammas=[1, 2], p_min=[0, 0.5])
    assert [(arm.gamma, arm.p_min) for arm in made] == [(1, 0), (1, 0.5), (2, 0), (2, 0.5)]
    assert [arm.name for arm in made] == ["mtp/g1", "mtp/g1-p0.5", "mtp/g2", "mtp/g2-p0.5"]
    assert [arm.name for arm in arms([4], method="ngram-mod", n_match=[2])] == ["ngram-mod/g4-n2"]
    [lookup] = arms([8], method="ngram-simple")
    assert (lookup.gamma, lookup.n_match, lookup.p_min) == (8, 3, None)
    [cache] = arms([4], method="ngram-cache")
    assert (cache.gamma, cache.n_match) == (8, None)  # the engine's own length


def test_a_pair_has_lengths_of_its_partners_own_and_the_names_of_both():
    way = Drafting(**{"method": "mtp", "with": "ngram-mod", "n_match": [24], "with_gamma": [64]})
    assert way == Drafting.model_validate_json(way.model_dump_json())
    [setting] = way.settings("t", [4])
    pool = Arm(**setting)
    assert (pool.name, pool.longest) == ("mtp-with-ngram-mod/g4-n24-m64", 64)
    assert draft_label(pool.methods, None, vars(pool)) == "MTP + n-gram pool, n = 24, m = 64"
