"""Models that are made here: written, truncated, upcycled, quantized, or linked into place.

The first layers of a model with its embedding, norm and head draft by self-speculation (Draft &
Verify, LayerSkip).

An upcycled model is an MoE of identical experts, made from a dense one (sparse upcycling,
Komatsuzaki et al., 2023). Every expert is a copy of the feed-forward layer, so the MoE computes
what the dense model computes. llama.cpp normalises the weights of the chosen experts
(src/models/llama.cpp and qwen3moe.cpp: `norm_w` of `build_moe_ffn`). Weights of any type are copied
as they are stored.

A file of n-grams counts which token follows each pair of tokens in a text, for retrieval (REST). It
serves the models of one vocabulary (llama.cpp, examples/lookup/lookup-create.cpp).
"""

import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from math import sqrt
from pathlib import Path
from typing import Final

import numpy as np
from gguf import GGMLQuantizationType, GGUFValueType
from gguf.gguf_writer import GGUFValue

from specmoe.config import models
from specmoe.config.engines import NGRAM_MAKER, engine_environment
from specmoe.config.models import AnyModel, UpcycleModel
from specmoe.errors import EngineError, ModelError
from specmoe.files import engine_path, link, replace_text, sha256_of, written_whole
from specmoe.models.gguf_file import (
    Header,
    Metadata,
    TensorInfo,
    named_if_no_model,
    read_header,
    write_gguf,
    writer_of,
)
from specmoe.models.info import load_info
from specmoe.models.synthetic import write_model
from specmoe.models.synthetic_drafts import write_draft
from specmoe.text import exit_status, listed


def make_entry(
    known: Mapping[str, AnyModel], name: str, engine: Path | None, root: Path, out: Path, log: Path
) -> None:
    """Make one of the models of a set of the configuration; what it is made from lies beside it.

    `engine` is the engine.json of the tools, if one makes it, and is then kept in `makers/` beside
    the model. Texts are relative to `root`. Raises ModelError and EngineError.
    """
    entry = known[name]
    source = out.with_name(f"{entry.made_from}.gguf")
    match entry:
        case models.SyntheticModel():
            write_model(out, entry.recipe)
        case models.SyntheticDraft():
            target = known[entry.target]
            assert isinstance(target, models.SyntheticModel)
            write_draft(out, target.recipe, entry.method)
        case models.TruncateModel():
            truncate(source, entry.layers, out)
        case UpcycleModel():
            upcycle(source, entry, out)
        case models.PathModel():
            link(Path(entry.path), out)
        case models.QuantizeModel() | models.NgramCache():
            assert engine is not None
            if isinstance(entry, models.QuantizeModel):
                quantize(engine.parent / "bin", source, out, entry.type, log)
            else:
                make_ngram_cache(engine.parent / "bin", source, root / entry.text, out, log)
                facts = {
                    "kind": "ngram_cache",
                    "size_bytes": out.stat().st_size,
                    "sha256": sha256_of(out),
                    # It can draft for models of the same one.
                    "vocabulary_sha256": load_info(source.with_suffix(".json")).vocabulary_sha256,
                }
                replace_text(out.with_suffix(".json"), json.dumps(facts, indent=1) + "\n")
            maker = out.parent / "makers" / f"{out.stem}.json"
            maker.parent.mkdir(exist_ok=True)
            shutil.copy(engine, maker)


def truncate(source: Path, layers: int, out: Path) -> None:
    """Write the first `layers` layers of a model, split or whole, atomically as one GGUF file.

    Metadata stays but what counts layers or parts; MTP layers go. Raises ModelError if the model
    has no such part or cannot be read.
    """
    header = read_header(source)
    with named_if_no_model(source):
        writer = writer_of(header.architecture, _metadata_of_layers(source, header, layers))
    kept = [tensor for tensor in header.tensors if tensor.block is None or tensor.block < layers]
    write_gguf(out, writer, {tensor: tensor.weights() for tensor in kept})


