"""Write GGUF files: one model in parts, as llama-gguf-split does, or tensors by hand."""

from pathlib import Path

import gguf


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
    fields = {key: field for key, field in reader.fields.items() if not key.startswith("GGUF.")}
    architecture = fields.pop("general.architecture").contents()
    writer = gguf.GGUFWriter(
        folder / f"{name}.gguf", architecture, split_max_tensors=-(-len(reader.tensors) // parts)
    )
    for key, field in fields.items():
        item = field.types[-1] if field.types[0] is gguf.GGUFValueType.ARRAY else None
        writer.add_key_value(key, field.contents(), field.types[0], sub_type=item)
    for tensor in reader.tensors:
        writer.add_tensor(tensor.name, tensor.data, raw_dtype=tensor.tensor_type)
    finish(writer)
    written = sorted(folder.glob(f"{name}-*-of-{parts:05}.gguf"))
    assert len(written) == parts
    return written
