"""Quantize a model with the engine's llama-quantize."""

from pathlib import Path

from specmoe.command_line import script
from specmoe.models.quantize import quantize


@script
def main(
    engine: Path, source: Path, type: str, out: Path, log: Path, imatrix: Path | None = None
) -> None:
    quantize(engine.parent / "bin", source, out, type, log, imatrix)
