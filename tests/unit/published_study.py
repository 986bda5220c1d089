"""The published study for tests: the place of the authors' rows, and the rows."""

from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
import yaml

from specmoe.campaign.campaign import LoadedCampaign
from specmoe.campaign.gate import load_campaign
from specmoe.study.study_rows import import_study_rows

from ..conftest import ROOT, merge

CSV = ROOT.parent / "shared/reference/published/runs.csv"
needs_csv = pytest.mark.skipif(
    not CSV.exists(),
    reason="the authors' runs.csv is theirs, not in this repository, and not at"
    " ../shared/reference/published/runs.csv",
)


def campaign_of_study(study: dict[str, Any], folder: Path) -> LoadedCampaign:
    """Return the published campaign with its rows imported; `study` is the default one."""
    overlay = yaml.safe_load((ROOT / "config/atomgradient.yaml").read_text())
    campaign = load_campaign(merge(deepcopy(study), overlay), ROOT, folder)
    campaign.places.data.mkdir(parents=True)
    given = campaign.config.machine.model_dump(exclude_none=True)
    import_study_rows(campaign, CSV, given)
    return campaign
