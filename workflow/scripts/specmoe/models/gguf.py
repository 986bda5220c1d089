"""Contents of a model's GGUF file: its info, its family, and the method that it drafts by.

llama-server crashes on a head of another hidden size or silently reads the wrong features, and
takes a head for a draft model. So files are compared before anything is measured.
"""

import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Sequence, Set
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from time import monotonic
from typing import Final

from gguf import LlamaFileType

from specmoe import files
from specmoe.config.base import resource
from specmoe.config.methods import METHODS, Method, is_ngram
from specmoe.config.models import AnyModel, Family, PathModel
from specmoe.errors import ModelError, nearest
from specmoe.models.chats import ASKED, compiled, stopped_at, written
from specmoe.models.gguf_file import Header, TensorInfo, named_if_no_model, read_header
from specmoe.models.info import ModelInfo, Thinking, save_info

# The names that llama-quantize has for the types of files, by number (include/llama.h). The package
# does not know the last one yet.
_FILE_TYPES: Final = {kind.value: re.sub("^[A-Z]+_", "", kind.name) for kind in LlamaFileType}
_FILE_TYPES[41] = "Q2_0"
# How far the parameters of a file may be from its family's, as published: some are rounded.
_PARAMETERS_TOLERANCE: Final = 0.02


def read_info(path: Path, sha256: str = "not hashed: headers only are read") -> ModelInfo:
    """Return the info of a model, split or whole; raises ModelError for no language model."""
    header, parts = read_header(path), files.files_of_model(path)
    with named_if_no_model(path):
        if other := _OTHERS.get(_kind(header)):
            raise ModelError(f"{path}: {other}")
        return _info_of_header(header, sha256, sum(part.stat().st_size for part in parts))


# Files of GGUF that write no text, by their `general.type`, and what is named instead.
_OTHERS: Final = {
    "mmproj": "a projector of pictures or sound (mmproj); name its model",
    "adapter": "an adapter (LoRA); name its model, and this in `engine_args: [--lora, FILE]`",
    "imatrix": "an importance matrix; name its model",
    "encoder": "an encoder, embedding or diffusion model; name one that writes token by token",
}


def _kind(header: Header) -> str:
    """Return what a file is: its `general.type`, or `encoder`; raises ValueError if it is none."""
    kind, rules = header.text("general.type", b"model"), resource("engine_rules")
    if kind != "model" or (architecture := header.architecture) in rules["heads"]:
        return kind
    if architecture == "clip":  # projectors of before 2025 say no type
        return "mmproj"
    number = header.number_of_architecture
    pooled = number("pooling_type", 0) or not number("attention.causal", 1)
    return "encoder" if pooled or architecture in rules["encoders"] else kind


def check_type(name: str, tool_help: str) -> None:
    """Raise ModelError if llama-quantize has no such type; its help is empty if it is not there."""
    known = set(re.findall(r"^ *(?:\d+ +or +)?(\w+) +:", tool_help, re.MULTILINE))
    # It has a short name for three of them, and one that copies.
    known = known or {*_FILE_TYPES.values(), "Q3_K", "Q4_K", "Q5_K", "COPY"} - {"GUESSED"}
    if name not in known:
        raise ModelError(f"llama-quantize has no type {name!r}; {nearest(name, known)}")


def check_family(info: ModelInfo, family: Family, path: Path) -> None:
    """Make sure that a model is of the network the configuration says; raises ModelError if not."""
    known = {
        "architecture": (info.architecture, family.architecture),
        "vocabulary": (info.vocabulary_size, family.vocabulary),
        "layers": (info.layers, family.layers),
        "experts": (info.experts, family.experts),
        "tensors": (info.tensor_count, family.tensors or info.tensor_count),
    }
    wrong = [f"{what} {has}, not {of}" for what, (has, of) in known.items() if has != of]
    if abs(info.parameters_total - family.parameters) > _PARAMETERS_TOLERANCE * family.parameters:
        wrong.append(f"parameters {info.parameters_total}, not about {family.parameters:.0f}")
    if wrong:
        raise ModelError(
            f"{path}: not of the family that the config names: {'; '.join(wrong)};"
            " correct the model's file or its family"
        )


