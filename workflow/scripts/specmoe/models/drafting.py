"""How a file drafts, and whether it can do so for a target.

llama-server crashes on a head of another width or silently reads the wrong features, and takes a
head for a draft model. So files are compared before anything is measured.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from specmoe.config.methods import METHODS, Method, is_ngram
from specmoe.errors import ModelError
from specmoe.files import card_beside, named_if_damaged, read_record
from specmoe.models.gguf_file import Header, named_if_no_model, read_header

_BY_ARCHITECTURE = {"eagle3": Method.EAGLE3, "dflash": Method.DFLASH}
# llama.cpp tells the two block drafters apart by this tensor (common/speculative.cpp).
_MARKOV_HEAD = "markov_w1.weight"


class Part(NamedTuple):
    """One of a pair: a model's file, and the digest of its vocabulary."""

    file: Path
    vocabulary_sha256: str | None


def has_mtp_block(header: Header) -> bool:
    """Return whether a model's file has a block that predicts further tokens."""
    return header.number_of_architecture("nextn_predict_layers", 0) > 0


def drafts_by(header: Header) -> Method:
    """Return the method that a file is made for; raises ValueError if it is no model."""
    if header.architecture in _BY_ARCHITECTURE:
        has_markov_head = any(tensor.name == _MARKOV_HEAD for tensor in header.tensors)
        return Method.DSPARK if has_markov_head else _BY_ARCHITECTURE[header.architecture]
    # A whole model has layers before its MTP block; the file of an MTP block alone has none.
    has_layers = any(tensor.block == 0 for tensor in header.tensors)
    return Method.DRAFT if has_layers else Method.MTP


def check_fit(target: Header, draft: Header, method: Method, file: Path) -> None:
    """Make sure that a file drafts by a method for a target; raises ModelError if it cannot.

    `file` names the draft in the error.
    """
    with named_if_no_model(file):
        own = drafts_by(draft)
        # A whole model with an MTP block can lend it.
        lends = method == Method.MTP and has_mtp_block(draft)
        width = target.number_of_architecture("embedding_length")
        # A head reads the hidden states of its target; a model those of its own width.
        needed = draft.number("eagle3.target_hidden_size", 0)
        needed = needed or draft.number_of_architecture("embedding_length")
    if own != method and not lends:
        raise ModelError(
            f"{file} drafts as {METHODS[own].words} ({own}), not as {METHODS[method].words}"
            f" ({method}); name it under that method"
        )
    if method != Method.DRAFT and width != needed:
        raise ModelError(
            f"{file} reads hidden states of {needed} values, and its target's have {width}; choose"
            " the head that was made for this target"
        )


def check_pair(target: Part, draft: Part, methods: Iterable[Method]) -> None:
    """Make sure that a draft has its target's vocabulary, and what its methods need.

    llama-server only logs a mismatch, and runs on without speculative decoding; of a file of
    n-grams it cannot know. Raises ModelError.
    """
    if target.vocabulary_sha256 != draft.vocabulary_sha256:
        raise ModelError(
            f"{draft.file} cannot draft for {target.file}: their vocabularies differ, and a token's"
            " number would mean another token; choose a draft of the target's own family"
        )
    for method in methods:
        if not is_ngram(method):
            check_fit(read_header(target.file), read_header(draft.file), method, draft.file)


def check_made_pair(target: Path, draft: Path, methods: Iterable[Method]) -> None:
    """Check a pair whose cards are beside the files, as `check_pair` does."""
    check_pair(_part(target), _part(draft), methods)


def _part(model: Path) -> Part:
    card = card_beside(model)  # of a model, or of a file of n-grams
    with named_if_damaged(card):
        return Part(model, read_record(card)["vocabulary_sha256"])
