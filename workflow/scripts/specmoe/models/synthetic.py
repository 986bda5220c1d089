"""Qwen3.5-shaped models with random weights, nested in each other, for runs without downloads.

The smallest member of a family is the *core*. Larger ones start with the same layers, and each
further layer adds a small update to the residual stream. So the core drafts for them with an
acceptance rate between 0 and 1: two networks nearly agree. The vocabulary is a byte-level BPE.

Tensor names, shapes and metadata: llama.cpp, src/models/qwen35.cpp and qwen35moe.cpp.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from math import sqrt
from pathlib import Path

import gguf

from specmoe.config.base import resource
from specmoe.config.models import ATTENTION_INTERVAL, Recipe
from specmoe.errors import ModelError
from specmoe.models.gguf_file import write_gguf
from specmoe.models.random_weights import Tensor, stored

CONVOLUTION = 4
"""Positions that the causal convolution before a Gated DeltaNet reads."""

ROPE_BASE = 1e7

# Gains of the random projections, relative to unit variance of the input. If updates are too weak,
# the next token depends only on the last one, and greedy decoding may loop (seen at gains up to 0.6
# for some seeds and prompts). If they are too strong, the layers amplify rounding (from 1.5 on, the
# error of Q8_0 flips one drafted token in ten).
_UPDATE_GAIN = 0.8
ROUTED_EPSILON = 0.1  # strength of the routed experts, relative to the core, in every layer
CONTEXT_LENGTH = 4096  # tokens
END_GAIN = 1.5  # of the token that ends a text, relative to the others: it comes after dozens
# Full attention averages over the context, and its sigmoid gate halves the result.
_ATTENTION_GAIN = 2.0
# Sharpens random attention, which would otherwise average over the whole context.
QUERY_GAIN = 1.5
# With a standard deviation of 4 the best token has a probability near one half, as in trained
# models, so that a near tie means the same in nats.
_LOGIT_GAIN = 4.0


def byte_level_vocabulary(size: int) -> tuple[list[str], list[gguf.TokenType], list[str], int]:
    """Return a byte-level BPE of `size` tokens, as GGUF stores it; unused tokens pad its end.

    It encodes any byte. Returned are its tokens, their types, its merges, and the id of the token
    that ends a text.
    """
    # GPT-2's printable symbol for each byte, in the order of its vocabulary.
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    tokens = list(map(chr, [*printable, *range(256, 512 - len(printable))]))
    merges = []
    for fragment in resource("synthetic")["fragments"].split():
        for end in range(2, len(fragment) + 1):
            if fragment[:end] not in tokens:
                tokens.append(fragment[:end])
                merges.append(f"{fragment[: end - 1]} {fragment[end - 1]}")
    kinds, end_of_text = gguf.TokenType, len(tokens)
    padding = size - end_of_text - 1
    if padding < 0:
        raise ModelError(f"synthetic model: vocabulary must be at least {end_of_text + 1}")
    tokens += ["<|endoftext|>", *(f"<|unused_{i}|>" for i in range(padding))]
    types = [kinds.NORMAL] * end_of_text + [kinds.CONTROL] + [kinds.UNUSED] * padding
    return tokens, types, merges, end_of_text


def write_model(path: Path, recipe: Recipe) -> None:
    """Write the model to `path` atomically; the same recipe gives the same bytes."""
    writer = gguf.GGUFWriter(None, recipe.architecture)
    _add_metadata(writer, recipe)
    weights = {tensor.info: stored(tensor, recipe.seed) for tensor in tensors(recipe)}
    write_gguf(path, writer, weights)


def tensors(recipe: Recipe) -> Iterator[Tensor]:
    """Yield every tensor of the model, in file order."""
    hidden, table = recipe.hidden, (recipe.vocabulary, recipe.hidden)
    embedding = _matrix(recipe, "token_embd", table, gain=sqrt(hidden))
    yield _silenced(embedding, recipe) if recipe.tied else embedding
    for layer in range(recipe.layers):
        yield from _block(layer, layer, _layer(recipe, layer))
    if recipe.mtp_blocks:
        repeated = recipe.first_full_attention
        assert repeated is not None  # see `Recipe`
        yield from _block(recipe.layers, repeated, _mtp_block(recipe, repeated))
    if recipe.tied:
        # With a norm of ones, a random network with a tied head mostly repeats its last token.
        # Random signs make the head independent of the embedding, at the same gain.
        yield _f32("output_norm.weight", hidden, mean=0.0, deviation=_LOGIT_GAIN / sqrt(hidden))
    else:
        yield _f32("output_norm.weight", hidden)
        yield _silenced(_matrix(recipe, "output", table, gain=_LOGIT_GAIN), recipe)


def _silenced(output: Tensor, recipe: Recipe) -> Tensor:
    """Return an output matrix that never gives some tokens, and the end of a text as asked for."""
    tokens, *_, end = byte_level_vocabulary(recipe.vocabulary)
    # No text is encoded with the end of a text and all that follow it.
    silent = [*range(end + recipe.chat, recipe.vocabulary)]
    if not recipe.tied:  # in a tied table these are rows that a prompt may have
        # No model should generate parts of UTF-8 characters.
        writable = {chr(code) for code in range(0x21, 0x7F)} | {"Ġ", "Ċ"}
        silent += [i for i in range(end) if not writable.issuperset(tokens[i])]
    scaled = ((end, END_GAIN),) if recipe.chat else ()
    return replace(output, silent_rows=tuple(silent), scaled_rows=scaled)


def _block(number: int, layer: int, tensors: Iterable[Tensor]) -> Iterator[Tensor]:
    """Put the tensors of a layer into a block of the file, which need not be the layer's own."""
    for tensor in tensors:
        drawn_as = f"blk.{layer}.{tensor.drawn_as}"
        yield replace(tensor, name=f"blk.{number}.{tensor.name}", drawn_as=drawn_as)


