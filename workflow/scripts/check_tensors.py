"""Make sure that a model's weights are numbers before anything is measured with them."""

from pathlib import Path

from specmoe.command_line import script
from specmoe.engine.tensor_check import check_tensors


@script
def main(
    engine: Path, model: Path, environment: dict[str, str], limit_s: float, log: Path, out: Path
) -> None:
    check_tensors(engine.parent / "bin/llama-server", model, log, limit_s, environment)
    out.touch()
