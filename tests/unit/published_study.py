"""The published study for tests: the place of the authors' rows, and the rows."""

from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
import yaml

from specmoe.config.load import load
from specmoe.config.schema import Config
from specmoe.runs.schema import read_runs, write_runs
from specmoe.study.study_rows import rows_of_csv

from ..conftest import ROOT, merge

CSV = ROOT.parent / "shared/reference/published/runs.csv"
needs_csv = pytest.mark.skipif(
    not CSV.exists(),
    reason="the authors' runs.csv is theirs, not in this repository, and not at"
    " ../shared/reference/published/runs.csv",
)


def config_of_study(study: dict[str, Any]) -> Config:
    """Return the configuration of the published campaign; `study` is the default one."""
    overlay = yaml.safe_load((ROOT / "config/atomgradient.yaml").read_text())
    return load(merge(deepcopy(study), overlay), ROOT)


def runs_of_study(config: Config, folder: Path) -> Any:
    """Return the rows as the analysis reads them, written to `folder` before."""
    write_runs(rows_of_csv(CSV, config.campaign.compare_with_study), folder / "runs.parquet")
    return read_runs(folder / "runs.parquet")