def of_token(tensors: Iterable[TensorInfo], number: str, visited: Fraction) -> int:
    """Return what one token needs of tensors: of routed experts the share that it visits.

    `number` counts their `elements` or `size_bytes`.
    """
    return int(sum(getattr(tensor, number) * visited**tensor.is_routed for tensor in tensors))


def layers_of(header: Header) -> int:
    """Return how many layers come before a model's MTP blocks."""
    blocks = header.number_of_architecture("block_count")
    layers = blocks - header.number_of_architecture("nextn_predict_layers", 0)
    # Without MTP blocks, some files count them among their blocks, and some do not.
    more = any(tensor.block == layers for tensor in header.tensors)
    return blocks if more and not _mtp_tensors(header) else layers


def _info_of_header(header: Header, sha256: str, size_bytes: int) -> ModelInfo:
    number, tensors, layers = header.number_of_architecture, header.tensors, layers_of(header)
    experts, used = number("expert_count", 0), number("expert_used_count", 0)
    predictors = number("nextn_predict_layers", 0) if has_mtp_block(header) else 0
    running, visited = multiplied(tensors, layers), Fraction(used, experts or 1)
    vocabulary = hashlib.sha256()
    for token in header.tokens():
        vocabulary.update(len(token).to_bytes(8, "little") + token)
    return ModelInfo(
        size_bytes=size_bytes,
        sha256=sha256,
        architecture=header.architecture,
        type=_FILE_TYPES.get(header.number("general.file_type", -1), "unknown"),
        parameters_total=sum(tensor.elements for tensor in tensors),
        parameters_active=of_token(running, "elements", visited),
        tensor_count=len(tensors),
        tensor_types=dict(sorted(Counter(tensor.type.name for tensor in tensors).items())),
        always_read_bytes=sum(tensor.size_bytes for tensor in running if not tensor.is_routed),
        routed_bytes=sum(tensor.size_bytes for tensor in running if tensor.is_routed),
        vocabulary_size=len(header.tokens()),
        vocabulary_sha256=vocabulary.hexdigest(),
        context_length=number("context_length"),
        layers=layers,
        experts=experts,
        experts_used=used,
        mtp_blocks=predictors,
        mtp_bytes=_mtp_bytes(tensors, layers, visited) if predictors else None,
        chat_template=header.chat_template is not None,
        thinking=_thinking(header),
        sliding_window=number("attention.sliding_window", 0),
    )


_TEMPLATE_S: Final = 5.0  # those of real models take hundredths of it


def _thinking(header: Header) -> Thinking | None:
    """Return how a model's chat template has it think; None of one that knows of no thinking.

    It is rendered both ways, told to think and not to. None too if it cannot be rendered. Raises
    ValueError for one that does not end.
    """
    source = (header.chat_template or b"").decode(errors="replace")
    prompts, latest = list[str](), monotonic() + _TEMPLATE_S
    # A template may do anything; the server says so, if it cannot either.
    with suppress(Exception), stopped_at(latest):
        template = compiled(source)
        prompts = [written(template, ASKED | {"enable_thinking": told}) for told in (False, True)]
    if not prompts and monotonic() > latest:
        raise ValueError(f"no chat template that ends within {_TEMPLATE_S:g} s")
    marks = resource("engine_rules")["thinking"]
    begin, end = next((pair for pair in marks if any(map(source.count, pair))), ("", ""))
    if not prompts or (prompts[0] == prompts[1] and not begin):
        return None
    opens = [bool(begin) and text.rfind(begin) > text.rfind(end) for text in prompts]
    ids = {token: number for number, token in enumerate(header.tokens())}
    known = ids.get(begin.encode()), ids.get(end.encode())
    return Thinking(prompts[0] != prompts[1], (opens[0], opens[1]), *known)


