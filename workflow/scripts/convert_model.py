"""Download safetensors from the hub and convert them to GGUF with llama.cpp's converter."""

import argparse
from pathlib import Path

from specmoe import errors
from specmoe.config.models import ConvertModel
from specmoe.models.converter import convert, environment_python
from specmoe.models.hub import fetch_repository
from specmoe.plan.fit import check_room


def main() -> None:
    """Parse the command line, download and convert the model."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--entry", required=True, help="the model's entry in the config, as JSON")
    parser.add_argument("--lock", required=True, type=Path, help="digests of first downloads")
    parser.add_argument("--trust", required=True, help="config or first-use")
    parser.add_argument("--plan", required=True, type=Path, help="plan.json, if it exists")
    parser.add_argument("--room", required=True, help="checked or ignored")
    parser.add_argument("--converter", required=True, type=Path, help="its folder")
    parser.add_argument("--requirements", required=True, type=Path, help="its packages")
    parser.add_argument("--environment", required=True, type=Path, help="folder it runs in")
    parser.add_argument("--out", required=True, type=Path)
    parser.add_argument("--log", required=True, type=Path, help="the converter's output")
    args = parser.parse_args()
    check_room(args.plan, args.room)
    python = environment_python(args.environment, args.requirements, args.log)
    model = ConvertModel.model_validate_json(args.entry)
    source = fetch_repository(model, args.lock, args.trust)
    convert(python, args.converter, source, args.out, model.type, args.log)


if __name__ == "__main__":
    errors.run(main)
