"""The ways of drafting: their names, what each needs, and what it can be told.

Sources: llama.cpp, common/speculative.cpp and common/ngram-map.cpp.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum


class Method(StrEnum):
    """How tokens are proposed, by the names that the configuration uses."""

    DRAFT = "draft"
    MTP = "mtp"
    EAGLE3 = "eagle3"
    DFLASH = "dflash"
    DSPARK = "dspark"
    NGRAM_SIMPLE = "ngram-simple"
    NGRAM_MAP_K = "ngram-map-k"
    NGRAM_MAP_K4V = "ngram-map-k4v"
    NGRAM_MOD = "ngram-mod"
    NGRAM_CACHE = "ngram-cache"


class Loads(StrEnum):
    """Whether a method loads a file besides the target."""

    NOTHING = "nothing"
    OPTIONAL = "optional"
    FILE = "file"


@dataclass(frozen=True)
class Facts:
    """What is known of a method before it runs."""

    engine: str  # llama-server's `--spec-type`
    words: str  # the literature's name
    loads: Loads
    # The parameters that it heeds, by the configuration's names; see `config.drafting.Drafting`. A
    # method that heeds `history` keeps something of one request for the next.
    parameters: frozenset[str]
    # Whether it drafts in every round, as long as nothing makes it stop early.
    always_drafts: bool = True
    # Whether a hybrid target undoes its rejected tokens without a replay.
    rolls_back: bool = False


_OF_MODELS = frozenset({"gammas", "p_min", "n_min"})
_OF_NGRAMS = frozenset({"gammas", "n_match"})

METHODS: dict[Method, Facts] = {
    Method.DRAFT: Facts("draft-simple", "draft model", Loads.FILE, _OF_MODELS),
    Method.MTP: Facts("draft-mtp", "MTP", Loads.OPTIONAL, _OF_MODELS, rolls_back=True),
    Method.EAGLE3: Facts("draft-eagle3", "EAGLE-3", Loads.FILE, _OF_MODELS, rolls_back=True),
    Method.DFLASH: Facts("draft-dflash", "DFlash", Loads.FILE, _OF_MODELS, rolls_back=True),
    Method.DSPARK: Facts("draft-dspark", "DSpark", Loads.FILE, _OF_MODELS, rolls_back=True),
    Method.NGRAM_SIMPLE: Facts(
        "ngram-simple", "prompt lookup", Loads.NOTHING, _OF_NGRAMS, always_drafts=False
    ),
    # The keys of earlier requests stay in these maps: a prompt was drafted for otherwise after
    # other ones, and near ties then fell otherwise.
    Method.NGRAM_MAP_K: Facts(
        "ngram-map-k",
        "n-gram map, by key",
        Loads.NOTHING,
        _OF_NGRAMS | {"history"},
        always_drafts=False,
    ),
    Method.NGRAM_MAP_K4V: Facts(
        "ngram-map-k4v",
        "n-gram map, by counts",
        Loads.NOTHING,
        _OF_NGRAMS | {"min_hits", "history"},
        always_drafts=False,
    ),
    Method.NGRAM_MOD: Facts(
        "ngram-mod",
        "n-gram pool",
        Loads.NOTHING,
        _OF_NGRAMS | {"n_min", "history"},
        always_drafts=False,
    ),
    # Its draft length is fixed in the engine.
    Method.NGRAM_CACHE: Facts(
        "ngram-cache",
        "n-gram cache",
        Loads.OPTIONAL,
        frozenset({"history"}),
        always_drafts=False,
    ),
}

BY_TYPE = {facts.engine: method for method, facts in METHODS.items()}
"""Each method by its `--spec-type`."""

CACHE_GAMMA = 8
"""The draft length of `ngram-cache`."""

NO_METHOD = "none"
"""The engine's type of a run without speculation."""


def is_ngram(method: Method) -> bool:
    """Return whether a method looks tokens up instead of computing them."""
    return method.value.startswith("ngram-")


def chain_name(methods: Iterable[Method]) -> str:
    """Return the name of a chain of methods in ids and tables."""
    return "+".join(methods)


def engine_types(methods: Sequence[Method]) -> str:
    """Return the value of `--spec-type` for a chain of methods; `none` for an empty one."""
    return ",".join(METHODS[method].engine for method in methods) or NO_METHOD


def methods_of(types: str) -> tuple[Method, ...]:
    """Return the chain of methods of a value of `--spec-type`; empty for `none`."""
    return tuple(BY_TYPE[one] for one in types.split(",") if one != NO_METHOD)


def history_needed(methods: Iterable[Method], n_match: int, gamma: int) -> int:
    """Return the least tokens of context from which a chain of n-gram methods can draft.

    Sources: common/ngram-map.cpp, `common_ngram_simple_draft` and `common_ngram_map_draft`.
    """
    needed = {
        Method.NGRAM_SIMPLE: n_match + gamma + 2,
        Method.NGRAM_MAP_K: 2 * n_match + gamma,
        Method.NGRAM_MAP_K4V: 2 * n_match + gamma,
        Method.NGRAM_MOD: n_match + 1,
    }
    return min((needed.get(method, 0) for method in methods), default=0)
