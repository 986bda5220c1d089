"""Small dense models of the architectures that can be upcycled, and MoEs of their copies."""

from collections.abc import Mapping
from pathlib import Path

import gguf
import numpy as np
import numpy.typing as npt

from specmoe.config.models import UpcycleModel
from specmoe.models.derived import upcycle
from specmoe.models.synthetic import add_shape, add_vocabulary

from .recipes import SMALL, finish

LAYERS, HIDDEN, FFN, HEADS, KV_HEADS, VOCABULARY = 4, 256, 512, 4, 2, 512  # as of SMALL


def weights_of(architecture: str) -> dict[str, npt.NDArray[np.float32]]:
    """Return the weights of a model by name; the rows of a matrix are of unit length or so."""
    random = np.random.default_rng(1)
    head = HIDDEN // HEADS

    def matrix(rows: int, columns: int) -> npt.NDArray[np.float32]:
        return random.normal(0, columns**-0.5, (rows, columns)).astype(np.float32)

    weights = {
        "token_embd.weight": matrix(VOCABULARY, HIDDEN) * 16,
        "output.weight": matrix(VOCABULARY, HIDDEN) * 4,
        "output_norm.weight": np.ones(HIDDEN, np.float32),
    }
    for layer in range(LAYERS):
        block = f"blk.{layer}."
        weights |= {
            f"{block}attn_norm.weight": np.ones(HIDDEN, np.float32),
            f"{block}attn_q.weight": matrix(HIDDEN, HIDDEN),
            f"{block}attn_k.weight": matrix(KV_HEADS * head, HIDDEN),
            f"{block}attn_v.weight": matrix(KV_HEADS * head, HIDDEN),
            f"{block}attn_output.weight": matrix(HIDDEN, HIDDEN),
            f"{block}ffn_norm.weight": np.ones(HIDDEN, np.float32),
            f"{block}ffn_gate.weight": matrix(FFN, HIDDEN) * 2,
            f"{block}ffn_up.weight": matrix(FFN, HIDDEN) * 2,
            f"{block}ffn_down.weight": matrix(HIDDEN, FFN) * 2,
        }
        if architecture == "qwen3":
            weights |= {
                f"{block}attn_{name}_norm.weight": np.ones(head, np.float32) for name in "qk"
            }
        if architecture == "qwen2":
            weights |= {
                f"{block}attn_{name}.bias": matrix(rows * head, 1)[:, 0]
                for name, rows in zip("qkv", (HEADS, KV_HEADS, KV_HEADS), strict=True)
            }
    return weights


def write_dense(
    path: Path,
    architecture: str = "llama",
    kind: gguf.GGMLQuantizationType = gguf.GGMLQuantizationType.F16,
    weights: Mapping[str, npt.NDArray[np.float32]] | None = None,
) -> Path:
    """Write a dense model whose matrices are of a type; `weights` replaces its own."""
    writer = gguf.GGUFWriter(path, architecture)
    writer.add_block_count(LAYERS)
    add_shape(writer, SMALL, HEADS, KV_HEADS)
    writer.add_rope_dimension_count(HIDDEN // HEADS)  # not a quarter, as of a synthetic one
    writer.add_file_type(int(gguf.LlamaFileType[f"MOSTLY_{kind.name}"]))
    add_vocabulary(writer, VOCABULARY)
    for name, values in (weights or weights_of(architecture)).items():
        stored = kind if values.ndim > 1 else gguf.GGMLQuantizationType.F32
        writer.add_tensor(name, gguf.quants.quantize(values, stored), raw_dtype=stored)
    finish(writer)
    return path


def write_moe(source: Path, out: Path, **keys: int | str) -> Path:
    """Write the MoE of a dense model's copies; `keys` are those of its entry."""
    entry = {"kind": "upcycle", "source": "dense", "experts": 4} | keys
    upcycle(source, UpcycleModel.model_validate(entry), out)
    return out
