"""A campaign of a few blocks for tests of the workflow."""

from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
import yaml

from ..recipes import SMALL


@pytest.fixture
def tiny(engine_bin: Path) -> dict[str, Any]:
    """A campaign of two blocks on unquantized models; the test's to change."""
    return {
        "campaign": {
            "name": "tiny",
            "engine": "built",
            "backend": "cpu",
            "models": "tiny",
            "suites": ["S", "N"],
        },
        "measurement": {"n_predict": 16, "repeats": 1, "warmups": 0, "context": 512, "threads": 1},
        "engines": {"built": {"source": "path", "path": str(engine_bin)}},
        "model_sets": {
            "tiny": {
                "draft": {"kind": "synthetic", "recipe": asdict(SMALL)},
                "target": {"kind": "synthetic", "recipe": asdict(SMALL) | {"layers": 8}},
            }
        },
        "suites": {
            "S": {
                "title": "Speculative",
                "targets": ["target"],
                "drafts": ["draft"],
                "gammas": [4],
                "prompts": ["code"],
                "prompt_lengths": [32],
                "baseline": "N",
            },
            "N": {
                "title": "None",
                "targets": ["target"],
                "drafts": ["none"],
                "prompts": ["code"],
                "prompt_lengths": [32],
            },
        },
    }


@pytest.fixture
def campaign(snakemake, tmp_path):
    """Run snakemake on a configuration, in the test's own folder."""

    def run(config: dict[str, Any], *args: str, **options: Any):
        path = tmp_path / "campaign.yaml"
        path.write_text(yaml.safe_dump(config))
        return snakemake("--configfile", str(path), *args, folder=tmp_path, **options)

    return run
