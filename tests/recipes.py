"""Small models that several tests use: recipes, files whole or in parts, and infos by hand."""

from dataclasses import MISSING, fields, replace
from pathlib import Path

import gguf
from gguf.gguf_writer import GGUFValue

from specmoe.config.base import resource
from specmoe.config.models import Recipe
from specmoe.models.gguf_file import read_header, write_gguf, writer_of
from specmoe.models.info import ModelInfo
from specmoe.models.synthetic import write_model


def varied(recipe: Recipe, **changes: object) -> Recipe:
    """Return a recipe that differs in some keys."""
    return Recipe.model_validate(recipe.model_dump() | changes)


def write_models(folder: Path, **recipes: Recipe) -> dict[str, Path]:
    """Write synthetic models into a folder, and return their files by name."""
    files = {name: folder / f"{name}.gguf" for name in recipes}
    for name, file in files.items():
        write_model(file, recipes[name])
    return files


def finish(writer: gguf.GGUFWriter) -> None:
    """Write what was added to a writer, and close its files."""
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def split_model(whole: Path, folder: Path, name: str, parts: int) -> list[Path]:
    """Write a model in parts with about equally many tensors; returns the parts in order."""
    reader = gguf.GGUFReader(whole)
    folder.mkdir(parents=True, exist_ok=True)
    said = {key: field for key, field in reader.fields.items() if not key.startswith("GGUF.")}
    architecture = said.pop("general.architecture").contents()
    writer = gguf.GGUFWriter(
        folder / f"{name}.gguf", architecture, split_max_tensors=-(-len(reader.tensors) // parts)
    )
    for key, field in said.items():
        item = field.types[-1] if field.types[0] is gguf.GGUFValueType.ARRAY else None
        writer.add_key_value(key, field.contents(), field.types[0], sub_type=item)
    for tensor in reader.tensors:
        writer.add_tensor(tensor.name, tensor.data, raw_dtype=tensor.tensor_type)
    finish(writer)
    written = sorted(folder.glob(f"{name}-*-of-{parts:05}.gguf"))
    assert len(written) == parts
    return written


def made_info(**facts: object) -> ModelInfo:
    """Return a model info with these facts; every other one is zero, empty or unknown."""
    unknown = {name: None for name in ("sha256", "type", "tensor_types", "vocabulary_sha256")}
    counts = {field.name: 0 for field in fields(ModelInfo) if field.default is MISSING}
    return ModelInfo(**counts | unknown | {"architecture": ""} | facts)


def edit_vocabulary(file: Path, tokens: dict[int, bytes], /, **given: bool | int | bytes) -> None:
    """Give a model other tokens, by number, and other values of its tokenizer."""
    header, kinds = read_header(file), {bool: "BOOL", int: "UINT32", bytes: "STRING"}
    listed = header.metadata["tokenizer.ggml.tokens"]
    own = dict(enumerate(listed.value)) | tokens
    metadata = header.metadata | {"tokenizer.ggml.tokens": replace(listed, value=[*own.values()])}
    del metadata["tokenizer.ggml.add_bos_token"]  # a synthetic model says that it adds none
    for key, value in given.items():
        metadata[f"tokenizer.ggml.{key}"] = GGUFValue(value, gguf.GGUFValueType[kinds[type(value)]])
    writer = writer_of(header.architecture, metadata)
    write_gguf(file, writer, {one: one.weights() for one in header.tensors})


# Of a draft model: its vocabulary's size, its tokens by number, values of its tokenizer, and why it
# cannot draft for one of 384 tokens that puts none before a text. As llama.cpp judges.
PAIRS = [
    (512, {}, {}, ""),  # padded
    (513, {}, {}, "their vocabularies differ: 513 and 384 tokens"),
    (384, {4: b"<4>"}, {}, ""),
    (384, {5: b"<5>"}, {}, "token 5 is b'<5>' and "),
    (384, {}, {"add_bos_token": False, "bos_token_id": 7}, ""),
    (384, {}, {"add_bos_token": True}, "it puts bos 11 around a text and its target no token "),
    (384, {}, {"add_eos_token": True, "eos_token_id": 9}, "it puts eos 9 around"),
    (384, {}, {"pre": b"llama-bpe"}, "it puts bos 11 around"),
    (384, {}, {"pre": b"llama-bpe", "add_bos_token": False}, ""),
    (384, {}, {"model": b"gemma4", "add_bos_token": False}, "it puts bos 11 around"),
]


# Wide enough for K-quants; the smallest that a real engine runs in every type.
DENSE_KEYS = {"experts": 0, "experts_used": 0, "expert_ffn": 0}
SMALL = Recipe(**resource("self_test") | DENSE_KEYS | {"ffn": 512, "seed": 3})
# Targets that begin with its layers.
DENSE = varied(SMALL, layers=8)
MOE = varied(DENSE, experts=8, experts_used=2, expert_ffn=256)
# For tests that only write and read files.
HEADS = {"heads": 2, "kv_heads": 1, "gdn_value_heads": 2, "gdn_key_heads": 1}
TINY = varied(SMALL, hidden=32, head_size=16, gdn_head_size=16, ffn=64, seed=0, **HEADS)
