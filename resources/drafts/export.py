"""Write the trained draft as GGUF, with the target's tokenizer, template and licence."""

from pathlib import Path
from typing import Any

from gguf import GGMLQuantizationType, GGUFReader, GGUFValueType, GGUFWriter, quantize
from llama import Llama

HEAD_TYPE, LAYER_TYPE = GGMLQuantizationType.Q4_0, GGMLQuantizationType.Q5_1
FILE_TYPE = 9  # llama.cpp's LLAMA_FTYPE_MOSTLY_Q5_1
_HUB = "https://huggingface.co/HuggingFaceTB/SmolLM2-135M-Instruct"
_NEW_KEYS = ("general.architecture", "general.finetune", "general.basename", "general.size_label")


def _own_keys(draft: Llama) -> dict[str, Any]:
    layers = len(draft.blk)
    return {
        "general.name": f"Draft of {layers} layers for SmolLM2 135M Instruct",
        "general.organization": "specmoe",
        "general.description": "Distilled from SmolLM2-135M-Instruct on that model's own chats, "
        "to draft for it in speculative decoding; of no use by itself.",
        "general.base_model.count": 1,
        "general.base_model.0.name": "SmolLM2 135M Instruct",
        "general.base_model.0.organization": "HuggingFaceTB",
        "general.base_model.0.repo_url": _HUB,
        "llama.block_count": layers,
        "general.file_type": FILE_TYPE,
    }


def write_draft(draft: Llama, target: Path, path: Path) -> None:
    """Write `draft` to `path`; what it shares with `target` is copied from that file."""
    reader = GGUFReader(target)
    writer = GGUFWriter(path, "llama")
    own = _own_keys(draft)
    for key, field in reader.fields.items():
        if not key.startswith("GGUF.") and key not in own and key not in _NEW_KEYS:
            kind = field.types[0]
            of = field.types[-1] if kind == GGUFValueType.ARRAY else None
            writer.add_key_value(key, field.contents(), kind, of)
    for key, value in own.items():
        kind = GGUFValueType.STRING if isinstance(value, str) else GGUFValueType.UINT32
        writer.add_key_value(key, value, kind)
    embedding = quantize(draft.embedding.float().numpy(), HEAD_TYPE)
    writer.add_tensor("token_embd.weight", embedding, raw_dtype=HEAD_TYPE)
    for name, parameter in draft.named_parameters():
        values = parameter.detach().float().numpy()
        if values.ndim == 1:
            writer.add_tensor(f"{name}.weight", values)
        else:
            packed = quantize(values, LAYER_TYPE)
            writer.add_tensor(f"{name}.weight", packed, raw_dtype=LAYER_TYPE)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
