"""Make sure that an upcycled model computes what its dense model does before it is measured."""

import json
from collections.abc import Sequence
from pathlib import Path

from specmoe.command_line import script
from specmoe.engine.machine_id import physical_cores
from specmoe.engine.server import Server, server_command
from specmoe.files import engine_path
from specmoe.measure.upcycled import CONTEXT, check_upcycled
from specmoe.models.card import load_card


@script
def main(
    engine: Path,
    source: Path,
    model: Path,
    card: Path,
    text: Path,
    environment: dict[str, str],
    gpu_layers: int,
    start_limit_s: float,
    run_limit_s: float,
    log: Path,
    out: Path,
) -> None:
    def start(file: Path, words: Sequence[str]) -> Server:
        command = server_command(
            engine.parent / "bin/llama-server",
            engine_path(file),
            context=CONTEXT,
            threads=physical_cores(),
            gpu_layers=gpu_layers,
            args=words,
        )
        return Server(command, log, start_limit_s, run_limit_s, environment)

    prompt = text.read_text(encoding="utf-8")
    found = check_upcycled(start, source, model, load_card(card), prompt)
    out.write_text(json.dumps(found, indent=1) + "\n")