def _metadata_of_layers(source: Path, header: Header, layers: int) -> Metadata:
    """Return the metadata of the first layers; raises ModelError if they are no model."""
    blocks = header.number_of_architecture("block_count")
    total = blocks - header.number_of_architecture("nextn_predict_layers", 0)
    interval = header.number_of_architecture("full_attention_interval", 1)
    if not interval <= layers < total:
        least = f"{interval}, for one with full attention," if interval > 1 else "1"
        raise ModelError(
            f"{source}: no draft of its first {layers} layers: give at least {least} and fewer than"
            f" its {total}"
        )
    prefix = f"{header.architecture}."
    kept = dict(header.metadata)
    kept.pop(f"{prefix}nextn_predict_layers", None)
    kept[f"{prefix}block_count"] = replace(kept[f"{prefix}block_count"], value=layers)
    for key, value in kept.items():
        # An array with a number for each block is cut to the layers.
        numbers = value.type is GGUFValueType.ARRAY and value.sub_type is not GGUFValueType.STRING
        if numbers and key.startswith(prefix) and len(value.value) == blocks:
            kept[key] = replace(value, value=value.value[:layers])
    return kept


# Architectures of dense models, and of the MoEs that compute the same around their experts.
_MOES: Final = {"llama": "llama", "mimo2": "mimo2", "qwen2": "llama", "qwen3": "qwen3moe"}
_OF_FEED_FORWARD: Final = re.compile(r"blk\.(\d+)\.ffn_(?!norm\.weight$)(.+)")
_COPIED: Final = ("gate.weight", "up.weight", "down.weight")
_ROTATED: Final = re.compile(r"blk\.\d+\.attn_[qk]\.(weight|bias)")
# A sum of so many uniform numbers is normal for our purpose, and exact on every machine.
_SUMMED: Final = 12


def upcycle(source: Path, model: UpcycleModel, out: Path) -> None:
    """Write the MoE of identical experts that `model` describes from the dense model `source`.

    Raises ModelError if the source is of another architecture, has experts, or cannot be read.
    """
    header = read_header(source)
    try:
        _check_dense(header)
        writer = writer_of(_MOES[header.architecture], _metadata_of_experts(header, model))
    except ValueError as error:
        raise ModelError(f"{source}: cannot be upcycled: {error}") from error
    write_gguf(out, writer, dict(_tensors(header, model)))


def _check_dense(header: Header) -> None:
    architecture = header.architecture
    if any(tensor.is_routed for tensor in header.tensors):
        raise ValueError(f"it has experts already (architecture {architecture})")
    if architecture not in _MOES:
        raise ValueError(f"architecture {architecture!r}; known are {listed(_MOES)}")
    header.number_of_architecture("feed_forward_length")  # one for all layers
    layers = header.number_of_architecture("block_count")
    wanted = {f"blk.{layer}.ffn_{name}" for layer in range(layers) for name in _COPIED}
    names = {tensor.name for tensor in header.tensors if _OF_FEED_FORWARD.fullmatch(tensor.name)}
    if strange := sorted(wanted ^ names):
        raise ValueError(f"it {'has' if strange[0] in names else 'lacks'} a tensor {strange[0]}")


def _metadata_of_experts(header: Header, model: UpcycleModel) -> Metadata:
    """Return the metadata of the MoE: the dense model's, with the numbers of experts."""
    dense, moe = header.architecture, _MOES[header.architecture]
    kept = {re.sub(rf"^{dense}\.", f"{moe}.", key): value for key, value in header.metadata.items()}
    return kept | {
        f"{moe}.expert_count": GGUFValue(model.experts, GGUFValueType.UINT32),
        f"{moe}.expert_used_count": GGUFValue(model.used, GGUFValueType.UINT32),
        # `llama` experts have the width of its feed-forward block, whatever this says.
        f"{moe}.expert_feed_forward_length": kept[f"{moe}.feed_forward_length"],
    }


