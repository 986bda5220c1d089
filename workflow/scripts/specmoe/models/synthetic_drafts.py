"""Draft models that read the hidden states of a synthetic target: EAGLE-3, DFlash and DSpark.

Random ones would be accepted by chance. So these are constructed from the target's recipe: each
does what the first layer of full attention in the target's core does, without the gate of its
attention. They are accepted as often as that layer decides the next token.

Tensor names, shapes and metadata: llama.cpp, src/models/eagle3.cpp and dflash.cpp. Matrices have
one row an output, as in numpy; H is the size of the residual stream.
"""

from collections.abc import Iterator
from math import sqrt
from pathlib import Path
from typing import Any, Final

import gguf
import numpy as np
import numpy.typing as npt
from gguf.quants import quantize

from specmoe.config.models import DraftMethod, Recipe
from specmoe.models.gguf_file import TensorInfo, write_gguf
from specmoe.models.random_weights import draw_weights
from specmoe.models.synthetic import QUERY_GAIN, add_shape, add_vocabulary, tensors

Matrix = npt.NDArray[np.float32]
Draft = tuple[dict[str, Matrix], dict[str, int | bool | list[int]]]
"""The weights of a draft model, by the name of a tensor without `.weight`, and its own metadata."""

# A head that copies its own position has queries and keys of this gain. With 64 elements its score
# is 32 there and at most about 12 for another token, so nearly all of its weight is there.
_SHARP: Final = 2.0
# Coordinates of an embedding that tell DFlash's positions apart; all others have a deviation of 1.
_ANCHOR, _READS, _MARK = 0, 1, 8.0
# One coordinate of DSpark's mask that outweighs all others, so that a norm silences them.
_SILENCE: Final = 100.0


class _Core:
    """The layer of the target that draft models repeat, with what is around the target's layers.

    The average gate of the attention is in its output matrix.
    """

    def __init__(self, recipe: Recipe) -> None:
        layer = recipe.first_full_attention
        assert layer is not None  # see `config.load`
        self.recipe, self.layer = recipe, layer
        self._plan = {tensor.name.removesuffix(".weight"): tensor for tensor in tensors(recipe)}
        self.norm = self._drawn("output_norm")  # (H,), before the target's head
        size, block = recipe.head_size, f"blk.{layer}."
        width, kv_width = recipe.heads * size, recipe.kv_heads * size
        self.attention = self._drawn(f"{block}attn_output")  # (H, width)
        if recipe.attention == "full":
            mixed = self._drawn(f"{block}attn_qkv")
            self.queries, self.keys, self.values = np.split(mixed, [width, width + kv_width])
        else:
            # Each head has its queries, then the gate of its output, which is one half on average.
            queries = self._drawn(f"{block}attn_q").reshape(recipe.heads, 2, size, -1)[:, 0]
            self.queries = queries.reshape(width, -1) * np.float32(QUERY_GAIN)  # (width, H)
            self.keys = self._drawn(f"{block}attn_k")  # (kv_width, H), as the values
            self.values = self._drawn(f"{block}attn_v")
            self.attention /= 2
        shared = "_shexp" if f"{block}ffn_up_shexp" in self._plan else ""
        names = ("ffn_gate", "ffn_up", "ffn_down")
        self.feed_forward = {name: self._drawn(f"{block}{name}{shared}") for name in names}
        if shared:  # halved by its gate, see `synthetic`
            self.feed_forward["ffn_down"] /= 2

    def _drawn(self, name: str) -> Matrix:
        return draw_weights(self._plan[name], self.recipe.seed)

    def tables(self) -> tuple[Matrix, Matrix]:
        """Return the target's embedding and head, (vocabulary, H); EAGLE-3 shares the target's."""
        embedding = self._drawn("token_embd")
        return embedding, embedding if self.recipe.tied else self._drawn("output")


