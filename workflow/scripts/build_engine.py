"""Fetch and build llama.cpp, and test it on a small model."""

import argparse
import json
from pathlib import Path

from pydantic import TypeAdapter

from specmoe import errors
from specmoe.config.backend import Backend
from specmoe.config.engines import Engine
from specmoe.engine.build import make_engine


def main() -> None:
    """Parse the command line and make the engine."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--id", required=True, help="the engine's id, as rows record it")
    parser.add_argument("--entry", required=True, help="its entry in the config, as JSON")
    parser.add_argument("--backend", required=True, type=Backend)
    parser.add_argument(
        "--environment", type=json.loads, default={}, help="measurement.environment, as JSON"
    )
    parser.add_argument("--out", required=True, type=Path, help="folder of the finished engine")
    parser.add_argument("--log", required=True, type=Path, help="receives its tools' output")
    args = parser.parse_args()
    engine = TypeAdapter(Engine).validate_json(args.entry)
    make_engine(engine, args.id, args.backend, args.out, args.log, args.environment)


if __name__ == "__main__":
    errors.run(main)
