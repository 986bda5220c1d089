"""The place of the published study's rows, for tests that need them."""

import pytest

from ..conftest import ROOT

CSV = ROOT.parent / "shared/reference/published/runs.csv"
needs_csv = pytest.mark.skipif(
    not CSV.exists(),
    reason="the authors' runs.csv is theirs, not in this repository, and not at"
    " ../shared/reference/published/runs.csv",
)
