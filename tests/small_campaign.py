"""A campaign of two blocks on models of a few megabytes, which takes seconds."""

from pathlib import Path
from typing import Any

import yaml

from .recipes import SMALL, varied


def tiny_campaign(engine_bin: Path) -> dict[str, Any]:
    """Return a campaign of two blocks on unquantized models: a comparison, and a baseline."""
    config: dict[str, Any] = yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text())
    recipes = {"draft": SMALL, "target": varied(SMALL, layers=8)}
    models = {
        name: {"kind": "synthetic", "recipe": one.model_dump()} for name, one in recipes.items()
    }
    engine = {"source": "path", "path": str(engine_bin)}
    return config | {"engines": {"built": engine}, "model_sets": {"tiny": models}}


def run_campaign(
    snakemake: Any, folder: Path, config: dict[str, Any], *args: str, **options: Any
) -> str:
    """Run snakemake on a configuration in a folder; return what it prints."""
    path = folder / "campaign.yaml"
    path.write_text(yaml.safe_dump(config))
    return snakemake(*args, "--configfile", str(path), folder=folder, **options)