def _mtp_bytes(tensors: Sequence[TensorInfo], layers: int, visited: Fraction) -> int:
    """Return the bytes that the first MTP layer reads to draft a token.

    It uses the target's output matrix unless it has one of its own.
    """
    # The block's own table, like the target's, is looked up.
    head, table = ".nextn.shared_head_head.weight", ".nextn.embed_tokens"
    read = [tensor for tensor in tensors if tensor.block == layers and table not in tensor.name]
    if all(head not in tensor.name for tensor in read):
        outputs = [tensor for tensor in tensors if tensor.name == "output.weight"]
        read += outputs or [tensor for tensor in tensors if tensor.name == "token_embd.weight"]
    return of_token(read, "size_bytes", visited)


def multiplied(tensors: Sequence[TensorInfo], layers: int) -> list[TensorInfo]:
    """Return the tensors that ordinary decoding multiplies with.

    One row of the embedding table is looked up, unless the table is the output matrix too. Ordinary
    decoding skips the MTP layers, which come last.
    """
    tied = all(tensor.name != "output.weight" for tensor in tensors)
    kept = [tensor for tensor in tensors if tensor.block is None or tensor.block < layers]
    return [tensor for tensor in kept if tied or tensor.name != "token_embd.weight"]


def write_info(
    model: Path, entry: AnyModel, family: Family | None, origin: tuple[str, str], out: Path
) -> None:
    """Write the info of a model; raises ModelError if it is not what the configuration says.

    `origin` is where its weights are from, and their licence, or empty.
    """
    parts = files.files_of_model(model)
    hashed = files.file_digests(parts, files.seen_of_model(model))
    info = read_info(model, files.digest_of_parts([*hashed.values()]))
    stated = [*filter(None, entry.digests)] if isinstance(entry, PathModel) else []
    if len(stated) == len(parts) and info.sha256 != (expected := files.digest_of_parts(stated)):
        raise ModelError(
            f"{model}: another file than the config names: SHA-256 {info.sha256}, not {expected};"
            " correct the model's path or its sha256"
        )
    if family:
        check_family(info, family, model)
    if info.thinking and not info.thinking.heeded:
        print(f"{model}: its chat template thinks, or does not, whatever `thinking` tells it")
    save_info(replace(info, origin=origin[0], licence=origin[1]), out)


def has_mtp_block(header: Header) -> bool:
    """Return whether a file has a block that predicts further tokens, by which llama.cpp drafts."""
    unused = resource("engine_rules")["mtp_unused"]
    return _mtp_tensors(header) and header.architecture not in unused


def _mtp_tensors(header: Header) -> bool:
    """Return whether an MTP block is there; `nextn_predict_layers` alone decides nothing."""
    return any(tensor.name.endswith(".nextn.eh_proj.weight") for tensor in header.tensors)


def drafts_by(header: Header) -> Method:
    """Return the method that a file is made for; raises ValueError if it is no model."""
    heads = resource("engine_rules")["heads"]
    if header.architecture in heads:
        # So llama.cpp tells the two block drafters apart (common/speculative.cpp).
        has_markov_head = any(tensor.name == "markov_w1.weight" for tensor in header.tensors)
        return Method.DSPARK if has_markov_head else Method(heads[header.architecture])
    # A whole model has layers before its MTP block; the file of an MTP block alone has none.
    if any(tensor.block == 0 for tensor in header.tensors):
        return Method.DRAFT
    if not _mtp_tensors(header):
        raise ValueError("no layers")
    return Method.MTP


def check_fit(target: Header, draft: Header, method: Method, file: Path) -> None:
    """Raise ModelError unless a file, named `file`, drafts by a method for a target."""
    with named_if_no_model(file):
        native = drafts_by(draft)
        # A whole model with an MTP block can lend it.
        lends = method == Method.MTP and has_mtp_block(draft)
        width = target.number_of_architecture("embedding_length")
        # A head reads the hidden states of its target; a model its own.
        needed = draft.number("eagle3.target_hidden_size", 0)
        for key in ("embedding_length_out", "embedding_length"):
            needed = needed or draft.number_of_architecture(key, 0)
    if native == Method.MTP and all(tensor.name != "token_embd.weight" for tensor in draft.tensors):
        raise ModelError(
            f"{file} has an MTP block and no embedding (token_embd.weight), so llama.cpp does not"
            " load it; convert it again with that, or name the whole model"
        )
    if method == Method.MTP and not lends and native == Method.DRAFT:
        raise ModelError(
            f"{file} has no MTP block with which llama.cpp drafts; leave out method mtp, or name a"
            " file that has the block"
        )
    if native != method and not lends:
        raise ModelError(
            f"{file} drafts as {METHODS[native].label} ({native}), not as {METHODS[method].label}"
            f" ({method}); name it under that method"
        )
    if method != Method.DRAFT and width != needed:
        raise ModelError(
            f"{file} expects hidden size {needed}, its target has {width}; use a head that was"
            " trained for this target"
        )


