"""The drafting methods: their names, what each loads, the parameters it takes, and their labels.

`PARAMETERS` has what ids and labels say of a parameter; it is also a field of
`config.methods.Drafting` and `config.block.Arm`, and a column of rows.

Sources: llama.cpp, common/speculative.cpp and common/ngram-map.cpp.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import product
from typing import Any, Literal, Self

from pydantic import Field, PositiveInt, model_validator

from specmoe.config.base import Distinct, DraftLength, Name, Share, Strict, resource
from specmoe.config.engines import ArmArgs


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


@dataclass(frozen=True)
class Parameter:
    """A parameter that a method may take besides γ, named as in a `Arm`."""

    letter: str  # in ids
    label: str  # in labels
    default: float  # of a method that takes it


# In the order in which ids have them. Ids and labels have no value that is 0.
PARAMETERS = {
    "n_match": Parameter("n", "n = {:g}", 3),
    "partner_gamma": Parameter("m", "m = {:g}", 8),
    "p_min": Parameter("p", "p ≥ {:g}", 0.0),
}


@dataclass(frozen=True)
class Facts:
    """What is known of a method before it runs."""

    engine: str  # llama-server's `--spec-type`
    label: str  # the literature's name
    loads: Literal["nothing", "optional", "file"] = "nothing"  # besides the target
    # The parameters that it takes with llama-server's flags, γ among them: in the order of the
    # command line. Where γ is not, the engine fixes the draft length.
    flags: Mapping[str, str] = field(default_factory=dict)
    # Words of the command line behind γ.
    fixed: Sequence[str] = ()
    # Whether it keeps something of one request for the next: each run has a process of its own.
    remembers: bool = False
    # Whether a hybrid target undoes its rejected tokens without a replay.
    rolls_back: bool = False


METHODS = {
    Method(name): Facts(**facts) for name, facts in resource("engine_rules")["methods"].items()
}

BY_TYPE = {facts.engine: method for method, facts in METHODS.items()}
"""Each method by its `--spec-type`."""


def is_ngram(method: Method | None) -> bool:
    """Return whether a method looks tokens up, where they repeat, instead of computing them."""
    return method is not None and method.value.startswith("ngram-")


def round_parts(method: Method, *, replays: bool) -> list[str]:
    """Return what the engine does in a round beside drafting and passes, without logging its time.

    `replays`: whether rounds are replayed. Then it copies the target's recurrent state to the
    host's memory before each round, as it does for draft models and n-grams; it keeps states to
    roll back to for MTP, EAGLE-3, DFlash and DSpark alone (`need_n_rs_seq` in common/common.h),
    whose heads read the verified batch in a pass of their own. Every accepted token, and the one
    that follows, is sampled from the target's whole vocabulary (tools/server/server-context.cpp).
    """
    head = METHODS[method].rolls_back
    return ["catch-up"] * head + ["checkpoint"] * replays + ["sampling"]


def engine_type(*methods: Method | None) -> str:
    """Return the value of `--spec-type` for a method and its partner; `none` without any.

    So a pair is no method that drafts alone: what scores, timed passes and rejections tell of one
    does not apply.
    """
    return ",".join(METHODS[method].engine for method in methods if method) or "none"


def methods_of(types: str) -> tuple[Method, ...]:
    """Return the method that a `--spec-type` stands for, and its partner."""
    return tuple(BY_TYPE[name] for name in types.split(","))


def draft_label(
    methods: Sequence[Method], file_label: str | None, parameters: Mapping[str, Any]
) -> str:
    """Return the label of what drafts: a method, and its partner.

    `file_label` is that of the file it loads, None if it loads none or needs no naming.
    `parameters` are columns of a row; a missing one is null. Options of an arm are in its draft.
    """
    method, *partners = methods
    name = METHODS[method].label
    if file_label is not None and method == Method.DRAFT:
        name = file_label
    elif file_label not in (None, name):
        name = f"{name} ({file_label})"
    name = " + ".join([name, *(METHODS[partner].label for partner in partners)])
    given = ((parameter.label, parameters.get(key)) for key, parameter in PARAMETERS.items())
    told = (label.format(value) for label, value in given if value)
    own = str(parameters.get("draft", "")).partition("+")[2].replace("+", " ")
    return ", ".join(filter(None, [name, *told, own]))


# The keys of parameters that have other names in the configuration.
_KEYS = {"gamma": "gammas", "partner_gamma": "with_gamma"}


WITH = "-with-"  # between the ids of what drafts and of its partner
SELF = "self"  # among a suite's drafts: every target drafts for itself


class Drafting(Strict):
    """One drafting method; its lists multiply."""

    method: Method
    """`draft` is a second model"""
    targets: Distinct[Name] = Field(default=[])
    """those of the suite's targets that it drafts for; empty: all"""
    drafts: Distinct[Name] = Field(default=[])
    """models of the set that it loads: draft models, a file with an MTP block or a trained head, or
    for `ngram-cache` an n-gram cache made from a text"""
    gammas: Distinct[DraftLength] = Field(default=[])
    """draft lengths γ in place of the suite's `gammas`"""
    n_match: Distinct[PositiveInt] = Field(default=[])
    """tokens that an n-gram method looks up; 3 by default"""
    p_min: Distinct[Share] = Field(default=[])
    """probability below which a model stops drafting; 0 by default"""
    partner: Method | None = Field(default=None, alias="with")
    """an n-gram method beside a model or head, `{method: mtp, with: ngram-mod}`: it drafts where it
    finds something, the model or head elsewhere; `n_match` is then what it looks up"""
    partner_gamma: Distinct[DraftLength] = Field(default=[], alias="with_gamma")
    """draft lengths of `with`; 8 by default, whatever `n_match` is"""
    engine_args: ArmArgs = Field(default=[])
    """further words of these settings' command lines alone, such as `[--n-cpu-moe, 8]`, behind all
    others; `--gpu-layers` and `--gpu-layers-draft` may be among them. Their texts are not compared
    with a baseline's that has other words, as these may round otherwise"""
    waits: bool = False
    """of `methods: all` in stages: settings wait until others were measured. Those with `p_min`
    join at the best γ of their model or head, and one of those with a partner in the end"""

    @property
    def methods(self) -> tuple[Method, ...]:
        """The method, and its partner."""
        return (self.method, self.partner) if self.partner else (self.method,)

    @property
    def _taken(self) -> set[str]:
        """The parameters that its methods take, by the names that an arm has for them."""
        looked_up = METHODS[self.partner].flags if self.partner else ()
        of_partner = {"partner_gamma" if name == "gamma" else name for name in looked_up}
        return {*METHODS[self.method].flags, *of_partner}

    @model_validator(mode="after")
    def _check(self) -> Self:
        facts, taken = METHODS[self.method], self._taken
        if self.partner and (is_ngram(self.method) or not is_ngram(self.partner)):
            raise ValueError("`with` is an n-gram method beside a draft model or a head")
        values = {"gamma": self.gammas} | {name: getattr(self, name) for name in PARAMETERS}
        given = {name for name, listed in values.items() if listed}
        keys, ignored = (sorted(_KEYS.get(n, n) for n in names) for names in (taken, given - taken))
        if ignored:
            what = f"{' with '.join(self.methods)} ignores {', '.join(ignored)}"
            raise ValueError(f"{what}; it takes {', '.join(keys) or 'none'}")
        if facts.loads == "file" and not self.drafts:
            raise ValueError(f"{self.method} loads a file: name it in `drafts`")
        if facts.loads == "nothing" and self.drafts:
            raise ValueError(f"{self.method} loads no file: leave out `drafts`")
        return self

    def drafter_id(self, draft: str | None) -> str:
        """Return the id of what drafts: a draft model's own, or the method's and its file's."""
        name = str(self.method)
        if draft is not None:
            name = draft if self.method == Method.DRAFT else f"{self.method}@{draft}"
        return f"{name}{WITH}{self.partner}" if self.partner else name

    def settings(self, target: str, gammas: list[int]) -> list[dict[str, Any]]:
        """Return the fields of each arm that drafts for a target, see `config.block.Arm`.

        `gammas` are the suite's, which hold where the method names none.
        """
        known = self._taken
        files = [target if draft == SELF else draft for draft in self.drafts]
        lengths = (self.gammas or gammas) if "gamma" in known else [8]  # of the engine
        choices: dict[str, list[Any]] = {"draft_model": files or [None], "gamma": lengths}
        known |= {"partner_gamma"} if self.partner else set()  # the default is the engine's too
        for name, parameter in PARAMETERS.items():
            choices[name] = getattr(self, name) or [parameter.default if name in known else None]
        own: dict[str, Any] = {"method": self.method, "partner": self.partner}
        own |= {"waits": self.waits or None, "engine_args": tuple(self.engine_args) or None}
        made = (dict(zip(choices, values, strict=True)) for values in product(*choices.values()))
        return [{"draft": self.drafter_id(one["draft_model"]), **one, **own} for one in made]
