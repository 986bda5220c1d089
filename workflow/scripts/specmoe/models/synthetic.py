"""Qwen3.5-shaped models with random weights, nested in each other, for runs without downloads.

A family shares one seed and one width. Its smallest member is the *core*: every larger member
starts with the same layers, and each further layer adds only a small update to the residual stream.
A small member therefore drafts for a large one with a real acceptance rate between 0 and 1: it
comes from the argmax of two networks that nearly agree.

Tensor names, shapes and metadata: llama.cpp, src/models/qwen35.cpp and qwen35moe.cpp.
"""

from collections.abc import Iterator
from dataclasses import replace
from math import prod, sqrt
from pathlib import Path
from typing import BinaryIO, Literal

import gguf
import numpy as np

from specmoe.config.synthetic_recipe import ATTENTION_INTERVAL, Recipe
from specmoe.files import written_whole
from specmoe.models.random_weights import Tensor, stored
from specmoe.models.vocabulary import Vocabulary, byte_level_vocabulary

CONVOLUTION = 4
"""Positions that the causal convolution before a Gated DeltaNet reads."""

ROPE_BASE = 1e7

CHAT_TEMPLATE = (
    "{%- for message in messages -%}{{ message['role'] + ': ' + message['content'] + '\n' }}"
    "{%- endfor -%}"
    "{%- if add_generation_prompt -%}{{ 'assistant:' }}"
    "{%- if enable_thinking is defined and enable_thinking -%}{{ ' thinking:' }}{%- endif -%}"
    "{%- endif -%}"
)
"""A chat as plain words, since the vocabulary has no tokens for roles."""

# Gains of the random projections, relative to unit variance of the input. If updates are too weak,
# the next token depends only on the last one, and greedy decoding may loop (seen at gains up to 0.6
# for some seeds and prompts). If they are too strong, the layers amplify rounding (from 1.5 on, the
# error of Q8_0 flips one drafted token in ten).
_UPDATE_GAIN = 0.8
# Full attention averages over the context, and its sigmoid gate halves the result.
_ATTENTION_GAIN = 2.0
# Sharpens random attention, which would otherwise average over the whole context.
QUERY_GAIN = 1.5
# With a standard deviation of 4 the best token has a probability near one half, as in trained
# models, so that a near tie means the same in nats.
_LOGIT_GAIN = 4.0


def write_model(path: Path, recipe: Recipe) -> None:
    """Write the model to `path` atomically; the same recipe gives the same bytes.

    Raises ModelError if the disk is full or fails.
    """
    plan = list(tensors(recipe))
    with written_whole(path) as part:
        _write_header(part, recipe, plan)
        with part.open("ab") as file:
            _pad(file)
            for tensor in plan:
                for piece in stored(tensor, recipe.seed):
                    file.write(piece.data)
                _pad(file)


def tensors(recipe: Recipe) -> Iterator[Tensor]:
    """Yield every tensor of the model, in file order."""
    hidden, table = recipe.hidden, (recipe.vocabulary, recipe.hidden)
    vocabulary = byte_level_vocabulary(recipe.vocabulary)
    # In a tied table, rows of tokens that a prompt may have cannot be silent.
    embedding = _matrix(recipe, "token_embd", table, gain=sqrt(hidden))
    yield _silenced(embedding, recipe, vocabulary, vocabulary.padding) if recipe.tied else embedding
    for layer in range(recipe.layers):
        yield from _layer(recipe, f"blk.{layer}.", layer)
    if recipe.mtp_blocks:
        yield from _mtp_block(recipe, f"blk.{recipe.layers}.")
    if recipe.tied:
        # With a norm of ones, a random network with a tied head mostly repeats its last token.
        # Random signs make the head independent of the embedding, at the same gain.
        yield _random("output_norm.weight", (hidden,), 0.0, _LOGIT_GAIN / sqrt(hidden))
    else:
        yield _vector("output_norm.weight", hidden, 1.0)
        output = _matrix(recipe, "output", table, gain=_LOGIT_GAIN)
        yield _silenced(output, recipe, vocabulary, vocabulary.unprintable)


def _silenced(
    output: Tensor, recipe: Recipe, vocabulary: Vocabulary, silent: tuple[int, ...]
) -> Tensor:
    """Return an output matrix that never gives some tokens, and the end of a text as asked for."""
    end = vocabulary.end_of_text
    if not recipe.end_gain:
        return replace(output, silent_rows=silent)
    silent = tuple(token for token in silent if token != end)
    return replace(output, silent_rows=silent, scaled_rows=((end, recipe.end_gain),))


