"""Split a model as llama-gguf-split does, for tests of split models."""

from pathlib import Path

import gguf


def split_model(whole: Path, folder: Path, name: str, parts: int) -> list[Path]:
    """Write a model again, in parts of about as many tensors each; returns the parts in order."""
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
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    written = sorted(folder.glob(f"{name}-*-of-{parts:05}.gguf"))
    assert len(written) == parts
    return written
