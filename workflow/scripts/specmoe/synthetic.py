"""Qwen3.5-shaped models with random weights, nested in each other, for runs without downloads.

A family shares one seed and one width. Its smallest member is the *core*: every larger member
starts with the same layers, and each layer that follows adds only a small update to the residual
stream. A small member therefore drafts for a large one with an acceptance rate between 0 and 1
that nobody imposed: it comes from the argmax of two networks that nearly agree.

Tensor names, shapes and metadata: llama.cpp, src/models/qwen35.cpp and qwen35moe.cpp.
"""

import hashlib
import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from math import prod, sqrt
from pathlib import Path
from typing import Literal

import gguf
import numpy as np
import numpy.typing as npt

from specmoe.errors import ModelError
from specmoe.recipe import Recipe

ATTENTION_INTERVAL = 4
"""One layer in four has full attention, the others a Gated DeltaNet, as in Qwen3.5."""

CONVOLUTION = 4
"""Positions the causal convolution before a Gated DeltaNet looks at."""

END_OF_TEXT = "<|endoftext|>"

# Whole words and word parts; each becomes a chain of merges, so that prompts of the usual kinds
# (English, code) take fewer tokens than bytes. Any text can be tokenized without them.
_FRAGMENTS = (
    "Ġthe Ġof Ġand Ġin Ġto Ġis Ġa Ġthat Ġfor Ġit Ġas Ġwas Ġwith Ġbe Ġby Ġon Ġnot Ġhe Ġthis Ġare "
    "Ġor Ġfrom Ġhave Ġan Ġwhich Ġone Ġwe Ġcan Ġreturn Ġself ing ion ed er es en al re in on at "
    "th he le ly or an ar ic de def class import print ĠĠĠĠ == ():"
)

# Gains of the random projections, relative to unit variance of the input. Updates must be strong
# enough for the next token to depend on the whole context, or greedy decoding walks a map from
# token to token and may loop (seen at gains up to 0.6, for some seeds and prompts), and weak
# enough that rounding is not amplified from layer to layer (from 1.5 on, Q8_0's own error flips
# one drafted token in ten).
_UPDATE_GAIN = 0.8
# Full attention averages over the context and halves the result in its sigmoid gate.
_ATTENTION_GAIN = 2.0
# Sharpens random attention somewhat: it would average the context away.
_QUERY_GAIN = 1.5
# Logits with a standard deviation of 4 give the best of the tokens a probability near one half,
# as in trained models, so that a near tie means the same in nats as it does there.
_LOGIT_GAIN = 4.0
# Weights take this many evenly spaced values, which four-bit quantization can represent. A model
# then accepts 78 to 90 % of what its own Q4_K_M drafts, against 67 to 69 % with continuous ones,
# where quantization drowns the differences between the members of a family.
_LEVELS = 16


@dataclass(frozen=True)
class Tensor:
    """One tensor before its weights are drawn: uniform with this mean and standard deviation."""

    name: str  # as llama.cpp looks it up
    shape: tuple[int, ...]  # numpy order: the row, contiguous in memory, comes last
    mean: float
    deviation: float
    dtype: Literal["F32", "F16", "BF16"]
    drawn_as: str  # what the random numbers depend on, beside the seed and the shape
    silent_rows: tuple[int, ...] = ()  # rows set to zero


@dataclass(frozen=True)
class Vocabulary:
    """A byte-level BPE vocabulary as GGUF stores it."""

    tokens: tuple[str, ...]
    merges: tuple[str, ...]
    end_of_text: int  # token id

    @property
    def types(self) -> list[int]:
        """GGUF's token type of every token: normal, control or unused."""
        normal, control, unused = (
            int(kind)
            for kind in (gguf.TokenType.NORMAL, gguf.TokenType.CONTROL, gguf.TokenType.UNUSED)
        )
        padding = len(self.tokens) - self.end_of_text - 1
        return [normal] * self.end_of_text + [control] + [unused] * padding


def write_model(path: Path, recipe: Recipe) -> None:
    """Write the model to `path`, whole or not at all; the same recipe gives the same bytes.

    Raises ModelError when the disk does not take it.
    """
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        _write(part, recipe)
        part.replace(path)
    except OSError as error:
        free = shutil.disk_usage(path.parent).free
        raise ModelError(f"{path}: not written, {free} bytes free there: {error}") from error
    finally:
        part.unlink(missing_ok=True)


