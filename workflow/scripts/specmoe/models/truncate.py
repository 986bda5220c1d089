"""A draft cut from a model's own file: its first layers, with its embedding, norm and head.

Drafting with a part of the target's own layers is self-speculation (Draft & Verify, LayerSkip).
Weights are copied as they are, whatever their type, so a cut of a quantized model is quantized.
"""

from dataclasses import replace
from pathlib import Path

from gguf import GGUFValueType
from gguf.gguf_writer import GGUFValue

from specmoe.errors import ModelError
from specmoe.models.gguf_header import Header, Metadata, named_if_no_model, read_header
from specmoe.models.gguf_writer import copied, write_gguf, writer_of


def truncate(source: Path, layers: int, out: Path) -> None:
    """Write the first `layers` layers of a model, split or whole, atomically as one GGUF file.

    All metadata stays but what counts layers or parts; blocks that predict further tokens go.
    Raises ModelError if the model has no such part, cannot be read, or the disk is full or fails.
    """
    header = read_header(source)
    with named_if_no_model(source):
        metadata = _of_first_layers(source, header, layers)
        writer = writer_of(header.architecture, metadata)
    kept = [tensor for tensor in header.tensors if tensor.block is None or tensor.block < layers]
    write_gguf(out, writer, list(map(copied, kept)))


def _of_first_layers(source: Path, header: Header, layers: int) -> Metadata:
    """Return the metadata of the first layers; raises ModelError if they are no model."""
    blocks = header.number_of_architecture("block_count")
    own = blocks - header.number_of_architecture("nextn_predict_layers", 0)
    interval = header.number_of_architecture("full_attention_interval", 1)
    if not interval <= layers < own:
        least = f"{interval}, for one with full attention," if interval > 1 else "1"
        raise ModelError(
            f"{source}: no draft of its first {layers} layers: give at least {least} and fewer than"
            f" its {own}"
        )
    prefix = f"{header.architecture}."
    count = f"{prefix}block_count"
    kept = {
        key: _shortened(value, blocks, layers) if key.startswith(prefix) else value
        for key, value in header.metadata.items()
        if key != f"{prefix}nextn_predict_layers" and not key.startswith("split.")
    }
    return kept | {count: replace(kept[count], value=layers)}


def _shortened(value: GGUFValue, blocks: int, layers: int) -> GGUFValue:
    """Cut an array with a number for each block to the layers; return anything else as it is."""
    if value.type is not GGUFValueType.ARRAY or value.sub_type is GGUFValueType.STRING:
        return value
    return replace(value, value=value.value[:layers]) if len(value.value) == blocks else value
