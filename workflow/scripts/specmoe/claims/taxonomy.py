"""Ways of drafting: read them, and say which of them a campaign measured.

`resources/methods/taxonomy.yaml` lists published systems and the engine's own, each with what the
engine has of it. A row of the table says `measured` only where the campaign has runs of all methods
that stand for the system; the file alone cannot make it say so.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Literal, Self, get_args

import pandas as pd
from pydantic import AfterValidator, Field, StringConstraints, model_validator

from specmoe.analysis.drafts import Control, with_controls
from specmoe.claims.entries import read_entries, read_references
from specmoe.config.base import Strict
from specmoe.config.methods import METHODS, NO_METHOD, Method, engine_types, methods_of
from specmoe.config.schema import Config
from specmoe.errors import ConfigError, nearest
from specmoe.models.card import ModelCard

DraftKind = Literal[
    "independent model",
    "skipped layers",
    "module of the target",
    "n-grams or retrieval",
    "parallel decoding",
    "cascade",
    "something else",
]
"""Where drafted tokens come from."""

Verification = Literal["greedy", "sampling", "token tree", "threshold", "other"]
"""What decides whether a drafted token is kept."""

Hybrids = Literal["yes, with replays", "yes, without replays", "no", "not tried"]
"""Whether it works on targets with a recurrent state, and whether a rejection costs a pass."""


class Seen(StrEnum):
    """What a campaign's runs say of a method."""

    OWN = "measured"
    IMPOSED = "cost measured"  # acceptance was imposed, or the draft is a control


OF_STUDY = "in the study's rows"
"""What the table says of a method where the campaign is the published study's own rows."""

ABSENT = "absent"
"""What it says of a system that the engine does not have."""


def _known_method(method: str) -> str:
    for part in method.split("+"):
        if part not in METHODS:
            raise ValueError(f"unknown method {part!r}; {nearest(part, map(str, METHODS))}")
    return method


MethodId = Annotated[str, AfterValidator(_known_method)]
Words = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]


class System(Strict):
    """One way of drafting, as the file describes it."""

    name: Words
    paper: Words
    draft: DraftKind
    verification: tuple[Verification, ...] = Field(min_length=1)
    methods: tuple[MethodId, ...] = ()
    programs: tuple[Literal["llama-lookahead", "llama-speculative"], ...] = ()
    nearest: bool = False
    needs: Words
    hybrids: Hybrids
    hybrids_why: str = ""
    config: str = ""
    campaigns: tuple[str, ...] | None = None
    remark: str = ""
    unverified: tuple[Literal["paper", "verification"], ...] = ()

    @model_validator(mode="after")
    def _is_whole(self) -> Self:
        failing = not self.hybrids.startswith("yes")
        for wrong, message in (
            (bool(self.methods) != bool(self.config), "`methods` and `config` need each other"),
            (not (self.methods or self.remark), "without `methods`, `remark` has to say why"),
            (self.nearest and not self.remark, "`nearest` needs a `remark` on how it differs"),
            (self.nearest and not self.in_engine, "`nearest` needs `methods` or `programs`"),
            (failing and not self.hybrids_why, f"hybrids `{self.hybrids}` needs `hybrids_why`"),
        ):
            if wrong:
                raise ValueError(message)
        return self

    @property
    def in_engine(self) -> str:
        """The engine's names for it, a chain as on the command line; nothing if it has none."""
        types = (engine_types([*map(Method, name.split("+"))]) for name in self.methods)
        return " or ".join([*types, *self.programs])

    @property
    def on_hybrids(self) -> str:
        """Whether it works on hybrid targets, and why not."""
        return f"{self.hybrids}: {self.hybrids_why}" if self.hybrids_why else self.hybrids


@dataclass(frozen=True)
class Literature:
    """The published systems by id, and the works of the bibliography, as words, by key."""

    systems: Mapping[str, System]
    works: Mapping[str, str]

    @classmethod
    def read(cls, taxonomy: Path, references: Path) -> Self:
        """Read both files; raises ConfigError as `read_systems` and `read_references` do."""
        works = read_references(references)
        return cls(read_systems(taxonomy, works), works)


def read_systems(path: Path, works: Collection[str]) -> dict[str, System]:
    """Return the systems of a file by id; `works` are the keys of the bibliography.

    Raises ConfigError with the place of the first fault.
    """
    systems = read_entries(path, System)
    for name, system in systems.items():
        if system.paper not in works:
            raise ConfigError(
                f"{path}: {name}.paper: {system.paper!r} is not in the bibliography;"
                f" {nearest(system.paper, works)}"
            )
    return systems


def measured_methods(
    runs: pd.DataFrame, config: Config, cards: Mapping[str, ModelCard]
) -> dict[frozenset[Method], Seen]:
    """Return the methods, and the chains of them, that runs were measured with.

    `runs` is `schema.read_runs`'s frame, `cards` are the models' by id.
    """
    drafted = runs[runs["method"] != NO_METHOD]
    kinds = with_controls(drafted, config.audit.unrelated_drafts, cards)
    seen: dict[frozenset[Method], Seen] = {}
    for types, members in kinds.groupby(drafted["method"]):
        own = members["imposed_acceptance"].isna() & members["control"].eq(Control.NONE)
        seen[frozenset(methods_of(str(types)))] = Seen.OWN if own.any() else Seen.IMPOSED
    return seen


def classify(
    literature: Literature, seen: Mapping[frozenset[Method], Seen], source: str, campaign: str = ""
) -> pd.DataFrame:
    """Return the table of systems, one row each: those of one kind together.

    `seen` is from `measured_methods`, `source` and `campaign` are the campaign's: the runs of a
    `published` one were measured elsewhere.

    Columns: system (its id), name, paper (a key of the bibliography), cited (the work in words),
    draft, verification, in_engine, needs, hybrids, remark (nothing if null), measured (what this
    campaign has of it), and whether these were not looked up: paper_unverified,
    verification_unverified.
    """
    kinds = get_args(DraftKind)
    ordered = sorted(literature.systems.items(), key=lambda item: kinds.index(item[1].draft))
    return pd.DataFrame(
        [
            {
                "system": name,
                "name": system.name,
                "paper": system.paper,
                "cited": literature.works[system.paper],
                "draft": system.draft,
                "verification": ", ".join(system.verification),
                "in_engine": system.in_engine or None,
                "needs": system.needs,
                "hybrids": system.on_hybrids,
                "remark": system.remark or None,
                "measured": measured_here(system, seen, source, campaign),
                **{f"{of}_unverified": of in system.unverified for of in ("paper", "verification")},
            }
            for name, system in ordered
        ]
    )


def measured_here(
    system: System, seen: Mapping[frozenset[Method], Seen], source: str, campaign: str = ""
) -> str:
    """Return what a campaign has of a system: it was measured, it could be, or it is absent.

    Of several methods, the one that was measured least decides. A system that names `campaigns` was
    measured in these alone: its draft is what makes it.
    """
    if not system.methods:
        return ABSENT
    found = {seen.get(frozenset(map(Method, name.split("+")))) for name in system.methods}
    if None in found or (system.campaigns is not None and campaign not in system.campaigns):
        words = f"runnable ({system.config})"
    elif source == "published":
        words = OF_STUDY
    else:
        words = (Seen.IMPOSED if Seen.IMPOSED in found else Seen.OWN).value
    return f"relative: {words}" if system.nearest else words