def byte_level_vocabulary(size: int) -> Vocabulary:
    """Return a vocabulary of `size` tokens that can encode any byte, padded at its end."""
    symbols = _byte_symbols()
    tokens = list(symbols)
    merges = []
    for fragment in _FRAGMENTS.split():
        for end in range(2, len(fragment) + 1):
            if fragment[:end] not in tokens:
                tokens.append(fragment[:end])
                merges.append(f"{fragment[: end - 1]} {fragment[end - 1]}")
    end_of_text = len(tokens)
    padding = size - end_of_text - 1
    if padding < 0:
        raise ModelError(f"synthetic model: vocabulary must be at least {end_of_text + 1}")
    tokens += [END_OF_TEXT, *(f"<|unused_{i}|>" for i in range(padding))]
    return Vocabulary(tuple(tokens), tuple(merges), end_of_text)


def tensors(recipe: Recipe) -> Iterator[Tensor]:
    """Yield every tensor of the model, in file order."""
    hidden, words = recipe.hidden, recipe.vocabulary
    yield _matrix(recipe, "token_embd", (words, hidden), gain=sqrt(hidden))
    for layer in range(recipe.layers):
        strength = _strength(recipe, layer)
        block = f"blk.{layer}."
        yield _vector(f"{block}attn_norm.weight", hidden, 1.0)
        if (layer + 1) % ATTENTION_INTERVAL == 0:
            yield from _attention(recipe, block, strength * _UPDATE_GAIN)
        else:
            yield from _delta_net(recipe, block, strength * _UPDATE_GAIN)
        yield _vector(f"{block}post_attention_norm.weight", hidden, 1.0)
        yield from _feed_forward(recipe, block, strength * _UPDATE_GAIN)
    yield _vector("output_norm.weight", hidden, 1.0)
    # A head of its own: tied to the embedding, a random network mostly repeats its last token.
    silent = _unprintable(byte_level_vocabulary(words))
    yield _matrix(recipe, "output", (words, hidden), gain=_LOGIT_GAIN, silent_rows=silent)


