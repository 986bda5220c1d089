"""A small model with full attention only: a target that can undo part of a pass.

The models that specmoe writes are hybrids like Qwen3.5. This one is a Llama with random weights and
their vocabulary. Of two with one seed, the one with fewer layers drafts for the other.
"""

from math import sqrt
from pathlib import Path

import gguf
import numpy as np

from specmoe.models.synthetic import add_vocabulary
from specmoe.models.vocabulary import byte_level_vocabulary

from .splitting import finish

HIDDEN, FFN, HEADS = 128, 256, 4
CORE_LAYERS = 2
LATER_STRENGTH = 0.35  # of layers after the core, relative to it


def write_attention_only(path: Path, layers: int, seed: int = 5) -> None:
    """Write a model with `layers` layers."""
    vocabulary = byte_level_vocabulary(384)
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_block_count(layers)
    writer.add_context_length(4096)
    writer.add_embedding_length(HIDDEN)
    writer.add_feed_forward_length(FFN)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(HEADS)
    writer.add_layer_norm_rms_eps(1e-6)
    writer.add_rope_dimension_count(HIDDEN // HEADS)
    writer.add_vocab_size(len(vocabulary.tokens))
    add_vocabulary(writer, vocabulary)
    random = np.random.default_rng(seed)

    def matrix(name: str, rows: int, columns: int, gain: float) -> None:
        weights = random.normal(0, gain / sqrt(columns), (rows, columns))
        if name == "output":
            weights[list(vocabulary.unprintable)] = 0
        writer.add_tensor(f"{name}.weight", weights.astype(np.float32))

    def ones(name: str) -> None:
        writer.add_tensor(f"{name}.weight", np.ones(HIDDEN, dtype=np.float32))

    # The embedding and the head come first, so that they do not depend on the number of layers.
    matrix("token_embd", len(vocabulary.tokens), HIDDEN, sqrt(HIDDEN))
    matrix("output", len(vocabulary.tokens), HIDDEN, 4.0)
    ones("output_norm")
    for layer in range(layers):
        strength = 0.8 if layer < CORE_LAYERS else 0.8 * LATER_STRENGTH
        block = f"blk.{layer}."
        ones(f"{block}attn_norm")
        for name in ("attn_q", "attn_k", "attn_v"):
            matrix(f"{block}{name}", HIDDEN, HIDDEN, 1.0)
        matrix(f"{block}attn_output", HIDDEN, HIDDEN, 2 * strength)
        ones(f"{block}ffn_norm")
        matrix(f"{block}ffn_gate", FFN, HIDDEN, 1.0)
        matrix(f"{block}ffn_up", FFN, HIDDEN, 1.0)
        matrix(f"{block}ffn_down", HIDDEN, FFN, strength)
    finish(writer)
