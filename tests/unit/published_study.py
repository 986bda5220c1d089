"""The published study for tests: the place of the authors' rows, and their analysis."""

from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
import yaml

from specmoe.analysis.build import analyse
from specmoe.analysis.registry import Analysis
from specmoe.audit.evidence import Evidence, known_bandwidth
from specmoe.audit.report import Audit
from specmoe.config.load import load
from specmoe.config.schema import Config
from specmoe.models.info import size_of_info
from specmoe.plan.estimate import info_of_entry
from specmoe.runs.other_tables import read_pass_times
from specmoe.runs.schema import read_runs, write_runs
from specmoe.study.headline import with_study_names
from specmoe.study.study_rows import rows_of_csv, study_machine

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


def analysis_of_study(study: dict[str, Any], folder: Path) -> Analysis:
    """Return the analysis of the published campaign by its own names, read back from `folder`.

    It is audited without judged divergences.
    """
    config = config_of_study(study)
    infos = {model: info_of_entry(model, config) for model in config.measured_models}
    machine = study_machine(config.machine.model_dump(exclude_none=True))
    runs = runs_of_study(config, folder)
    sizes = {model: size_of_info(info) for model, info in infos.items()}
    passes = read_pass_times(None)
    bandwidth, _ = known_bandwidth(machine, passes, sizes)
    audit = Audit.of(Evidence(runs, sizes, bandwidth, config.audit))
    analysis = analyse(runs, config, infos, machine, audit, passes)
    analysis.write(folder / "analysis")
    return with_study_names(Analysis.read(folder / "analysis"))
