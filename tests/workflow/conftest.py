"""A campaign with an engine as if built here, for tests of the workflow."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from specmoe.config.engines import Backend, PypiEngine
from specmoe.engine.identity import engine_id

from ..small_campaign import tiny_campaign

ENTRY = {"source": "pypi", "version": "0.0.1", "sha256": "0" * 64, "commit": "0123456"}


@pytest.fixture(scope="module")
def built_from_source(module_folder: Path, engine_bin: Path, model_passes: Path) -> dict[str, Any]:
    """The small campaign, which takes the tests' engine for one that its folder built."""
    assert model_passes.is_file()
    config = tiny_campaign(engine_bin) | {"engines": {"built": ENTRY}}
    built = module_folder / "results/engines"
    built /= engine_id("built", Backend.CPU, PypiEngine(**ENTRY), {})
    built.mkdir(parents=True)
    for part in engine_bin.parent.iterdir():
        (built / part.name).symlink_to(part)
    own, description = built / "engine.json", engine_bin.parent / "engine.json"
    own.unlink()
    own.write_text(json.dumps(json.loads(description.read_text()) | {"id": built.name}))
    shutil.copystat(description, own)  # or the programs beside it would be built again
    return config
