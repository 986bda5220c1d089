"""Download safetensors from the hub and convert them to GGUF with llama.cpp's converter."""

from pathlib import Path

from specmoe.command_line import script
from specmoe.config.models import ConvertModel
from specmoe.models.converter import convert, environment_python
from specmoe.models.hub import fetch_repository
from specmoe.plan.fit import check_room


@script
def main(
    entry: str,
    lock: Path,
    trust: str,
    plan: Path,
    room: str,
    converter: Path,
    requirements: Path,
    environment: Path,
    out: Path,
    log: Path,
) -> None:
    check_room(plan, room)
    python = environment_python(environment, requirements, log)
    model = ConvertModel.model_validate_json(entry)
    source = fetch_repository(model, lock, trust)
    convert(python, converter, source, out, model.type, log)
