"""A model file that cannot be measured ends snakemake before anything is made."""

from typing import Any

import pytest
import yaml

from specmoe.models.synthetic import write_model

from ..recipes import TINY


@pytest.fixture
def own(study, tmp_path):
    """A configuration with a model of the user's, and the model's file."""
    file = tmp_path / "own.gguf"
    write_model(file, TINY)
    suite: dict[str, Any] = {"title": "S", "targets": ["target"], "methods": "all", "gammas": [4]}
    config = {
        "campaign": {"name": "own", "models": "own", "suites": ["S"]},
        "model_sets": {"own": {"target": {"kind": "path", "path": str(file)}}},
        "suites": {"S": suite | {"prompts": ["code"]}},
    }
    return config, file


def test_a_file_that_cannot_be_measured_ends_snakemake_before_anything_is_made(
    snakemake, own, tmp_path
):
    config, file = own
    file.write_bytes(b"no model")
    overlay = tmp_path / "own.yaml"
    overlay.write_text(yaml.safe_dump(config))
    printed = snakemake("models", "--configfile", str(overlay), folder=tmp_path, fails=True)
    assert f"ModelError: {file}: not a readable GGUF file" in printed
    assert "Traceback" not in printed
    assert not (tmp_path / "results").exists()