def _layer(recipe: Recipe, block: str, layer: int) -> Iterator[Tensor]:
    """Yield the tensors of a block that does what `layer` does."""
    drawn_as, gain = f"blk.{layer}.", _strength(recipe, layer) * _UPDATE_GAIN
    yield _vector(f"{block}attn_norm.weight", recipe.hidden, 1.0)
    if recipe.attention == "full":
        yield from _plain_attention(recipe, block, gain, drawn_as)
        yield _vector(f"{block}ffn_norm.weight", recipe.hidden, 1.0)
        if recipe.experts and layer not in recipe.core:
            yield from _routed_experts(recipe, block, gain, drawn_as)
        else:
            yield from _dense_feed_forward(recipe, block, gain, drawn_as)
        return
    if recipe.has_full_attention(layer):
        yield from _gated_attention(recipe, block, gain, drawn_as)
    else:
        yield from _delta_net(recipe, block, gain)
    yield _vector(f"{block}post_attention_norm.weight", recipe.hidden, 1.0)
    if recipe.experts:
        yield from _shared_expert(recipe, block, gain, drawn_as)
        routed = recipe.routed_epsilon * _UPDATE_GAIN
        yield from _routed_experts(recipe, block, routed, drawn_as)
    else:
        yield from _dense_feed_forward(recipe, block, gain, drawn_as)


def _mtp_block(recipe: Recipe, block: str) -> Iterator[Tensor]:
    """Yield the block that drafts by multi-token prediction.

    It is the core's first layer of full attention once more. A trained block merges the embedding
    of the newest token with the target's hidden state of the one before. This one passes the
    embedding on, which is nearly what that layer reads in the target if the layers before it are
    weak. The hidden state holds nothing about the newest token, so its half of the matrix is zero.
    """
    layer = recipe.first_full_attention
    assert layer is not None  # see `Recipe`
    yield from _layer(recipe, block, layer)
    shape = (recipe.hidden, 2 * recipe.hidden)
    dtype = _type_of_matrix(recipe, f"{block}nextn.eh_proj")
    yield Tensor(f"{block}nextn.eh_proj.weight", shape, 0.0, 0.0, dtype, "", diagonal=1.0)
    yield _vector(f"{block}nextn.enorm.weight", recipe.hidden, 1.0)
    yield _vector(f"{block}nextn.hnorm.weight", recipe.hidden, 1.0)


def _strength(recipe: Recipe, layer: int) -> float:
    """Return the strength of a layer's updates: 1 in the core, after it falling as 1 / layer.

    With equally strong later layers, a draft of medium size would have so few of the target's that
    it would draft no better than the core alone.
    """
    if layer in recipe.core:
        return 1.0
    after_core = recipe.core_first + recipe.core_layers
    return recipe.epsilon if layer < after_core else recipe.epsilon * after_core / layer


def _gated_attention(recipe: Recipe, block: str, gain: float, drawn_as: str) -> Iterator[Tensor]:
    width, kv_width = recipe.heads * recipe.head_size, recipe.kv_heads * recipe.head_size
    # Twice the width: each head has its queries and the gate of its output.
    for name, rows in (("attn_q", 2 * width), ("attn_k", kv_width), ("attn_v", kv_width)):
        shape = (rows, recipe.hidden)
        yield _matrix(recipe, f"{block}{name}", shape, drawn_as=f"{drawn_as}{name}")
    yield _vector(f"{block}attn_q_norm.weight", recipe.head_size, QUERY_GAIN)
    yield _vector(f"{block}attn_k_norm.weight", recipe.head_size, 1.0)
    gain *= _ATTENTION_GAIN
    shape = (recipe.hidden, width)
    yield _matrix(recipe, f"{block}attn_output", shape, gain, f"{drawn_as}attn_output")


def _plain_attention(recipe: Recipe, block: str, gain: float, drawn_as: str) -> Iterator[Tensor]:
    """Yield attention with one matrix for queries, keys and values, without norms and gates."""
    width, kv_width = recipe.heads * recipe.head_size, recipe.kv_heads * recipe.head_size
    # Both queries and keys have this gain, so each has the root of what a norm would give one.
    mixed = sqrt(QUERY_GAIN)
    shape = (width + 2 * kv_width, recipe.hidden)
    yield _matrix(recipe, f"{block}attn_qkv", shape, mixed, f"{drawn_as}attn_qkv")
    # Values have that gain too, and no gate halves the result.
    gain *= _ATTENTION_GAIN / 2 / mixed
    shape = (recipe.hidden, width)
    yield _matrix(recipe, f"{block}attn_output", shape, gain, f"{drawn_as}attn_output")


