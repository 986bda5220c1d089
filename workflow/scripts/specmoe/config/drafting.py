"""A suite's ways of drafting, and the demonstration: what the configuration gives."""

from collections.abc import Iterator
from itertools import product
from typing import Annotated, Any, Self

from pydantic import BeforeValidator, Field, WithJsonSchema, create_model, model_validator
from pydantic.json_schema import JsonSchemaValue

from specmoe.config.base import Distinct, DraftLength, Name, Positive, Strict
from specmoe.config.block import History
from specmoe.config.methods import (
    CACHE_GAMMA,
    METHODS,
    PARAMETERS,
    Loads,
    Method,
    chain_name,
    is_ngram,
    parameters_of,
)

_METHOD: JsonSchemaValue = {"enum": [method.value for method in Method]}
# A single method may be written without a list.
Chain = Annotated[
    list[Method],
    BeforeValidator(lambda value: [value] if isinstance(value, str) else value),
    WithJsonSchema({"anyOf": [_METHOD, {"type": "array", "items": _METHOD}]}),
]


def list_key(parameter: str) -> str:
    """Return the key of a method's list of values of a parameter."""
    return f"{parameter}s" if parameter.endswith("gamma") else parameter


class _Way(Strict):
    method: Chain = Field(min_length=1)
    """`draft` (a second model), `mtp`, `eagle3`, `dflash`, `dspark`, `ngram-simple`, `ngram-map-k`,
    `ngram-map-k4v`, `ngram-mod` or `ngram-cache`; or a list of n-gram methods with at most one
    other behind them: in each round the first that finds a draft drafts"""
    targets: Distinct[Name] = Field(default=[])
    """those of the suite's targets that it drafts for; empty: all"""
    drafts: Distinct[Name] = Field(default=[])
    """models of the set that it loads: draft models, a file with an MTP block or a trained head, or
    for `ngram-cache` an n-gram cache made from a text"""
    gammas: Distinct[DraftLength] = Field(default=[])
    """draft lengths γ in place of the suite's `gammas`"""
    history: Distinct[History] = Field(default=[])
    """what an n-gram method that keeps state (all but `ngram-simple`) may have seen: `none`, each
    run has a process of its own; `earlier`, the prompts before it in the same pass, in their seeded
    order. `none` by default"""


class TraceSettings(Strict):
    """What the target `demo_trace` decodes, greedily; no measurement depends on it."""

    target: Name | None = None
    """the model that verifies. `target`, `draft` and `prompt` are those of the campaign's first
    comparison with a draft model that has the ones you name"""
    draft: Name | None = None
    """the draft model"""
    prompt: Name | None = None
    """name in `prompts.texts`; it is sent as in its suite: a chat, say, until the model ends"""
    n_predict: Positive = 64
    """most tokens to generate"""
    gamma: Positive = 4
    """the most tokens drafted in a round"""


_LISTS: dict[str, Any] = {
    list_key(name): (
        Distinct[one.type],  # type: ignore[name-defined]
        Field(default=[], description=one.description),
    )
    for name, one in PARAMETERS.items()
}
_Lists = create_model("_Lists", __base__=_Way, **_LISTS)


class Drafting(_Lists, _Way):  # type: ignore[misc, valid-type]
    """One way of drafting, or a chain of them; its lists multiply."""

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
        return self

    def _refuse_ignored(self) -> None:
        known = {list_key(name) for name in parameters_of(self.method)}
        for key in map(list_key, ("gamma", *PARAMETERS, "history")):
            if getattr(self, key) and key not in known:
                taken = ", ".join(sorted(known)) or "none"
                raise ValueError(f"{self.name} ignores {key}; it takes {taken}")

    @property
    def name(self) -> str:
        """The chain's name in ids and tables."""
        return chain_name(self.method)

    @property
    def takes_gamma(self) -> bool:
        """Whether its draft length can be chosen."""
        return "gamma" in parameters_of(self.method)

    def drafter_id(self, draft: str | None) -> str:
        """Return the id of what drafts: a draft model's own, or the chain's and its file's."""
        if draft is None:
            return self.name
        return draft if self.method == [Method.DRAFT] else f"{self.name}@{draft}"

    def settings(self, gammas: list[int]) -> Iterator[dict[str, Any]]:
        """Yield the parameters of each side, as fields of `config.block.Side`.

        `gammas` are the suite's, which hold where the method names none.
        """
        known = parameters_of(self.method)
        of_cache = CACHE_GAMMA if Method.NGRAM_CACHE in self.method else None
        defaults = {name: PARAMETERS[name].default for name in known & PARAMETERS.keys()}
        defaults |= {"ngram_gamma": of_cache} if len(self.method) > 1 else {}
        choices: dict[str, list[Any]] = {
            "gamma": (self.gammas or gammas) if "gamma" in known else [CACHE_GAMMA],
            **{name: getattr(self, list_key(name)) or [defaults.get(name)] for name in PARAMETERS},
            "history": self.history or [History.NONE if "history" in known else None],
        }
        for values in product(*choices.values()):
            yield dict(zip(choices, values, strict=True))

    def fault_of_lengths(self, gammas: list[int]) -> str | None:
        """Return why `ngram-simple` never drafts with a setting, see `settings`; None if it can.

        Source: common/ngram-map.cpp, `common_ngram_simple_draft`.
        """
        if Method.NGRAM_SIMPLE not in self.method:
            return None
        for setting in self.settings(gammas):
            length = setting["ngram_gamma"] or setting["gamma"]
            if length < setting["n_match"]:
                return (
                    f"{self.name}: with n_match {setting['n_match']} and γ {length} it never"
                    " drafts; γ must be n_match at least"
                )
        return None
