"""A suite's ways of drafting, and the demonstration: what the configuration gives."""

from collections.abc import Iterator
from itertools import product
from typing import Any, Self

from pydantic import Field, model_validator

from specmoe.config.base import Distinct, DraftLength, Name, Positive, Share, Strict
from specmoe.config.methods import (
    CACHE_GAMMA,
    METHODS,
    PARAMETERS,
    Loads,
    Method,
)


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


class Drafting(Strict):
    """One way of drafting; its lists multiply."""

    method: Method
    """`draft` is a second model"""
    targets: Distinct[Name] = Field(default=[])
    """those of the suite's targets that it drafts for; empty: all"""
    drafts: Distinct[Name] = Field(default=[])
    """models of the set that it loads: draft models, a file with an MTP block or a trained head, or
    for `ngram-cache` an n-gram cache made from a text"""
    gammas: Distinct[DraftLength] = Field(default=[])
    """draft lengths γ in place of the suite's `gammas`"""
    n_match: Distinct[Positive] = Field(default=[])
    """tokens that an n-gram method looks up; 3 by default"""
    p_min: Distinct[Share] = Field(default=[])
    """probability below which a model stops drafting; 0 by default"""

    @model_validator(mode="after")
    def _check(self) -> Self:
        facts = METHODS[self.method]
        known = {"gammas" if name == "gamma" else name for name in facts.flags}
        for key in ("gammas", *PARAMETERS):
            if getattr(self, key) and key not in known:
                taken = ", ".join(sorted(known)) or "none"
                raise ValueError(f"{self.method} ignores {key}; it takes {taken}")
        if facts.loads == Loads.FILE and not self.drafts:
            raise ValueError(f"{self.method} loads a file: name it in `drafts`")
        if facts.loads == Loads.NOTHING and self.drafts:
            raise ValueError(f"{self.method} loads no file: leave out `drafts`")
        return self

    @property
    def takes_gamma(self) -> bool:
        """Whether its draft length can be chosen."""
        return "gamma" in METHODS[self.method].flags

    def drafter_id(self, draft: str | None) -> str:
        """Return the id of what drafts: a draft model's own, or the method's and its file's."""
        if draft is None:
            return str(self.method)
        return draft if self.method == Method.DRAFT else f"{self.method}@{draft}"

    def settings(self, gammas: list[int]) -> Iterator[dict[str, Any]]:
        """Yield the parameters of each side, as fields of `config.block.Side`.

        `gammas` are the suite's, which hold where the method names none.
        """
        known = METHODS[self.method].flags
        choices: dict[str, list[Any]] = {
            "gamma": (self.gammas or gammas) if "gamma" in known else [CACHE_GAMMA],
            **{
                name: getattr(self, name) or [one.default if name in known else None]
                for name, one in PARAMETERS.items()
            },
        }
        for values in product(*choices.values()):
            yield dict(zip(choices, values, strict=True))

    def fault_of_lengths(self, gammas: list[int]) -> str | None:
        """Return why `ngram-simple` never drafts with a setting, see `settings`; None if it can.

        Source: common/ngram-map.cpp, `common_ngram_simple_draft`.
        """
        if self.method != Method.NGRAM_SIMPLE:
            return None
        for setting in self.settings(gammas):
            if setting["gamma"] < setting["n_match"]:
                return (
                    f"{self.method}: with n_match {setting['n_match']} and γ {setting['gamma']} it"
                    " never drafts; γ must be n_match at least"
                )
        return None