def _delta_net(recipe: Recipe, block: str, gain: float) -> Iterator[Tensor]:
    heads = recipe.gdn_value_heads
    value_width = heads * recipe.gdn_head_size
    mixed = value_width + 2 * recipe.gdn_key_heads * recipe.gdn_head_size
    yield _matrix(recipe, f"{block}attn_qkv", (mixed, recipe.hidden))
    yield _matrix(recipe, f"{block}attn_gate", (value_width, recipe.hidden))
    yield _random(f"{block}ssm_conv1d.weight", (mixed, CONVOLUTION), 0.0, 1 / sqrt(CONVOLUTION))
    # A head forgets at rate softplus(alpha + dt) per token: here within a few to a hundred tokens.
    yield _random(f"{block}ssm_dt.bias", (heads,), -3.0, 1.0)
    yield _vector(f"{block}ssm_a", heads, -1.0)
    yield _matrix(recipe, f"{block}ssm_beta", (heads, recipe.hidden))
    yield _matrix(recipe, f"{block}ssm_alpha", (heads, recipe.hidden), gain=0.25)
    yield _vector(f"{block}ssm_norm.weight", recipe.gdn_head_size, 1.0)
    yield _matrix(recipe, f"{block}ssm_out", (recipe.hidden, value_width), gain=gain)


def _dense_feed_forward(recipe: Recipe, block: str, gain: float, drawn_as: str) -> Iterator[Tensor]:
    for name, rows, columns, strength in _feed_forward_shapes(recipe.ffn, recipe.hidden, gain):
        yield _matrix(recipe, f"{block}{name}", (rows, columns), strength, f"{drawn_as}{name}")


def _shared_expert(recipe: Recipe, block: str, gain: float, drawn_as: str) -> Iterator[Tensor]:
    # The shared expert has the weights of the dense FFN. llama.cpp multiplies it by the sigmoid of
    # its gate; a gate of zeros gives one half for every token, and the doubled matrix undoes that.
    yield _vector(f"{block}ffn_gate_inp_shexp.weight", recipe.hidden, 0.0)
    for name, rows, columns, strength in _feed_forward_shapes(recipe.ffn, recipe.hidden, 2 * gain):
        shared = f"{block}{name}_shexp"
        yield _matrix(recipe, shared, (rows, columns), strength, f"{drawn_as}{name}")


def _routed_experts(recipe: Recipe, block: str, gain: float, drawn_as: str) -> Iterator[Tensor]:
    hidden, experts, inner = recipe.hidden, recipe.experts, recipe.expert_ffn
    router, deviation = "ffn_gate_inp.weight", 1 / sqrt(hidden)
    shape = (experts, hidden)
    yield Tensor(f"{block}{router}", shape, 0.0, deviation, "F32", f"{drawn_as}{router}")
    for name, rows, columns, strength in _feed_forward_shapes(inner, hidden, gain):
        routed, drawn = f"{block}{name}_exps", f"{drawn_as}{name}_exps"
        yield _matrix(recipe, routed, (experts, rows, columns), strength, drawn)


def _feed_forward_shapes(
    inner: int, hidden: int, gain: float
) -> tuple[tuple[str, int, int, float], ...]:
    """Return the name, the rows, the columns and the gain of a feed-forward's matrices."""
    return (
        ("ffn_gate", inner, hidden, 1.0),
        ("ffn_up", inner, hidden, 1.0),
        ("ffn_down", hidden, inner, gain),
    )


def _matrix(
    recipe: Recipe,
    name: str,
    shape: tuple[int, ...],
    gain: float = 1.0,
    drawn_as: str = "",
) -> Tensor:
    """Return a projection whose outputs have `gain` times the deviation of its inputs."""
    deviation = gain / sqrt(shape[-1])
    dtype = _type_of_matrix(recipe, name)
    return Tensor(f"{name}.weight", shape, 0.0, deviation, dtype, drawn_as or name)


def _type_of_matrix(recipe: Recipe, name: str) -> Literal["F16", "BF16", "Q8_0", "Q4_K"]:
    """Return the recipe's type; with Q4_K, small matrices have Q8_0."""
    if recipe.dtype == "Q4_K" and not (name in ("token_embd", "output") or name.endswith("_exps")):
        return "Q8_0"
    return recipe.dtype


def _random(name: str, shape: tuple[int, ...], mean: float, deviation: float) -> Tensor:
    return Tensor(name, shape, mean, deviation, "F32", name)


def _vector(name: str, size: int, value: float) -> Tensor:
    return Tensor(name, (size,), value, 0.0, "F32", name)