def _mtp_block(recipe: Recipe, layer: int) -> Iterator[Tensor]:
    """Yield the MTP layer, which is the core's first layer of full attention once more.

    A trained one merges the embedding of the newest token with the target's hidden state of the one
    before. This one passes the embedding on, which is nearly what that layer reads in the target if
    the layers before it are weak.
    """
    yield from _layer(recipe, layer)
    merge = _matrix(recipe, "nextn.eh_proj", (recipe.hidden, 2 * recipe.hidden))
    yield replace(merge, deviation=0.0, diagonal=1.0)
    yield _f32("nextn.enorm.weight", recipe.hidden)
    yield _f32("nextn.hnorm.weight", recipe.hidden)


def _layer(recipe: Recipe, layer: int) -> Iterator[Tensor]:
    hidden, experts, full = recipe.hidden, recipe.experts, recipe.attention == "full"
    gain = _strength(recipe, layer) * _UPDATE_GAIN
    yield _f32("attn_norm.weight", hidden)
    mix = _attention if recipe.has_full_attention(layer) else _delta_net
    yield from mix(recipe, gain)
    yield _f32("ffn_norm.weight" if full else "post_attention_norm.weight", hidden)
    if not experts or (full and layer in recipe.core_layers):
        yield from _feed_forward(recipe, "", gain)
        return
    if not full:
        # The shared expert has the weights of the dense FFN. llama.cpp multiplies it by the sigmoid
        # of its gate; a gate of zeros gives one half for every token, and the doubled matrix undoes
        # that.
        yield _f32("ffn_gate_inp_shexp.weight", hidden, mean=0.0)
        yield from _feed_forward(recipe, "_shexp", 2 * gain)
        gain = ROUTED_EPSILON * _UPDATE_GAIN
    yield _f32("ffn_gate_inp.weight", experts, hidden, mean=0.0, deviation=1 / sqrt(hidden))
    yield from _feed_forward(recipe, "_exps", gain)


def _strength(recipe: Recipe, layer: int) -> float:
    """Return the strength of a layer's updates: 1 in the core, after it falling as 1 / layer.

    With equally strong later layers, a draft model of medium size would draft no better than the
    core.
    """
    if layer in recipe.core_layers:
        return 1.0
    after_core = recipe.core_layers.stop
    return recipe.epsilon if layer < after_core else recipe.epsilon * after_core / layer


def _attention(recipe: Recipe, gain: float) -> Iterator[Tensor]:
    width, kv_width = recipe.heads * recipe.head_size, recipe.kv_heads * recipe.head_size
    if recipe.attention == "full":  # one matrix for all three, without norms and gates
        # Both queries and keys have this gain, so each has the root of what a norm would give one.
        mixed = sqrt(QUERY_GAIN)
        yield _matrix(recipe, "attn_qkv", (width + 2 * kv_width, recipe.hidden), mixed)
        # Values have that gain too, and no gate halves the result.
        gain *= 0.5 / mixed
    else:
        # Twice the width: each head has its queries and the gate of its output.
        for name, rows in (("attn_q", 2 * width), ("attn_k", kv_width), ("attn_v", kv_width)):
            yield _matrix(recipe, name, (rows, recipe.hidden))
        yield _f32("attn_q_norm.weight", recipe.head_size, mean=QUERY_GAIN)
        yield _f32("attn_k_norm.weight", recipe.head_size)
    yield _matrix(recipe, "attn_output", (recipe.hidden, width), gain * _ATTENTION_GAIN)


