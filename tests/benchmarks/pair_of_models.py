"""A target and a draft of a model set, written for a benchmark, and the job of measuring them."""

import subprocess
import sys
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

import psutil
import yaml

from specmoe.config.backend import Backend
from specmoe.config.synthetic_recipe import Recipe
from specmoe.engine.job import Job
from specmoe.engine.memory import usable_memory

ROOT = Path(__file__).resolve().parents[2]


def pair_parser(description: str | None) -> ArgumentParser:
    """Return a parser of the engine, the folder of the models, and the two models."""
    parser = ArgumentParser(description=description)
    parser.add_argument("--engine", required=True, type=Path, help="folder of llama-server")
    parser.add_argument("--folder", required=True, type=Path, help="where models are written")
    parser.add_argument("--models", default="demo", help="a model set")
    parser.add_argument("--target", default="moe_q4")
    parser.add_argument("--draft", default="draft_0.8b")
    return parser


def write_pair(engine: Path, folder: Path, models: str, target: str, draft: str) -> Job:
    """Return the job of measuring two synthetic models of a set, written unless they exist.

    `engine` is the folder of llama.cpp's programs. A quantized model is made from its source.
    """
    entries = yaml.safe_load((ROOT / "config/models.yaml").read_text())["model_sets"][models]
    folder.mkdir(parents=True, exist_ok=True)
    files = {name: _write(engine, folder, entries, name) for name in (target, draft)}
    return Job(
        root=ROOT,
        binaries=engine,
        target=files[target],
        draft=files[draft],
        server_log=folder / "server.log",
        start_limit_s=600,
        run_limit_s=600,
        backend=Backend.CPU,
        usable_memory=usable_memory(psutil.virtual_memory().total, None, Backend.CPU),
    )


def _write(engine: Path, folder: Path, entries: dict[str, Any], name: str) -> Path:
    file, entry = folder / f"{name}.gguf", entries[name]
    if file.exists():
        return file
    if entry["kind"] == "quantize":
        source = _write(engine, folder, entries, entry["source"])
        command = [str(engine / "llama-quantize"), str(source), str(file), entry["type"]]
    else:
        script = ROOT / "workflow/scripts/write_synthetic_model.py"
        recipe = Recipe(**entry["recipe"]).to_json()
        command = [sys.executable, str(script), "--recipe", recipe, "--out", str(file)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return file
