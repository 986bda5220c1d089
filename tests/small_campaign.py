"""A campaign of two blocks on models of a few megabytes, which takes seconds."""

from pathlib import Path
from typing import Any

import yaml

from .recipes import SMALL


def tiny_campaign(engine_bin: Path) -> dict[str, Any]:
    """Return a campaign of two blocks on unquantized models: a comparison, and a baseline."""
    without = {
        "title": "None",
        "targets": ["target"],
        "drafts": ["none"],
        "prompts": ["code", 32],
    }
    speculative = {"title": "Speculative", "drafts": ["draft"], "gammas": [4]}
    return {
        "campaign": {
            "name": "tiny",
            "engine": "built",
            "backend": "cpu",
            "models": "tiny",
            "suites": ["S", "N"],
        },
        "measurement": {
            **{"n_predict": 16, "repeats": 1, "warmups": 0, "context": 512, "threads": 1},
            "block_prompts": 9,  # the two of a comparison share a block
            # Other tests disturb nearly every run.
            "reruns": None,
        },
        # Else it is probed before each repeat, for seconds.
        "machine": {"memory_bandwidth_gb_s": 20},
        "engines": {"built": {"source": "path", "path": str(engine_bin)}},
        "model_sets": {
            "tiny": {
                "draft": {"kind": "synthetic", "recipe": SMALL.model_dump()},
                "target": {"kind": "synthetic", "recipe": SMALL.model_dump() | {"layers": 8}},
            }
        },
        "suites": {"S": without | speculative, "N": without},
    }


def run_campaign(
    snakemake: Any, folder: Path, config: dict[str, Any], *args: str, **options: Any
) -> str:
    """Run snakemake on a configuration in a folder; return what it prints."""
    path = folder / "campaign.yaml"
    path.write_text(yaml.safe_dump(config))
    return snakemake(*args, "--configfile", str(path), folder=folder, **options)