def _write_header(path: Path, recipe: Recipe, plan: list[Tensor]) -> None:
    """Write everything before the weights."""
    writer = gguf.GGUFWriter(path, recipe.architecture)
    _add_metadata(writer, recipe)
    add_vocabulary(writer, byte_level_vocabulary(recipe.vocabulary))
    if recipe.chat_template:
        writer.add_chat_template(CHAT_TEMPLATE)
    for tensor in plan:
        kind = gguf.GGMLQuantizationType[tensor.dtype]
        per_block, block_bytes = gguf.GGML_QUANT_SIZES[kind]
        size = prod(tensor.shape) // per_block * block_bytes
        # The writer requires a numpy type too, and ignores it because the GGUF type is given.
        writer.add_tensor_info(tensor.name, tensor.shape, np.dtype(np.uint16), size, kind)
    try:
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_ti_data_to_file()
    finally:
        writer.close()


def _pad(file: BinaryIO) -> None:
    file.write(bytes(-file.tell() % gguf.GGUF_DEFAULT_ALIGNMENT))


def add_shape(writer: gguf.GGUFWriter, recipe: Recipe, heads: int, kv_heads: int) -> None:
    """Write the widths and the rotation of a recipe's layers, with so many attention heads."""
    writer.add_context_length(recipe.context_length)
    writer.add_embedding_length(recipe.hidden)
    writer.add_feed_forward_length(recipe.ffn)
    writer.add_head_count(heads)
    writer.add_head_count_kv(kv_heads)
    writer.add_key_length(recipe.head_size)
    writer.add_value_length(recipe.head_size)
    writer.add_layer_norm_rms_eps(1e-6)
    writer.add_rope_freq_base(ROPE_BASE)
    writer.add_rope_dimension_count(rotated_elements(recipe))


def _add_metadata(writer: gguf.GGUFWriter, recipe: Recipe) -> None:
    writer.add_block_count(recipe.layers + recipe.mtp_blocks)
    add_shape(writer, recipe, recipe.heads, recipe.kv_heads)
    if recipe.attention == "full":
        # The engine demands layers that read a window only. This window holds the whole context.
        writer.add_rope_freq_base_swa(ROPE_BASE)
        writer.add_sliding_window(recipe.context_length)
        writer.add_sliding_window_pattern([True] * (recipe.layers + recipe.mtp_blocks))
    else:
        _add_hybrid_metadata(writer, recipe)
    if recipe.mtp_blocks:
        writer.add_nextn_predict_layers(recipe.mtp_blocks)
    # S: all routed experts have the same number of bits.
    file_type = "Q4_K_S" if recipe.dtype == "Q4_K" else recipe.dtype
    writer.add_file_type(int(gguf.LlamaFileType[f"MOSTLY_{file_type}"]))
    if recipe.experts:
        writer.add_expert_count(recipe.experts)
        writer.add_expert_used_count(recipe.experts_used)
    if recipe.experts or recipe.attention == "full":  # the engine demands it for a dense one too
        writer.add_expert_feed_forward_length(recipe.expert_ffn)
    if recipe.experts and recipe.attention == "hybrid":
        writer.add_expert_shared_feed_forward_length(recipe.ffn)


def rotated_elements(recipe: Recipe) -> int:
    """Return how many elements of an attention head depend on the position: a quarter of them."""
    return 2 * (recipe.head_size // 8)


def _add_hybrid_metadata(writer: gguf.GGUFWriter, recipe: Recipe) -> None:
    # Qwen rotates three interleaved sections, of which text uses one.
    pairs = rotated_elements(recipe) // 2
    writer.add_rope_dimension_sections([pairs - 2 * (pairs // 3), pairs // 3, pairs // 3, 0])
    writer.add_ssm_conv_kernel(CONVOLUTION)
    writer.add_ssm_inner_size(recipe.gdn_value_heads * recipe.gdn_head_size)
    writer.add_ssm_state_size(recipe.gdn_head_size)
    writer.add_ssm_time_step_rank(recipe.gdn_value_heads)
    writer.add_ssm_group_count(recipe.gdn_key_heads)
    writer.add_full_attention_interval(ATTENTION_INTERVAL)


def add_vocabulary(writer: gguf.GGUFWriter, vocabulary: Vocabulary) -> None:
    """Write the metadata that llama.cpp needs to tokenize."""
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("qwen35")
    writer.add_token_list(list(vocabulary.tokens))
    writer.add_token_types(vocabulary.types)
    writer.add_token_merges(list(vocabulary.merges))
    writer.add_eos_token_id(vocabulary.end_of_text)
    writer.add_bool("tokenizer.ggml.add_bos_token", False)
