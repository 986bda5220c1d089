"""A campaign of a few blocks for tests of the workflow."""

import re
import shutil
import subprocess
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import yaml

from ..conftest import Snakemake
from ..recipes import SMALL


def pages(pdf: Path) -> int:
    """Return how many pages a PDF file has."""
    done = subprocess.run(["pdfinfo", str(pdf)], capture_output=True, text=True, check=True)
    return int(re.search(r"^Pages: +(\d+)$", done.stdout, re.MULTILINE)[1])


def files_of(folder: Path) -> dict[Path, bytes]:
    """Return the contents of a folder's files, by path in the folder."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    return {path.relative_to(folder): path.read_bytes() for path in files}


# The demo's verdicts by those checks of the audit that use counts and tokens, not times.
SOUND_DEMO = {
    ("accounting", "pass"): 426,
    ("determinism", "pass"): 426,
    ("failed_decodes", "pass"): 426,
    ("losslessness", "not applicable"): 168,  # runs without a draft
    ("losslessness", "pass"): 258,
}


def untimed_verdicts(campaign: Path) -> dict[tuple[str, str], int]:
    """Return the number of runs of a campaign for each verdict of the checks of `SOUND_DEMO`."""
    audit = pd.read_parquet(campaign / "audit/audit.parquet")
    untimed = audit[audit["check"].isin({check for check, _ in SOUND_DEMO})]
    counts: dict[tuple[str, str], int] = untimed[["check", "verdict"]].value_counts().to_dict()
    return counts


def tiny_campaign(engine_bin: Path) -> dict[str, Any]:
    """Return a campaign of two blocks on unquantized models: a comparison, and a target alone."""
    without = {
        "title": "None",
        "targets": ["target"],
        "drafts": ["none"],
        "prompts": ["code"],
        "prompt_lengths": [32],
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
            "gate": {"retries": 0},  # other tests disturb nearly every run
        },
        "engines": {"built": {"source": "path", "path": str(engine_bin)}},
        "model_sets": {
            "tiny": {
                "draft": {"kind": "synthetic", "recipe": asdict(SMALL)},
                "target": {"kind": "synthetic", "recipe": asdict(SMALL) | {"layers": 8}},
            }
        },
        "suites": {"S": without | speculative, "N": without},
    }


@pytest.fixture
def tiny(engine_bin: Path) -> dict[str, Any]:
    """The small campaign's configuration, which a test may change."""
    return tiny_campaign(engine_bin)


def run_campaign(
    snakemake: Snakemake, folder: Path, config: dict[str, Any], *args: str, **options: Any
) -> str:
    """Run snakemake on a configuration in a folder; return what it prints."""
    path = folder / "campaign.yaml"
    path.write_text(yaml.safe_dump(config))
    return snakemake(*args, "--configfile", str(path), folder=folder, **options)


@pytest.fixture
def campaign(snakemake, tmp_path):
    """Run snakemake on a configuration, in the test's own folder."""
    return partial(run_campaign, snakemake, tmp_path)


@pytest.fixture(scope="session")
def _finished(snakemake, engine_bin, tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("finished")
    run_campaign(snakemake, folder, tiny_campaign(engine_bin), "paper")
    return folder


@pytest.fixture
def measured(_finished, tmp_path) -> Path:
    """The small campaign, finished, in the test's own folder."""
    shutil.copytree(_finished, tmp_path, dirs_exist_ok=True, symlinks=True)
    return tmp_path