def _tensors(dense: Header, model: UpcycleModel) -> Iterator[tuple[TensorInfo, Iterable[bytes]]]:
    """Yield the MoE's tensors: a router in each layer, its experts, and all others as they are."""
    for tensor in dense.tensors:
        part = _OF_FEED_FORWARD.fullmatch(tensor.name)
        if part is None:
            turned = dense.architecture == "qwen2" and _ROTATED.fullmatch(tensor.name)
            yield tensor, [_in_turn(tensor, dense)] if turned else tensor.weights()
            continue
        if part[2] == "gate.weight":
            hidden, name = tensor.dimensions[0], f"blk.{part[1]}.ffn_gate_inp.weight"
            router = TensorInfo(name, (hidden, model.experts), GGMLQuantizationType.F32)
            random = _draw_router(model, int(part[1]), hidden)
            # Equal logits choose the same experts for every token.
            equal = [bytes(4 * model.experts * hidden)]
            yield router, equal if model.router == "constant" else random
        name = tensor.name.replace(".weight", "_exps.weight")
        dimensions = (*tensor.dimensions, model.experts)
        yield replace(tensor, name=name, dimensions=dimensions), tensor.weights(model.experts)


def _in_turn(tensor: TensorInfo, dense: Header) -> bytes:
    """Return queries or keys of a `qwen2` as a `llama` has them: rows of a head's halves in turn.

    The position turns row i together with row i + half there, with the next row here
    (llama_model_rope_type: NEOX and NORM).
    """
    heads = dense.number_of_architecture("attention.head_count")
    hidden = dense.number_of_architecture("embedding_length")
    head = dense.number_of_architecture("attention.key_length", hidden // heads)
    rows = np.frombuffer(b"".join(tensor.weights()), np.uint8)
    row_bytes = tensor.size_bytes // tensor.dimensions[-1]
    return rows.reshape(-1, 2, head // 2, row_bytes).swapaxes(1, 2).tobytes()


def _draw_router(model: UpcycleModel, layer: int, hidden: int) -> Iterator[bytes]:
    """Yield a layer's router: a random direction for each expert, normal numbers / √hidden.

    The hidden states are real, so routing is as uneven as they are. numpy's normal numbers may
    change between its versions (NEP 19) and logarithms between machines; a model's digest must not.
    """
    stream = np.random.SFC64(np.random.SeedSequence([0, layer]))
    words = stream.random_raw(model.experts * hidden * _SUMMED // 4).astype("<u8", copy=False)
    sums = words.view("<u2").reshape(-1, _SUMMED).sum(axis=1, dtype=np.int64)
    # The variance of a whole number below n, uniform, is (n² - 1) / 12.
    normal = (sums - _SUMMED * (2**16 - 1) / 2) / sqrt(_SUMMED * (2**32 - 1) / 12)
    yield (normal / sqrt(hidden)).astype("<f4").tobytes()


def quantize(binaries: Path, source: Path, target: Path, kind: str, log: Path) -> None:
    """Write the model `source` quantized to a type, atomically; raises EngineError."""
    command = [str(binaries / "llama-quantize"), "--allow-requantize", str(engine_path(source))]
    with written_whole(target) as part:
        _run_logged([*command, str(part), kind], log)


def make_ngram_cache(binaries: Path, tokenizer: Path, text: Path, out: Path, log: Path) -> None:
    """Write the file of n-grams of a text in the vocabulary of the model `tokenizer`, atomically.

    Raises EngineError if the engine's tool fails, ModelError for a text without n-grams.
    """
    with written_whole(out) as part:
        command = [str(binaries / NGRAM_MAKER), "--model", str(engine_path(tokenizer))]
        # Without this flag a backslash and an n in the text are a line break.
        command += ["--file", str(text), "--no-escape", "--lookup-cache-static", str(part)]
        # The text is tokenized, not read by the network, so any context is long enough.
        command += ["--ctx-size", "64", "--threads", "1", "--gpu-layers", "0"]
        _run_logged(command, log)
        # It ends well even if it wrote nothing.
        if not part.is_file() or not part.stat().st_size:
            raise ModelError(f"{text}: fewer than three tokens, so it has no n-grams; see {log}")


def _run_logged(command: list[str], log: Path) -> None:
    """Run a tool of the engine, its output appended to `log`; raises EngineError if it fails."""
    environment = engine_environment({}, os.environ)
    with log.open("a") as output:
        done = subprocess.run(command, stdout=output, stderr=output, env=environment, check=False)
    if done.returncode != 0:
        tool = Path(command[0]).name
        raise EngineError(f"{tool} failed ({exit_status(done.returncode)}); see {log}")