def write_draft(path: Path, target: Recipe, method: DraftMethod) -> None:
    """Write the draft model for a synthetic target atomically, matrices in F16."""
    construct = {"eagle3": _eagle3, "dflash": _dflash, "dspark": _dspark}[method]
    weights, metadata = construct(_Core(target))
    writer = gguf.GGUFWriter(None, "eagle3" if method == "eagle3" else "dflash")
    writer.add_block_count(2 if method == "dflash" else 1)
    heads = [len(weights[f"blk.0.attn_{name}"]) // target.head_size for name in ("q", "k")]
    add_shape(writer, target, *heads)
    writer.add_file_type(int(gguf.LlamaFileType.MOSTLY_F16))
    add_vocabulary(writer, target.vocabulary)
    add: dict[type, Any] = {bool: writer.add_bool, int: writer.add_uint32, list: writer.add_array}
    for key, value in metadata.items():
        add[type(value)](key, value)
    write_gguf(path, writer, dict(map(_encoded, weights, weights.values())))


def _encoded(name: str, weights: Matrix) -> tuple[TensorInfo, Iterator[npt.NDArray[Any]]]:
    kind = gguf.GGMLQuantizationType.F16 if weights.ndim > 1 else gguf.GGMLQuantizationType.F32
    info = TensorInfo(f"{name}.weight", weights.shape[::-1], kind)
    return info, (np.ascontiguousarray(quantize(matrix, kind)) for matrix in [weights])


def _eagle3(core: _Core) -> Draft:
    """Return a draft model whose attention copies the newest token and repeats the core's heads.

    EAGLE-3 adds attention over [embedding; features] to a residual stream that starts with the
    features. Here they have no weight: heads of their own put slices of the embedding there
    instead.
    """
    recipe, hidden, size = core.recipe, core.recipe.hidden, core.recipe.head_size
    identity = np.eye(hidden, dtype=np.float32)
    copying = np.tile(_SHARP * identity[:size], (hidden // size, 1))
    # The engine rotates neighbours here, and halves of a head in the target.
    queries = _neighbours_rotated(core.queries, recipe)
    keys = _neighbours_rotated(_for_each_head(core.keys, recipe), recipe)
    values = _for_each_head(core.values, recipe)
    weights = {
        "fc": np.hstack([np.zeros((hidden, 2 * hidden), np.float32), identity]),
        "output_norm": core.norm,
        "blk.0.attn_norm": np.ones(hidden, np.float32),
        "blk.0.attn_norm_2": np.zeros(hidden, np.float32),
        # They read the embedding of [embedding; features].
        "blk.0.attn_q": _padded(np.vstack([copying, queries]), columns=2 * hidden),
        "blk.0.attn_k": _padded(np.vstack([copying, keys]), columns=2 * hidden),
        "blk.0.attn_v": _padded(np.vstack([identity, values]), columns=2 * hidden),
        "blk.0.attn_output": np.hstack([identity, core.attention]),
        "blk.0.ffn_norm": np.ones(hidden, np.float32),
        **_of_block(0, core.feed_forward),
    }
    return weights, {
        # The inputs of the core's layer and of the next one, and the last hidden state.
        "eagle3.target_layers": [core.layer, core.layer + 1, recipe.layers],
        "eagle3.target_hidden_size": hidden,
        "eagle3.norm_before_residual": True,
    }


def _dspark(core: _Core) -> Draft:
    """Return a draft model that repeats the core for the newest token, then follows a bigram model.

    The block's first position needs no more than the core's layer over the target's hidden states.
    The others have masks with silent logits: the Markov head adds the core's guess from the token
    before.
    """
    recipe, (own_embedding, head) = core.recipe, core.tables()
    mask, ones = recipe.vocabulary - 1, np.ones(recipe.hidden, np.float32)
    embedding = own_embedding.copy()
    embedding[mask] = 0
    embedding[mask, 0] = _SILENCE
    # Twice as strong as the Markov head, which sees no context.
    norm = 2 * core.norm
    norm[0] = 0
    weights = {
        "token_embd": embedding,
        "output": head,
        "output_norm": norm,
        "enc.output_norm": ones,
        "fc": np.eye(recipe.hidden, dtype=np.float32),
        "markov_w1": _without_context(core, own_embedding),
        "markov_w2": head * core.norm,
        **_dflash_layer(0, core, ones),
        "blk.0.attn_q": core.queries,
        "blk.0.attn_k": core.keys,
        "blk.0.attn_v": core.values,
        "blk.0.attn_output": core.attention,
    }
    flags = {"dflash.sample_from_anchor": True, "dflash.has_confidence_head": False}
    return weights, _dflash_metadata(core) | flags


def _dflash(core: _Core) -> Draft:
    """Return a draft model whose first layer copies the newest token to all masks of its block.

    The second layer repeats the core. So all positions draft the newest token's successor: right
    for the first position, by chance for the others.
    """
    recipe, (own_embedding, head) = core.recipe, core.tables()
    hidden, size, mask = recipe.hidden, recipe.head_size, recipe.vocabulary - 1
    heads = max(hidden // size, recipe.heads)
    width = heads * size
    embedding = own_embedding.copy()
    embedding[mask] = 0
    embedding[:, _READS] = _MARK
    embedding[:, _ANCHOR] = np.where(np.arange(len(embedding)) == mask, 0, _MARK)
    unflagged = np.ones(hidden, np.float32)
    unflagged[[_ANCHOR, _READS]] = 0
    # A norm divides by this because of the marks: of both in the newest token, of one in a mask.
    both, single = (sqrt(1 + marks * _MARK**2 / hidden) for marks in (2, 1))
    query, key = np.zeros((2, heads, size, hidden), np.float32)
    # The last element of a head is not rotated: what is copied does not depend on the distance.
    query[:, -1, _READS] = key[:, -1, _ANCHOR] = 1
    silent = {name: np.zeros_like(matrix) for name, matrix in core.feed_forward.items()}
    norm = np.float32(single) * unflagged
    weights = {
        "token_embd": embedding,
        "output": head,
        "output_norm": norm * core.norm,
        "enc.output_norm": unflagged,
        "fc": np.eye(recipe.hidden, dtype=np.float32),
        **_dflash_layer(0, core, np.ones(hidden, np.float32)),
        "blk.0.attn_q": query.reshape(width, hidden),
        "blk.0.attn_k": key.reshape(width, hidden),
        "blk.0.attn_v": np.eye(width, hidden, dtype=np.float32) * unflagged,
        "blk.0.attn_output": np.float32(both) * np.eye(hidden, width, dtype=np.float32),
        **_of_block(0, silent),
        **_dflash_layer(1, core, norm),
        "blk.1.attn_q": _padded(core.queries, width),
        "blk.1.attn_k": _padded(_for_each_head(core.keys, recipe), width),
        "blk.1.attn_v": _padded(_for_each_head(core.values, recipe), width),
        "blk.1.attn_output": _padded(core.attention, columns=width),
    }
    return weights, _dflash_metadata(core)


def _dflash_layer(block: int, core: _Core, norm: Matrix) -> dict[str, Matrix]:
    """Return a layer of DFlash without the matrices of its attention."""
    norms = {
        "attn_norm": norm,
        "attn_q_norm": np.full(core.recipe.head_size, QUERY_GAIN, np.float32),
        "attn_k_norm": np.ones(core.recipe.head_size, np.float32),
        "ffn_norm": norm,
    }
    return _of_block(block, norms | core.feed_forward)


def _dflash_metadata(core: _Core) -> dict[str, int | bool | list[int]]:
    return {
        "dflash.target_layers": [core.layer],
        "dflash.block_size": 16,  # the longest block that it drafts
        "tokenizer.ggml.mask_token_id": core.recipe.vocabulary - 1,
    }


def _without_context(core: _Core, embedding: Matrix) -> Matrix:
    """Return the core's normed hidden state after each token without attention, (vocabulary, H).

    In double precision: the digits that differ between machines do not reach the file.
    """
    before = embedding.astype(np.float64)
    gate, up, down = (matrix.astype(np.float64) for matrix in core.feed_forward.values())
    normed = _normed(before)
    opened = normed @ gate.T
    hidden = before + (opened / (1 + np.exp(-opened)) * (normed @ up.T)) @ down.T
    return _normed(hidden).astype(np.float32)


def _normed(rows: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    normed: npt.NDArray[np.float64] = rows / np.sqrt((rows**2).mean(-1, keepdims=True) + 1e-6)
    return normed


def _neighbours_rotated(matrix: Matrix, recipe: Recipe) -> Matrix:
    """Return queries or keys for an engine that rotates elements 2i and 2i + 1 of a head.

    In the target these are the elements i and i + half of those that are rotated.
    """
    order, rotated = np.arange(recipe.head_size), recipe.rotated_elements
    order[:rotated] = order[:rotated].reshape(2, -1).T.ravel()
    heads = matrix.reshape(-1, recipe.head_size, matrix.shape[-1])
    return heads[:, order].reshape(matrix.shape)


def _for_each_head(matrix: Matrix, recipe: Recipe) -> Matrix:
    """Return keys or values with one head for each head of the queries."""
    heads = matrix.reshape(recipe.kv_heads, recipe.head_size, -1)
    repeated = np.repeat(heads, recipe.heads // recipe.kv_heads, axis=0)
    return repeated.reshape(-1, matrix.shape[-1])


def _padded(matrix: Matrix, rows: int = 0, columns: int = 0) -> Matrix:
    """Return a matrix with zeros at its ends, so that it has so many rows or columns."""
    missing = (max(rows - matrix.shape[0], 0), max(columns - matrix.shape[1], 0))
    return np.pad(matrix, [(0, count) for count in missing])


def _of_block(block: int, matrices: dict[str, Matrix]) -> dict[str, Matrix]:
    return {f"blk.{block}.{name}": matrix for name, matrix in matrices.items()}
