"""A campaign of two blocks on models of a few megabytes, which takes seconds."""

from pathlib import Path
from typing import Any

import yaml

from .recipes import SMALL


def tiny_campaign(engine_bin: Path) -> dict[str, Any]:
    """Return a campaign of two blocks on unquantized models: a comparison, and a baseline."""
    config: dict[str, Any] = yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text())
    config["engines"]["built"]["path"] = str(engine_bin)
    for model in config["model_sets"]["tiny"].values():
        model["recipe"] = SMALL.model_dump() | model["recipe"]
    return config


def run_campaign(
    snakemake: Any, folder: Path, config: dict[str, Any], *args: str, **options: Any
) -> str:
    """Run snakemake on a configuration in a folder; return what it prints."""
    path = folder / "campaign.yaml"
    path.write_text(yaml.safe_dump(config))
    return snakemake(*args, "--configfile", str(path), folder=folder, **options)
