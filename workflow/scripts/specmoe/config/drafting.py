"""A suite's ways of drafting: what the configuration gives, and the sides it multiplies to."""

from collections.abc import Iterator, Sequence
from itertools import product
from typing import Annotated, Any, Self

from pydantic import BeforeValidator, Field, WithJsonSchema, model_validator
from pydantic.json_schema import JsonSchemaValue

from specmoe.config.base import DraftLength, Name, Positive, Share, Strict
from specmoe.config.block import History
from specmoe.config.methods import CACHE_GAMMA, METHODS, Loads, Method, chain_name, is_ngram

DEFAULT_MATCH = 3
# The parameters that are lists, whose product a method's settings are.
_LISTS = ("gammas", "ngram_gammas", "p_min", "n_min", "n_match", "min_hits", "history")

_METHOD: JsonSchemaValue = {"enum": [method.value for method in Method]}
# A single method may be written without a list.
Chain = Annotated[
    list[Method],
    BeforeValidator(lambda value: [value] if isinstance(value, str) else value),
    WithJsonSchema({"anyOf": [_METHOD, {"type": "array", "items": _METHOD}]}),
]


def heeded(methods: Sequence[Method]) -> frozenset[str]:
    """Return the parameters that some method of a chain heeds, as `Drafting` names them."""
    own = frozenset().union(*(METHODS[method].parameters for method in methods))
    both_kinds = len({is_ngram(method) for method in methods}) > 1
    return own | {"ngram_gammas"} if both_kinds else own


class Drafting(Strict):
    """One way of drafting, or a chain of them; its lists multiply."""

    method: Chain = Field(
        min_length=1,
        description="`draft` (a second model), `mtp`, `eagle3`, `dflash`, `dspark`, `ngram-simple`,"
        " `ngram-map-k`, `ngram-map-k4v`, `ngram-mod` or `ngram-cache`; or a list of n-gram methods"
        " with at most one other behind them: in each round the first that finds a draft drafts",
    )
    targets: list[Name] = Field(
        default=[], description="those of the suite's targets that it drafts for; empty: all"
    )
    drafts: list[Name] = Field(
        default=[],
        description="models of the set that it loads: draft models, a file with an MTP block or a"
        " trained head, or for `ngram-cache` an n-gram cache made from a text",
    )
    gammas: list[DraftLength] = Field(
        default=[], description="draft lengths γ in place of the suite's `gammas`"
    )
    ngram_gammas: list[DraftLength] = Field(
        default=[], description="in a chain: draft lengths of its n-gram methods, where not γ"
    )
    p_min: list[Share] = Field(
        default=[], description="probabilities below which a model stops drafting; 0 by default"
    )
    n_min: list[Annotated[int, Field(ge=0)]] = Field(
        default=[], description="fewest drafted tokens that are verified; 0 by default"
    )
    n_match: list[Positive] = Field(
        default=[],
        description=f"tokens that an n-gram method looks up; {DEFAULT_MATCH} by default",
    )
    min_hits: list[Positive] = Field(
        default=[], description="times that an n-gram must have been seen; 1 by default"
    )
    history: list[History] = Field(
        default=[],
        description="what an n-gram method that keeps state (all but `ngram-simple`) may have seen:"
        " `none`, each run has a process of its own; `earlier`, the prompts before it in the same"
        " pass, in their seeded order. `none` by default",
    )

    @model_validator(mode="after")
    def _check(self) -> Self:
        models = [method for method in self.method if not is_ngram(method)]
        if len(set(self.method)) < len(self.method):
            raise ValueError("a chain names a method twice")
        if len(models) > 1:
            raise ValueError(
                f"a chain has at most one method beside n-grams, and {' and '.join(models)} are"
                f" {len(models)}; measure them apart"
            )
        if models and models[0] != self.method[-1]:
            raise ValueError(f"n-gram methods come first in a chain: put {models[0]} last")
        self._refuse_ignored()
        needs = {METHODS[method].loads for method in self.method}
        if Loads.FILE in needs and not self.drafts:
            raise ValueError(f"{self.method[-1]} loads a file: name it in `drafts`")
        if needs == {Loads.NOTHING} and self.drafts:
            raise ValueError(f"{self.name} loads no file: leave out `drafts`")
        for key in (*_LISTS, "drafts", "targets"):
            values = getattr(self, key)
            if len(set(values)) < len(values):
                raise ValueError(f"{key}: a value is named twice")
        return self

    def _refuse_ignored(self) -> None:
        """Raise ValueError for a parameter that no method of the chain heeds."""
        known_keys = heeded(self.method)
        for key in _LISTS:
            if getattr(self, key) and key not in known_keys:
                known = ", ".join(sorted(known_keys)) or "none"
                raise ValueError(f"{self.name} ignores {key}; it heeds {known}")

    @property
    def name(self) -> str:
        """The chain's name in ids and tables."""
        return chain_name(self.method)

    @property
    def heeds_gamma(self) -> bool:
        """Whether its draft length can be chosen."""
        return self._heeds("gammas")

    def drafter_id(self, draft: str | None) -> str:
        """Return the id of what drafts: a draft model's own, or the chain's and its file's."""
        if draft is None:
            return self.name
        return draft if self.method == [Method.DRAFT] else f"{self.name}@{draft}"

    def settings(self, gammas: list[int]) -> Iterator[dict[str, Any]]:
        """Yield the parameters of each side, as fields of `config.block.Side`.

        `gammas` are the suite's, which hold where the method names none.
        """
        own = self.gammas or gammas
        in_chain = [CACHE_GAMMA] if Method.NGRAM_CACHE in self.method else [None]
        choices: dict[str, list[Any]] = {
            "gamma": own if self.heeds_gamma else [CACHE_GAMMA],
            "ngram_gamma": self.ngram_gammas or (in_chain if len(self.method) > 1 else [None]),
            "p_min": self.p_min or [0.0 if self._heeds("p_min") else None],
            "n_min": self.n_min or [0 if self._heeds("n_min") else None],
            "n_match": self.n_match or [DEFAULT_MATCH if self._heeds("n_match") else None],
            "min_hits": self.min_hits or [1 if self._heeds("min_hits") else None],
            "history": self.history or [History.NONE if self._heeds("history") else None],
        }
        for values in product(*choices.values()):
            yield dict(zip(choices, values, strict=True))

    def fault_of_lengths(self, gammas: list[int]) -> str | None:
        """Return why `ngram-simple` never drafts with a setting, see `settings`; None if it can.

        Source: common/ngram-map.cpp, `common_ngram_simple_draft`.
        """
        if Method.NGRAM_SIMPLE not in self.method or not self.heeds_gamma:
            return None
        for setting in self.settings(gammas):
            length = setting["ngram_gamma"] or setting["gamma"]
            if length < setting["n_match"]:
                return (
                    f"{self.name}: with n_match {setting['n_match']} and γ {length} it never"
                    " drafts; γ must be n_match at least"
                )
        return None

    def _heeds(self, parameter: str) -> bool:
        """Return whether a method of the chain heeds a parameter."""
        return any(parameter in METHODS[method].parameters for method in self.method)
