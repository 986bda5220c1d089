"""Where a model comes from: the entries of the configuration's model sets."""

from typing import Annotated, Literal, Self

from pydantic import Field, StringConstraints, model_validator

from specmoe.config.base import Digest, Name, Positive, Strict, UserPath
from specmoe.config.synthetic_recipe import Recipe
from specmoe.files import parts_of

UNVERIFIED: Literal["unverified"] = "unverified"

Repository = Annotated[str, StringConstraints(pattern=r"^[^/\s]+/[^/\s]+$")]
Revision = Annotated[str, StringConstraints(pattern=r"^\S+$")]


class Family(Strict):
    """A trained network of which models are files; what is known of it before any is there."""

    architecture: str  # as GGUF names it
    vocabulary: Positive  # tokens
    layers: Positive
    parameters: Annotated[float, Field(gt=0)]
    parameters_active: Annotated[float, Field(gt=0)]  # multiplied for one token
    experts: Annotated[int, Field(ge=0)] = 0  # routed experts of a layer; 0 if dense
    experts_used: Annotated[int, Field(ge=0)] = 0  # of those, visited by one token
    tensors: Positive | None = None  # None: not known


class ModelBase(Strict):
    """What every model has: a label for tables and figures (default: its id), maybe a family."""

    label: str = ""
    family: Name | None = None


class HubModel(ModelBase):
    """A GGUF file of a Hugging Face repository; of a split one, the first part."""

    kind: Literal["hub"]
    repository: Repository
    revision: Revision = "main"
    file: Annotated[str, StringConstraints(pattern=r"\.gguf$")]
    size_bytes: Positive | None = None  # of all parts, exact: checked
    size_gb: Annotated[float, Field(gt=0)] | None = None  # as published, rounded: for the plan
    sha256: Digest | list[Digest] | Literal["unverified"] = UNVERIFIED

    @property
    def files(self) -> list[str]:
        """Every part of the model, in order."""
        return parts_of(self.file)

    @property
    def digests(self) -> list[str | None]:
        """The SHA-256 of every part; None where the configuration does not know it."""
        if self.sha256 == UNVERIFIED:
            return [None] * len(self.files)
        return [self.sha256] if isinstance(self.sha256, str) else list(self.sha256)

    @model_validator(mode="after")
    def _one_digest_a_part(self) -> Self:
        if len(self.digests) != len(self.files):
            raise ValueError(f"{len(self.digests)} digests for {len(self.files)} parts")
        return self


class ConvertModel(ModelBase):
    """A model made from the safetensors of a Hugging Face repository by llama.cpp's converter."""

    kind: Literal["convert"]
    repository: Repository
    revision: Revision = "main"
    type: Literal["BF16", "F16", "F32"] = "BF16"
    size_gb: Annotated[float, Field(gt=0)] | None = None  # of the safetensors: for the plan


class QuantizeModel(ModelBase):
    """A model made from another one of the set by llama-quantize."""

    kind: Literal["quantize"]
    source: Name
    type: Annotated[str, StringConstraints(pattern=r"^[A-Z0-9_]+$")]
    imatrix: UserPath | None = None  # file of an importance matrix


class SyntheticModel(ModelBase):
    """Random weights of a real architecture, written here."""

    kind: Literal["synthetic"]
    recipe: Recipe


class PathModel(ModelBase):
    """A GGUF file the user has."""

    kind: Literal["path"]
    path: UserPath


AnyModel = HubModel | ConvertModel | QuantizeModel | SyntheticModel | PathModel
Model = Annotated[AnyModel, Field(discriminator="kind")]