def draw(tensor: Tensor, seed: int) -> npt.NDArray[np.float32]:
    """Draw the weights of one tensor; they depend on nothing but the arguments.

    The random bits are shaped here, not by numpy's distributions, whose streams may change
    between numpy versions (NEP 19): a model's digest must not depend on the version installed.
    """
    weights = np.full(tensor.shape, tensor.mean, dtype=np.float32)
    if tensor.deviation:
        key = f"{seed}/{tensor.drawn_as}/{tensor.shape}"
        entropy = int.from_bytes(hashlib.sha256(key.encode()).digest(), "little")
        count = prod(tensor.shape)
        words = np.random.SFC64(np.random.SeedSequence(entropy)).random_raw(-(-count // 8))
        octets = words.astype("<u8", copy=False).view(np.uint8)[:count].reshape(tensor.shape)
        steps = (octets % _LEVELS).astype(np.float32) - np.float32((_LEVELS - 1) / 2)
        weights += steps * np.float32(tensor.deviation / sqrt((_LEVELS**2 - 1) / 12))
    weights[list(tensor.silent_rows)] = 0
    return weights


def _strength(recipe: Recipe, layer: int) -> float:
    """Return how strong a layer's updates are: 1 in the core, then falling as 1 / layer.

    Were all later layers equally strong, those that a draft of middle size adds to the core would
    be few among the target's many, and it would draft no better than the core alone.
    """
    if layer < recipe.core_layers:
        return 1.0
    return recipe.epsilon * recipe.core_layers / layer


def _attention(recipe: Recipe, block: str, gain: float) -> Iterator[Tensor]:
    width, kv_width = recipe.heads * recipe.head_size, recipe.kv_heads * recipe.head_size
    # Twice the width: queries and the gate of the output, head by head.
    yield _matrix(recipe, f"{block}attn_q", (2 * width, recipe.hidden))
    yield _matrix(recipe, f"{block}attn_k", (kv_width, recipe.hidden))
    yield _matrix(recipe, f"{block}attn_v", (kv_width, recipe.hidden))
    yield _vector(f"{block}attn_q_norm.weight", recipe.head_size, _QUERY_GAIN)
    yield _vector(f"{block}attn_k_norm.weight", recipe.head_size, 1.0)
    yield _matrix(
        recipe, f"{block}attn_output", (recipe.hidden, width), gain=_ATTENTION_GAIN * gain
    )


def _delta_net(recipe: Recipe, block: str, gain: float) -> Iterator[Tensor]:
    heads = recipe.gdn_value_heads
    value_width = heads * recipe.gdn_head_size
    mixed = value_width + 2 * recipe.gdn_key_heads * recipe.gdn_head_size
    yield _matrix(recipe, f"{block}attn_qkv", (mixed, recipe.hidden))
    yield _matrix(recipe, f"{block}attn_gate", (value_width, recipe.hidden))
    yield _random(f"{block}ssm_conv1d.weight", (mixed, CONVOLUTION), 0.0, 1 / sqrt(CONVOLUTION))
    # A head forgets at rate softplus(alpha + dt) per token: here a few to a hundred tokens.
    yield _random(f"{block}ssm_dt.bias", (heads,), -3.0, 1.0)
    yield _vector(f"{block}ssm_a", heads, -1.0)
    yield _matrix(recipe, f"{block}ssm_beta", (heads, recipe.hidden))
    yield _matrix(recipe, f"{block}ssm_alpha", (heads, recipe.hidden), gain=0.25)
    yield _vector(f"{block}ssm_norm.weight", recipe.gdn_head_size, 1.0)
    yield _matrix(recipe, f"{block}ssm_out", (recipe.hidden, value_width), gain=gain)


def _feed_forward(recipe: Recipe, block: str, gain: float) -> Iterator[Tensor]:
    hidden, ffn, experts = recipe.hidden, recipe.ffn, recipe.experts
    if not experts:
        yield _matrix(recipe, f"{block}ffn_gate", (ffn, hidden))
        yield _matrix(recipe, f"{block}ffn_up", (ffn, hidden))
        yield _matrix(recipe, f"{block}ffn_down", (hidden, ffn), gain=gain)
        return
    # The shared expert is drawn as the dense FFN. llama.cpp multiplies it by the sigmoid of its
    # gate; a zero gate makes that one half, for every token, and the doubled matrix undoes it.
    yield _vector(f"{block}ffn_gate_inp_shexp.weight", hidden, 0.0)
    for name, shape, strength in (
        ("ffn_gate", (ffn, hidden), 1.0),
        ("ffn_up", (ffn, hidden), 1.0),
        ("ffn_down", (hidden, ffn), 2 * gain),
    ):
        drawn_as = f"{block}{name}"
        yield _matrix(recipe, f"{drawn_as}_shexp", shape, gain=strength, drawn_as=drawn_as)
    inner, down = recipe.expert_ffn, recipe.routed_epsilon * _UPDATE_GAIN
    yield _random(f"{block}ffn_gate_inp.weight", (experts, hidden), 0.0, 1 / sqrt(hidden))
    yield _matrix(recipe, f"{block}ffn_gate_exps", (experts, inner, hidden))
    yield _matrix(recipe, f"{block}ffn_up_exps", (experts, inner, hidden))
    yield _matrix(recipe, f"{block}ffn_down_exps", (experts, hidden, inner), gain=down)


def _matrix(
    recipe: Recipe,
    name: str,
    shape: tuple[int, ...],
    gain: float = 1.0,
    drawn_as: str = "",
    silent_rows: tuple[int, ...] = (),
) -> Tensor:
    """Return a projection whose outputs have `gain` times the deviation of its inputs."""
    deviation = gain / sqrt(shape[-1])
    weight = f"{name}.weight"
    return Tensor(weight, shape, 0.0, deviation, recipe.dtype, drawn_as or name, silent_rows)


def _random(name: str, shape: tuple[int, ...], mean: float, deviation: float) -> Tensor:
    return Tensor(name, shape, mean, deviation, "F32", name)


def _vector(name: str, size: int, value: float) -> Tensor:
    return Tensor(name, (size,), value, 0.0, "F32", name)


def _byte_symbols() -> list[str]:
    """Return GPT-2's printable stand-in for each byte, in the order of its vocabulary."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in printable]
    return [chr(byte) for byte in printable] + [chr(256 + i) for i in range(len(others))]


def _unprintable(vocabulary: Vocabulary) -> tuple[int, ...]:
    """Return the ids no model should write: never end of text, nor half a UTF-8 character."""
    writable = {chr(code) for code in range(0x21, 0x7F)} | {"Ġ", "Ċ"}
    return tuple(
        token
        for token, text in enumerate(vocabulary.tokens)
        if token >= vocabulary.end_of_text or not writable.issuperset(text)
    )


def _write(path: Path, recipe: Recipe) -> None:
    writer = gguf.GGUFWriter(path, recipe.architecture)
    _add_metadata(writer, recipe)
    _add_vocabulary(writer, byte_level_vocabulary(recipe.vocabulary))
    plan = list(tensors(recipe))
    for tensor in plan:
        kind = gguf.GGMLQuantizationType[tensor.dtype]
        size = prod(tensor.shape) * (4 if tensor.dtype == "F32" else 2)
        # The writer wants a numpy type as well, and ignores it where the GGUF type is given.
        writer.add_tensor_info(tensor.name, tensor.shape, np.dtype(np.uint16), size, kind)
    try:
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_ti_data_to_file()
        for tensor in plan:
            writer.write_tensor_data(_stored(draw(tensor, recipe.seed), tensor.dtype))
    finally:
        writer.close()


def _stored(weights: npt.NDArray[np.float32], dtype: str) -> npt.NDArray[np.generic]:
    if dtype == "F32":
        return weights
    if dtype == "F16":
        return weights.astype(np.float16)
    # Round to nearest even, as ggml does; numpy has no bfloat16.
    bits = weights.view(np.uint32)
    return ((bits + np.uint32(0x7FFF) + ((bits >> 16) & np.uint32(1))) >> 16).astype(np.uint16)


def _add_metadata(writer: gguf.GGUFWriter, recipe: Recipe) -> None:
    writer.add_block_count(recipe.layers)
    writer.add_context_length(recipe.context_length)
    writer.add_embedding_length(recipe.hidden)
    writer.add_feed_forward_length(recipe.ffn)
    writer.add_head_count(recipe.heads)
    writer.add_head_count_kv(recipe.kv_heads)
    writer.add_key_length(recipe.head_size)
    writer.add_value_length(recipe.head_size)
    writer.add_layer_norm_rms_eps(1e-6)
    writer.add_rope_freq_base(1e7)
    # A quarter of each head is rotated, in Qwen's three interleaved sections (text uses one).
    pairs = recipe.head_size // 8
    writer.add_rope_dimension_count(2 * pairs)
    writer.add_rope_dimension_sections([pairs - 2 * (pairs // 3), pairs // 3, pairs // 3, 0])
    writer.add_ssm_conv_kernel(CONVOLUTION)
    writer.add_ssm_inner_size(recipe.gdn_value_heads * recipe.gdn_head_size)
    writer.add_ssm_state_size(recipe.gdn_head_size)
    writer.add_ssm_time_step_rank(recipe.gdn_value_heads)
    writer.add_ssm_group_count(recipe.gdn_key_heads)
    writer.add_full_attention_interval(ATTENTION_INTERVAL)
    writer.add_file_type(int(gguf.LlamaFileType[f"MOSTLY_{recipe.dtype}"]))
    if recipe.experts:
        writer.add_expert_count(recipe.experts)
        writer.add_expert_used_count(recipe.experts_used)
        writer.add_expert_feed_forward_length(recipe.expert_ffn)
        writer.add_expert_shared_feed_forward_length(recipe.ffn)


def _add_vocabulary(writer: gguf.GGUFWriter, vocabulary: Vocabulary) -> None:
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("qwen35")
    writer.add_token_list(list(vocabulary.tokens))
    writer.add_token_types(vocabulary.types)
    writer.add_token_merges(list(vocabulary.merges))
    writer.add_eos_token_id(vocabulary.end_of_text)
    writer.add_bool("tokenizer.ggml.add_bos_token", False)