def _vocabulary(header: Header) -> tuple[str, list[str], list[bytes]]:
    """Return the kind of a tokenizer, what it puts around a text, and its tokens.

    What a file does not say is as in llama.cpp (src/llama-vocab.cpp: llama_vocab::impl::load).
    Raises ValueError for a header without tokens.
    """
    rules, given = resource("engine_rules"), "tokenizer.ggml"
    model, pre = (header.text(f"{given}.{key}", b"") for key in ("model", "pre"))
    if model == "gemma4":
        model, pre = "gpt2", "gemma4"
    ids = {"bos": 1, "eos": 2} if model in ("llama", "plamo2") else {"bos": 11, "eos": 11}
    adds = {"bos": model == "llama" or pre in rules["begin"], "eos": False}
    around = [
        f"{name} {header.number(f'{given}.{name}_token_id', ids[name])}"
        for name, default in adds.items()
        if header.number(f"{given}.add_{name}_token", default)
        or (name == "bos" and pre in rules["always_begin"])
    ]
    return model, around, header.tokens()


# Tables are padded to other sizes, and the first tokens are special ones (llama.cpp,
# common/speculative.cpp: SPEC_VOCAB_MAX_SIZE_DIFFERENCE, SPEC_VOCAB_CHECK_START_TOKEN_ID).
_PADDING: Final = 128
_FIRST_COMPARED: Final = 5


def _difference(target: Header, draft: Header, method: Method) -> str:
    """Return why a draft's vocabulary does not fit its target's; empty if it does.

    So llama.cpp judges draft models (common/speculative.cpp: common_speculative_are_compatible).
    It does not judge heads, but these have the tokens of their targets too.
    """
    (kind, around, ours), (own_kind, own_around, theirs) = map(_vocabulary, (target, draft))
    if kind != own_kind:
        return f"their vocabularies differ: the tokenizers are {own_kind} and {kind}"
    if abs(len(ours) - len(theirs)) > _PADDING:
        return f"their vocabularies differ: {len(theirs)} and {len(ours)} tokens"
    for number, (token, expected) in enumerate(zip(theirs, ours, strict=False)):
        if number >= _FIRST_COMPARED and token != expected:
            return f"their vocabularies differ: token {number} is {token!r} and {expected!r}"
    if method == Method.DRAFT and around != own_around:
        added = [" and ".join(tokens) or "no token" for tokens in (own_around, around)]
        return (
            f"it puts {added[0]} around a text and its target {added[1]} (tokenizer.ggml:"
            " add_bos_token, add_eos_token), and llama-server would run without drafting"
        )
    return ""


def check_target(path: Path) -> None:
    """Raise ModelError for a file that only drafts."""
    with named_if_no_model(path):
        method = drafts_by(read_header(path))
    if method != Method.DRAFT:
        raise ModelError(f"{path} only drafts ({method}); name its target, and it in `drafts`")


def check_pair(
    target: Path, draft: Path, method: Method, digests: Set[object], *, made: bool = True
) -> None:
    """Raise ModelError unless a file can draft for a target by a method, as the engine judges.

    llama-server only logs a mismatch and continues without speculation. `digests` are of the
    vocabularies, which must be equal for n-grams. If it is not `made` yet, `draft` is what it is
    made from, and has its vocabulary.
    """
    difference = "their vocabularies differ" if len(digests) > 1 else ""
    if not is_ngram(method):
        headers = read_header(target), read_header(draft)
        if made:
            check_fit(*headers, method, draft)
        with named_if_no_model(draft):
            difference = _difference(*headers, method)
    if difference:
        raise ModelError(
            f"{draft} cannot draft for {target}: {difference}; choose one of the target's family"
        )
