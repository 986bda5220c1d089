"""What a model's GGUF file says about it: its card, its family, its vocabulary."""

import hashlib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from gguf import LlamaFileType

from specmoe.config.models import Family
from specmoe.errors import ModelError
from specmoe.files import digest_of_parts, file_digests, files_of_model, seen_of_model, sha256_of
from specmoe.models.card import ModelCard, card_of, save_card
from specmoe.models.gguf_file import Header, TensorInfo, named_if_no_model, read_header

# How far the parameters of a file may be from its family's, as published: some are rounded.
_PARAMETERS_TOLERANCE: Final = 0.02
_CLOCK: Final = b"strftime_now"  # the one function for it, as in llama.cpp's common/jinja/


def read_card(path: Path, sha256: str | None = None) -> ModelCard:
    """Return the card of a model, split or whole.

    Reads the whole file once, for its digest, unless that is given. Raises ModelError if a file is
    missing, not GGUF, truncated, or not the part of the model that its name says.
    """
    header, parts = read_header(path), files_of_model(path)
    digest = sha256 or digest_of_parts([sha256_of(part) for part in parts])
    with named_if_no_model(path):
        return _card(header, digest, sum(part.stat().st_size for part in parts))


def describe_clock(path: Path) -> str:
    """Return what to know of a chat template that writes the date or time; empty of others."""
    if _CLOCK not in (read_header(path).chat_template or b""):
        return ""
    return (
        f"The chat template of {path} writes the date or time (strftime_now): chats of another day"
        " are other prompts, so measure them in one."
    )


def check_family(card: ModelCard, family: Family, path: Path) -> None:
    """Make sure that a model is of the network the configuration says; raises ModelError if not."""
    known = {
        "architecture": (card.architecture, family.architecture),
        "vocabulary": (card.vocabulary_size, family.vocabulary),
        "layers": (card.layers, family.layers),
        "experts": (card.experts, family.experts),
        "tensors": (card.tensor_count, family.tensors or card.tensor_count),
    }
    wrong = [f"{what} {has}, not {of}" for what, (has, of) in known.items() if has != of]
    distance = abs(card.parameters_total - family.parameters)
    if distance > _PARAMETERS_TOLERANCE * family.parameters:
        wrong.append(f"parameters {card.parameters_total}, not about {family.parameters:.0f}")
    if wrong:
        raise ModelError(
            f"{path}: not of the family that the config names: {'; '.join(wrong)};"
            " correct the model's file or its family"
        )


def active_parameters(
    tensors: Sequence[TensorInfo], layers: int, experts: int, experts_used: int
) -> int:
    """Return how many parameters are multiplied for one token.

    Routed experts count by the share one token visits; the embedding table counts only where it
    is the output matrix too.
    """
    running = list(_multiplied(tensors, layers))
    routed = sum(tensor.elements for tensor in running if tensor.is_routed)
    always = sum(tensor.elements for tensor in running if not tensor.is_routed)
    return always + (routed * experts_used // experts if experts else 0)


def _vocabulary_sha256(tokens: Sequence[bytes]) -> str:
    digest = hashlib.sha256()
    for token in tokens:
        digest.update(len(token).to_bytes(8, "little") + token)
    return digest.hexdigest()


def _card(header: Header, sha256: str, size_bytes: int) -> ModelCard:
    predictors = header.number_of_architecture("nextn_predict_layers", 0)
    experts = header.number_of_architecture("expert_count", 0)
    used = header.number_of_architecture("expert_used_count", 0)
    layers = header.number_of_architecture("block_count") - predictors
    running = list(_multiplied(header.tensors, layers))
    card = ModelCard(
        size_bytes=size_bytes,
        sha256=sha256,
        architecture=header.architecture,
        type=_file_type(header),
        parameters_total=sum(tensor.elements for tensor in header.tensors),
        parameters_active=active_parameters(header.tensors, layers, experts, used),
        tensor_count=len(header.tensors),
        tensor_types=dict(sorted(Counter(t.type.name for t in header.tensors).items())),
        always_read_bytes=sum(t.size_bytes for t in running if not t.is_routed),
        routed_bytes=sum(t.size_bytes for t in running if t.is_routed),
        vocabulary_size=len(header.tokens()),
        vocabulary_sha256=_vocabulary_sha256(header.tokens()),
        context_length=header.number_of_architecture("context_length"),
        layers=layers,
        experts=experts,
        experts_used=used,
        mtp_blocks=predictors,
        mtp_bytes=_mtp_bytes(header.tensors, layers, experts, used) if predictors else None,
        chat_template=header.chat_template is not None,
    )
    return card_of(vars(card))


def _mtp_bytes(tensors: Sequence[TensorInfo], layers: int, experts: int, used: int) -> int:
    """Return the bytes that the first block after the layers reads to draft a token.

    The token's logits are the target's own output matrix times what the block computes, unless the
    block has one of its own.
    """
    block = [tensor for tensor in tensors if tensor.block == layers]
    read = {tensor.name: tensor.size_bytes for tensor in block if not tensor.is_routed}
    routed = sum(tensor.size_bytes for tensor in block if tensor.is_routed)
    by_name = {tensor.name: tensor.size_bytes for tensor in tensors}
    if f"blk.{layers}.nextn.shared_head_head.weight" not in read:
        read["output"] = by_name.get("output.weight") or by_name.get("token_embd.weight", 0)
    # The block's own table, like the target's, is looked up.
    read.pop(f"blk.{layers}.nextn.embed_tokens.weight", None)
    return sum(read.values()) + (routed * used // experts if experts else 0)


def _file_type(header: Header) -> str:
    try:
        return LlamaFileType(header.number("general.file_type")).name.removeprefix("MOSTLY_")
    except ValueError:
        return "unknown"


def _multiplied(tensors: Sequence[TensorInfo], layers: int) -> Iterator[TensorInfo]:
    """Yield the tensors that ordinary decoding multiplies with.

    One row of the embedding table is looked up, not multiplied, unless the table is the output
    matrix too. Blocks after the last layer predict further tokens; ordinary decoding skips them.
    """
    tied = all(tensor.name != "output.weight" for tensor in tensors)
    for tensor in tensors:
        skipped = tensor.block is not None and tensor.block >= layers
        if not skipped and (tied or tensor.name != "token_embd.weight"):
            yield tensor


@dataclass(frozen=True)
class Stated:
    """What the configuration says of a model's file."""

    sha256: tuple[str, ...] = ()  # of its parts
    family: Family | None = None
    origin: str = ""
    licence: str = ""


def describe_model(model: Path, stated: Stated, digests: Path | None, out: Path) -> str:
    """Write the card of a model; return what is to be said of its clock, or nothing.

    `digests` has those of a download, which was hashed then. Raises ModelError for a file that is
    not what is stated.
    """
    parts = files_of_model(model)
    lines = digests.read_text().splitlines() if digests else []
    known = {part.name: line.split()[0] for part, line in zip(parts, lines, strict=False)}
    hashed = file_digests(parts, seen_of_model(model), known)
    card = read_card(model, digest_of_parts([*hashed.values()]))
    if stated.sha256 and card.sha256 != (expected := digest_of_parts(stated.sha256)):
        raise ModelError(
            f"{model}: another file than the config names: SHA-256 {card.sha256}, not {expected};"
            " correct the model's path or its sha256"
        )
    if stated.family:
        check_family(card, stated.family, model)
    save_card(replace(card, origin=stated.origin, licence=stated.licence), out)
    return describe_clock(model)