def _delta_net(recipe: Recipe, gain: float) -> Iterator[Tensor]:
    hidden, heads = recipe.hidden, recipe.gdn_value_heads
    value_width = heads * recipe.gdn_head_size
    mixed = value_width + 2 * recipe.gdn_key_heads * recipe.gdn_head_size
    yield _matrix(recipe, "attn_qkv", (mixed, hidden))
    yield _matrix(recipe, "attn_gate", (value_width, hidden))
    yield _f32("ssm_conv1d.weight", mixed, CONVOLUTION, mean=0.0, deviation=1 / sqrt(CONVOLUTION))
    # A head forgets at rate softplus(alpha + dt) per token: within a few to a hundred tokens.
    yield _f32("ssm_dt.bias", heads, mean=-3.0, deviation=1.0)
    yield _f32("ssm_a", heads, mean=-1.0)
    yield _matrix(recipe, "ssm_beta", (heads, hidden))
    yield _matrix(recipe, "ssm_alpha", (heads, hidden), 0.25)
    yield _f32("ssm_norm.weight", recipe.gdn_head_size)
    yield _matrix(recipe, "ssm_out", (hidden, value_width), gain)


def _feed_forward(recipe: Recipe, kind: str, gain: float) -> Iterator[Tensor]:
    routed = kind == "_exps"
    experts, inner = (recipe.experts,) * routed, recipe.expert_ffn if routed else recipe.ffn
    wide, narrow = (*experts, inner, recipe.hidden), (*experts, recipe.hidden, inner)
    for name, shape, strength in [("gate", wide, 1.0), ("up", wide, 1.0), ("down", narrow, gain)]:
        yield _matrix(recipe, f"ffn_{name}{kind}", shape, strength)


def _matrix(recipe: Recipe, name: str, shape: tuple[int, ...], gain: float = 1.0) -> Tensor:
    """Return a projection whose outputs have `gain` times the deviation of its inputs.

    It has the recipe's type; with Q4_K, small matrices have Q8_0.
    """
    large = name in ("token_embd", "output") or name.endswith("_exps")
    dtype = "Q8_0" if recipe.dtype == "Q4_K" and not large else recipe.dtype
    drawn_as = name.removesuffix("_shexp")  # a shared expert has the weights of a dense FFN
    return Tensor(f"{name}.weight", shape, 0.0, gain / sqrt(shape[-1]), dtype, drawn_as)


def _f32(name: str, *shape: int, mean: float = 1.0, deviation: float = 0.0) -> Tensor:
    return Tensor(name, shape, mean, deviation, "F32", name)


def add_shape(writer: gguf.GGUFWriter, recipe: Recipe, heads: int, kv_heads: int) -> None:
    """Write the widths and the rotation of a recipe's layers, with so many attention heads."""
    writer.add_context_length(CONTEXT_LENGTH)
    writer.add_embedding_length(recipe.hidden)
    writer.add_feed_forward_length(recipe.ffn)
    writer.add_head_count(heads)
    writer.add_head_count_kv(kv_heads)
    writer.add_key_length(recipe.head_size)
    writer.add_value_length(recipe.head_size)
    writer.add_layer_norm_rms_eps(1e-6)
    writer.add_rope_freq_base(ROPE_BASE)
    writer.add_rope_dimension_count(recipe.rotated_elements)


def _add_metadata(writer: gguf.GGUFWriter, recipe: Recipe) -> None:
    writer.add_block_count(recipe.layers + recipe.mtp_blocks)
    add_shape(writer, recipe, recipe.heads, recipe.kv_heads)
    if recipe.attention == "full":
        # The engine demands layers that read a window only. This window holds the whole context.
        writer.add_rope_freq_base_swa(ROPE_BASE)
        writer.add_sliding_window(CONTEXT_LENGTH)
        writer.add_sliding_window_pattern([True] * (recipe.layers + recipe.mtp_blocks))
    else:
        # Qwen rotates three interleaved sections, of which text uses one.
        pairs = recipe.rotated_elements // 2
        writer.add_rope_dimension_sections([pairs - 2 * (pairs // 3), pairs // 3, pairs // 3, 0])
        writer.add_ssm_conv_kernel(CONVOLUTION)
        writer.add_ssm_inner_size(recipe.gdn_value_heads * recipe.gdn_head_size)
        writer.add_ssm_state_size(recipe.gdn_head_size)
        writer.add_ssm_time_step_rank(recipe.gdn_value_heads)
        writer.add_ssm_group_count(recipe.gdn_key_heads)
        writer.add_full_attention_interval(ATTENTION_INTERVAL)
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
    add_vocabulary(writer, recipe.vocabulary)
    if recipe.chat:
        writer.add_chat_template(resource("synthetic")["chat_template"])


def add_vocabulary(writer: gguf.GGUFWriter, size: int) -> None:
    """Write the metadata that llama.cpp needs to tokenize, by so many tokens."""
    tokens, types, merges, end_of_text = byte_level_vocabulary(size)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("qwen35")
    writer.add_token_list(tokens)
    writer.add_token_types(types)
    writer.add_token_merges(merges)
    writer.add_eos_token_id(end_of_text)
    writer.add_bool("tokenizer.ggml.add_bos_token", False)
